#include "src/plan/dispatch.hpp"

#include "arch/host/backend.hpp"

namespace hg {

std::span<const Backend* const> all_backends()
{
    static constexpr const Backend* list[] = {&host_backend};
    return list;
}

}  // namespace hg
