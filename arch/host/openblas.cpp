#include "arch/host/openblas.hpp"

#include <dlfcn.h>

namespace hg {

const char* const openblas_names[] = {"libopenblas.so.0", "libopenblas.so", nullptr};

Status load_openblas(const char* const* names, OpenBlas& blas)
{
    blas = {};
    for (const char* const* name = names; *name && !blas.sgemm; ++name) {
        // Never unloaded: OpenBLAS has threads of its own, which must not lose their code.
        void* library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library)
            blas.sgemm = reinterpret_cast<decltype(blas.sgemm)>(dlsym(library, "cblas_sgemm"));
    }
    if (blas.sgemm)
        return ok;
    return fail(HGEMM_STATUS_NOT_SUPPORTED,
                "the host backend needs OpenBLAS, and there is no %s with cblas_sgemm; install libopenblas0 "
                "(Debian, Ubuntu) or openblas (Fedora)",
                names[0] ? names[0] : "library");
}

}  // namespace hg
