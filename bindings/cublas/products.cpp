// The GEMM functions of libcublas, under their own names.
#include "real.hpp"
#include "serve.hpp"

using namespace hg::shim;

#define DEFINE_GEMM_EX(name, Int)                                                                          \
    HGEMM_SHIM_EXPORT name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha,   \
                           const void* a, int type_a, Int lda, const void* b, int type_b, Int ldb,         \
                           const void* beta, void* c, int type_c, Int ldc, int compute, int algorithm)     \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, type_a,  \
                             lda, b, type_b, ldb, beta, c, type_c, ldc, compute, algorithm);               \
        };                                                                                                 \
        return serve(Product::name, handle,                                                                \
                     {transa, transb,     m,      n,       k,         alpha, a,    type_a, lda,            \
                      0,      b,          type_b, ldb,     0,         beta,  c,    type_c, ldc,            \
                      0,      Batch::One, 1,      compute, algorithm, false, false},                       \
                     RealCall(call));                                                                      \
    }
DEFINE_GEMM_EX(cublasGemmEx, int)
DEFINE_GEMM_EX(cublasGemmEx_64, int64_t)

#define DEFINE_GEMM_STRIDED_BATCHED_EX(name, Int)                                                          \
    HGEMM_SHIM_EXPORT name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha,   \
                           const void* a, int type_a, Int lda, long long stride_a, const void* b,          \
                           int type_b, Int ldb, long long stride_b, const void* beta, void* c, int type_c, \
                           Int ldc, long long stride_c, Int batch, int compute, int algorithm)             \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, type_a,  \
                             lda, stride_a, b, type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c,      \
                             batch, compute, algorithm);                                                   \
        };                                                                                                 \
        return serve(                                                                                      \
            Product::name, handle,                                                                         \
            {transa, transb,  m,         n,        k,    alpha, a,      type_a, lda,      stride_a,        \
             b,      type_b,  ldb,       stride_b, beta, c,     type_c, ldc,    stride_c, Batch::Strided,  \
             batch,  compute, algorithm, false,    false},                                                 \
            RealCall(call));                                                                               \
    }
DEFINE_GEMM_STRIDED_BATCHED_EX(cublasGemmStridedBatchedEx, int)
DEFINE_GEMM_STRIDED_BATCHED_EX(cublasGemmStridedBatchedEx_64, int64_t)

#define DEFINE_GEMM_BATCHED_EX(name, Int)                                                                  \
    HGEMM_SHIM_EXPORT name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha,   \
                           const void* const* a, int type_a, Int lda, const void* const* b, int type_b,    \
                           Int ldb, const void* beta, void* const* c, int type_c, Int ldc, Int batch,      \
                           int compute, int algorithm)                                                     \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, type_a,  \
                             lda, b, type_b, ldb, beta, c, type_c, ldc, batch, compute, algorithm);        \
        };                                                                                                 \
        return serve(Product::name, handle, {transa, transb,  m,         n,                                \
                                             k,      alpha,   a,         type_a,                           \
                                             lda,    0,       b,         type_b,                           \
                                             ldb,    0,       beta,      const_cast<void**>(c),            \
                                             type_c, ldc,     0,         Batch::Arrays,                    \
                                             batch,  compute, algorithm, false,                            \
                                             false},                                                       \
                     RealCall(call));                                                                      \
    }
DEFINE_GEMM_BATCHED_EX(cublasGemmBatchedEx, int)
DEFINE_GEMM_BATCHED_EX(cublasGemmBatchedEx_64, int64_t)

#define DEFINE_GEMM_GROUPED_BATCHED_EX(name, Int)                                                          \
    HGEMM_SHIM_EXPORT name(void* handle, const int* transa, const int* transb, const Int* m, const Int* n, \
                           const Int* k, const void* alpha, const void* const* a, int type_a,              \
                           const Int* lda, const void* const* b, int type_b, const Int* ldb,               \
                           const void* beta, void* const* c, int type_c, const Int* ldc, Int groups,       \
                           const Int* sizes, int compute)                                                  \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, type_a,  \
                             lda, b, type_b, ldb, beta, c, type_c, ldc, groups, sizes, compute);           \
        };                                                                                                 \
        return serve(Product::name, handle,                                                                \
                     GroupedCall{transa, transb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,  \
                                 type_c, ldc, groups, sizes, compute},                                     \
                     RealCall(call));                                                                      \
    }
DEFINE_GEMM_GROUPED_BATCHED_EX(cublasGemmGroupedBatchedEx, int)
DEFINE_GEMM_GROUPED_BATCHED_EX(cublasGemmGroupedBatchedEx_64, int64_t)

