#include "arch/host/openblas.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace hg {

const char* const openblas_names[] = {"libopenblas.so.0", "libopenblas.so", nullptr};

namespace {

// Some systems have a build with 64-bit integers under the same name, whose functions would misread our
// int.
bool has_long_integers(void* library)
{
    const auto config = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_config"));
    return config && std::strstr(config(), "USE64BITINT");
}

}  // namespace

OpenBlas load_openblas(const char* const* names)
{
    OpenBlas blas;
    char missing[256] = "",
         unfit[256] = "";  // why the first name was not loaded, and why one that was did not do
    for (const char* const* name = names; *name; ++name) {
        // Never unloaded: OpenBLAS has threads of its own, which must not lose their code.
        void* const library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        void* const symbol = library ? dlsym(library, "cblas_sgemm") : nullptr;
        if (!symbol) {
            if (name == names)
                std::snprintf(missing, sizeof missing, "%s", dlerror());
        } else if (has_long_integers(library)) {
            std::snprintf(unfit, sizeof unfit,
                          "; %s has 64-bit integers, a build with 32-bit ones is wanted", *name);
        } else {
            blas.sgemm = reinterpret_cast<decltype(blas.sgemm)>(symbol);
            return blas;
        }
    }
    std::snprintf(
        blas.missing, sizeof blas.missing,
        "no OpenBLAS, which computes large products faster on some processors; install libopenblas0 "
        "(Debian, Ubuntu) or openblas (Fedora): %s%s",
        missing, *missing ? unfit : unfit + (*unfit ? 2 : 0));
    return blas;
}

// Once it was looked for the loader is not asked again: after a fork() its lock may be that of a thread
// which only the parent has.
const OpenBlas& openblas()
{
    static const OpenBlas found = load_openblas(openblas_names);
    return found;
}

}  // namespace hg
