#include "src/plan/dispatch.hpp"

#include "arch/host/backend.hpp"
#include "arch/sm100/backend.hpp"
#include "arch/sm120/backend.hpp"
#include "arch/sm80/backend.hpp"
#include "arch/sm90/backend.hpp"

namespace hg {

std::span<const Backend* const> all_backends()
{
    static constexpr const Backend* list[] = {&sm100_backend, &sm90_backend, &sm120_backend, &sm80_backend,
                                              &host_backend};
    return list;
}

}  // namespace hg
