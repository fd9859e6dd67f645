// OpenBLAS, found at run time. It is loaded with local scope, so that it does not stand in for the BLAS
// of the program, and no setting of it is changed, since the program may use the same copy.
#pragma once

namespace hg {

struct OpenBlas {
    // cblas_sgemm with 32-bit integers; the enums are passed as CBLAS's values. Null: there is no OpenBLAS.
    void (*sgemm)(int layout, int transa, int transb, int m, int n, int k, float alpha, const float* a,
                  int lda, const float* b, int ldb, float beta, float* c, int ldc) = nullptr;
    char missing[512] = "";  // why there is none, and what to install
};

// File names to try, in order; ends with null.
extern const char* const openblas_names[];

// Take the first of `names` that has a cblas_sgemm.
OpenBlas load_openblas(const char* const* names);

// The same of openblas_names, looked for once in the process.
const OpenBlas& openblas();

}  // namespace hg