#define DEFINE_SGEMM_EX(name, Int)                                                                         \
    HGEMM_SHIM_EXPORT name(void* handle, int transa, int transb, Int m, Int n, Int k, const float* alpha,  \
                           const void* a, int type_a, Int lda, const void* b, int type_b, Int ldb,         \
                           const float* beta, void* c, int type_c, Int ldc)                                \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, type_a,  \
                             lda, b, type_b, ldb, beta, c, type_c, ldc);                                   \
        };                                                                                                 \
        return serve(Product::name, handle,                                                                \
                     {transa,       transb, m,   n,    k, alpha,  a,   type_a, lda,        0, b,           \
                      type_b,       ldb,    0,   beta, c, type_c, ldc, 0,      Batch::One, 1, compute_32f, \
                      algo_default, false,  true},                                                         \
                     RealCall(call));                                                                      \
    }
DEFINE_SGEMM_EX(cublasSgemmEx, int)
DEFINE_SGEMM_EX(cublasSgemmEx_64, int64_t)

namespace {

// All matrices and scalars are fp16; cublasHgemm does not say how precise the sums are.
GemmCall half_call(int transa, int transb, int64_t m, int64_t n, int64_t k, const void* alpha,
                   const void* a, int64_t lda, int64_t stride_a, const void* b, int64_t ldb,
                   int64_t stride_b, const void* beta, void* c, int64_t ldc, int64_t stride_c, Batch kind,
                   int64_t batch)
{
    return {transa,       transb, m,        n,    k, alpha, a,   r_16f,    lda,  stride_a, b,
            r_16f,        ldb,    stride_b, beta, c, r_16f, ldc, stride_c, kind, batch,    compute_32f,
            algo_default, true,   true};
}

}  // namespace

#define DEFINE_HGEMM(name, Int)                                                                            \
    HGEMM_SHIM_EXPORT name(void* handle, int transa, int transb, Int m, Int n, Int k,                      \
                           const uint16_t* alpha, const uint16_t* a, Int lda, const uint16_t* b, Int ldb,  \
                           const uint16_t* beta, uint16_t* c, Int ldc)                                     \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, lda, b,  \
                             ldb, beta, c, ldc);                                                           \
        };                                                                                                 \
        return serve(Product::name, handle,                                                                \
                     half_call(transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0,      \
                               Batch::One, 1),                                                             \
                     RealCall(call));                                                                      \
    }
DEFINE_HGEMM(cublasHgemm, int)
DEFINE_HGEMM(cublasHgemm_64, int64_t)

#define DEFINE_HGEMM_STRIDED_BATCHED(name, Int)                                                            \
    HGEMM_SHIM_EXPORT name(void* handle, int transa, int transb, Int m, Int n, Int k,                      \
                           const uint16_t* alpha, const uint16_t* a, Int lda, long long stride_a,          \
                           const uint16_t* b, Int ldb, long long stride_b, const uint16_t* beta,           \
                           uint16_t* c, Int ldc, long long stride_c, Int batch)                            \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, lda,     \
                             stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);                   \
        };                                                                                                 \
        return serve(Product::name, handle,                                                                \
                     half_call(transa, transb, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta,   \
                               c, ldc, stride_c, Batch::Strided, batch),                                   \
                     RealCall(call));                                                                      \
    }
DEFINE_HGEMM_STRIDED_BATCHED(cublasHgemmStridedBatched, int)
DEFINE_HGEMM_STRIDED_BATCHED(cublasHgemmStridedBatched_64, int64_t)

#define DEFINE_HGEMM_BATCHED(name, Int)                                                                    \
    HGEMM_SHIM_EXPORT name(void* handle, int transa, int transb, Int m, Int n, Int k,                      \
                           const uint16_t* alpha, const uint16_t* const* a, Int lda,                       \
                           const uint16_t* const* b, Int ldb, const uint16_t* beta, uint16_t* const* c,    \
                           Int ldc, Int batch)                                                             \
    {                                                                                                      \
        const auto call = [&] {                                                                            \
            return call_real(real(Library::Blas).name, handle, transa, transb, m, n, k, alpha, a, lda, b,  \
                             ldb, beta, c, ldc, batch);                                                    \
        };                                                                                                 \
        return serve(Product::name, handle,                                                                \
                     half_call(transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta,                 \
                               const_cast<uint16_t**>(c), ldc, 0, Batch::Arrays, batch),                   \
                     RealCall(call));                                                                      \
    }
DEFINE_HGEMM_BATCHED(cublasHgemmBatched, int)
DEFINE_HGEMM_BATCHED(cublasHgemmBatched_64, int64_t)
