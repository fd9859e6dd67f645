#include "src/plan/dispatch.hpp"

#include "arch/host/backend.hpp"

namespace hg {

#define BACKEND(name, generations, images) extern const Backend name##_backend;
#include "arch/backends.def"
#undef BACKEND

std::span<const Backend* const> all_backends()
{
#define BACKEND(name, generations, images) &name##_backend,
    static constexpr const Backend* list[] = {
#include "arch/backends.def"
        &host_backend};
#undef BACKEND
    return list;
}

}  // namespace hg
