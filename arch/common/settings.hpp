// What may follow a kernel's name in HGEMM_KERNEL and not every backend has.
#pragma once

#include "src/backend.hpp"

namespace hg {

// What a backend's kernels can be told, beside /split=1, /plain, /whole and /alone.
struct Offered {
    bool split, swapped, stream;
    Overlap overlap;  // the most of it
};

// Why what was forced is refused; null where all of it is offered.
constexpr const char* not_offered(const Options& options, const Offered& offered)
{
    if (options.split > 1 && !offered.split)
        return "/split=<n> is not offered for n > 1";
    if (options.orientation == Orientation::Swapped && !offered.swapped)
        return "/swapped is not offered";
    if (options.sharing == Sharing::Stream && !offered.stream)
        return "/stream is not offered";
    if (options.overlap > offered.overlap)
        return options.overlap == Overlap::Early ? "/early is not offered" : "/late is not offered";
    return nullptr;
}

}  // namespace hg
