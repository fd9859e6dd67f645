#include "real.hpp"

#include "quietly.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <string_view>

namespace hg::shim {
namespace {

constexpr const char* sonames[library_count][3] = {
    {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
    {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}};
constexpr const char* landmarks[library_count] = {"cublasDestroy_v2", "cublasLtMatmul"};

// Where dlsym() looks. RTLD_NEXT finds the function that the program would have called without the shim; a
// library that was loaded with RTLD_LOCAL is found by its name only.
void* find_scope(Library library)
{
    const auto index = static_cast<int>(library);
    if (void* function = dlsym(RTLD_NEXT, landmarks[index])) {
        Dl_info where;
        if (dladdr(function, &where))
            dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        return RTLD_NEXT;
    }
    for (const char* soname : sonames[index])
        if (void* loaded = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
            return loaded;
    return nullptr;
}

// cuBLAS 12.5 and newer have these.
bool may_be_absent(std::string_view name) { return name.starts_with("cublasGemmGroupedBatchedEx"); }

Real look_up(Library wanted, void* scope)
{
    Real found;
    found.complete = true;
#define HGEMM_REAL(library, name, type)                                                                    \
    if (wanted == Library::library) {                                                                      \
        found.name = reinterpret_cast<type*>(dlsym(scope, #name));                                         \
        found.complete = found.complete && (found.name || may_be_absent(#name));                           \
    }
#include "functions.def"
#undef HGEMM_REAL
    GetProperty* property = wanted == Library::Lt ? found.cublasLtGetProperty : found.cublasGetProperty;
    if (property)
        property(property_major, &found.major);
    return found;
}

std::atomic<const Real*> known[library_count];

constinit const Real nothing;

// Without a lock: look-ups that the loader reports (hgemm_shim_stand_in) hold its lock already. Several
// threads may find the same.
const Real* find(Library library, std::atomic<const Real*>& place)
{
    void* scope = find_scope(library);
    if (!scope)
        return &nothing;
    const Real* const made = new Real(look_up(library, scope));
    const Real* other = nullptr;
    if (place.compare_exchange_strong(other, made, std::memory_order_acq_rel))
        return made;
    delete made;
    return other;
}

}  // namespace

const Real& real(Library library)
{
    std::atomic<const Real*>& place = known[static_cast<int>(library)];
    const Real* found = place.load(std::memory_order_acquire);
    return found ? *found : *quietly(&nothing, [&] { return find(library, place); });
}

std::string find_unseen()
{
    std::string path;
    if (std::ranges::any_of(known, [](const auto& found) { return found.load() != nullptr; }))
        return path;
    const auto visit = [](dl_phdr_info* library, size_t, void* result) {
        const std::string_view name = library->dlpi_name;
        const bool is_cublas = name.substr(name.rfind('/') + 1).starts_with("libcublas");
        if (is_cublas)
            *static_cast<std::string*>(result) = name;
        return is_cublas ? 1 : 0;
    };
    quietly([&] { dl_iterate_phdr(visit, &path); });
    return path;
}

}  // namespace hg::shim
