// The C API of symmetric results: the arguments of every function become an hgemm_args_t.
#include "src/api/general_form.hpp"
#include "src/check/request.hpp"

#include <cstdint>

namespace hg {
namespace {

// The arguments of each function, in order.
namespace signatures {
using enum Arg;

constexpr Arg syrk_args[] = {Handle, Layout, Uplo, Trans, N, K, Alpha, A, Lda, Beta, InOut, LdInOut};
constexpr Arg syrkx_args[] = {Handle, Layout, Uplo, Trans, N,    K,     Alpha,
                              A,      Lda,    B,    Ldb,   Beta, InOut, LdInOut};
constexpr Arg strided_syrk_args[] = {Handle, Layout,  Uplo, Trans, N,       K,           Alpha, A,
                                     Lda,    StrideA, Beta, InOut, LdInOut, StrideInOut, Count};
}  // namespace signatures

// A wrong `trans` is refused later.
hgemm_args_t symmetric_args(hgemm_type_t type, hgemm_layout_t layout, hgemm_uplo_t uplo, hgemm_op_t trans,
                            int64_t n, int64_t k, float alpha, float beta)
{
    const hgemm_op_t other = trans == HGEMM_NO_TRANS ? HGEMM_TRANS : HGEMM_NO_TRANS;
    hgemm_args_t g = basic_args(type, layout, trans, other, n, n, k, alpha, beta);
    g.uplo = uplo;
    return g;
}

}  // namespace
}  // namespace hg

using namespace hg;

#define HGEMM_SYMMETRIC_FORMS(prefix, element, type)                                                       \
    extern "C" hgemm_status_t prefix(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_uplo_t uplo,      \
                                     hgemm_op_t trans, int64_t n, int64_t k, float alpha,                  \
                                     const element* A, int64_t lda, float beta, element* C, int64_t ldc)   \
    {                                                                                                      \
        hgemm_args_t g = symmetric_args(type, layout, uplo, trans, n, k, alpha, beta);                     \
        set_matrices(g, A, lda, A, lda, C, ldc);                                                           \
        return run_form(#prefix, handle, signatures::syrk_args, g);                                        \
    }                                                                                                      \
    extern "C" hgemm_status_t prefix##x(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_uplo_t uplo,   \
                                        hgemm_op_t trans, int64_t n, int64_t k, float alpha,               \
                                        const element* A, int64_t lda, const element* B, int64_t ldb,      \
                                        float beta, element* C, int64_t ldc)                               \
    {                                                                                                      \
        hgemm_args_t g = symmetric_args(type, layout, uplo, trans, n, k, alpha, beta);                     \
        set_matrices(g, A, lda, B, ldb, C, ldc);                                                           \
        return run_form(#prefix "x", handle, signatures::syrkx_args, g);                                   \
    }                                                                                                      \
    extern "C" hgemm_status_t prefix##_strided_batched(                                                    \
        hgemm_handle_t handle, hgemm_layout_t layout, hgemm_uplo_t uplo, hgemm_op_t trans, int64_t n,      \
        int64_t k, float alpha, const element* A, int64_t lda, int64_t stride_a, float beta, element* C,   \
        int64_t ldc, int64_t stride_c, int64_t batch_count)                                                \
    {                                                                                                      \
        hgemm_args_t g = symmetric_args(type, layout, uplo, trans, n, k, alpha, beta);                     \
        set_matrices(g, A, lda, A, lda, C, ldc);                                                           \
        g.stride_a = g.stride_b = stride_a;                                                                \
        g.stride_c = g.stride_d = stride_c;                                                                \
        g.batch_count = batch_count;                                                                       \
        return run_form(#prefix "_strided_batched", handle, signatures::strided_syrk_args, g);             \
    }

HGEMM_SYMMETRIC_FORMS(hsyrk, hgemm_half_t, HGEMM_F16)
HGEMM_SYMMETRIC_FORMS(bsyrk, hgemm_bfloat16_t, HGEMM_BF16)
