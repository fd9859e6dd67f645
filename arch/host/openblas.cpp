#include "arch/host/openblas.hpp"

#include <dlfcn.h>

#include <cstdio>

namespace hg {

const char* const openblas_names[] = {"libopenblas.so.0", "libopenblas.so", nullptr};

Status load_openblas(const char* const* names, OpenBlas& blas)
{
    char reason[256] = "";
    for (const char* const* name = names; *name; ++name) {
        // Never unloaded: OpenBLAS has threads of its own, which must not lose their code.
        void* library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        void* symbol = library ? dlsym(library, "cblas_sgemm") : nullptr;
        if (symbol) {
            blas.sgemm = reinterpret_cast<decltype(blas.sgemm)>(symbol);
            return ok;
        }
        if (name == names)
            std::snprintf(reason, sizeof reason, "%s", dlerror());
    }
    return fail(
        HGEMM_STATUS_NOT_SUPPORTED,
        "the host backend needs OpenBLAS; install libopenblas0 (Debian, Ubuntu) or openblas (Fedora): %s",
        reason);
}

}  // namespace hg
