// Refuses options of HGEMM_KERNEL that a backend does not have.
#pragma once

#include "src/plan/backend.hpp"

namespace hg {

// Options that a backend has, beside /split=1, /swap_ab=0, /stream_k=0 and /pdl=off, which all accept.
struct Offered {
    bool split, swap_ab, stream_k;
    Pdl pdl;  // this and what comes before it in Pdl
};

// Why a forced option is refused; null if the backend has them all.
constexpr const char* not_offered(const Options& options, const Offered& offered)
{
    if (options.split > 1 && !offered.split)
        return "/split=<n> is not offered for n > 1";
    if (options.swap_ab == SwapAb::On && !offered.swap_ab)
        return "/swap_ab=1 is not offered";
    if (options.stream_k == StreamK::On && !offered.stream_k)
        return "/stream_k=1 is not offered";
    if (options.pdl > offered.pdl)
        return options.pdl == Pdl::Early ? "/pdl=early is not offered" : "/pdl=late is not offered";
    return nullptr;
}

}  // namespace hg
