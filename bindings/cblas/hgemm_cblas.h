/*
 * libhgemm_cblas: half-precision products of CBLAS on host pointers, C99 and C++.
 *
 * The functions have the names, arguments and values of other libraries' CBLAS with 32-bit integers
 * (oneMKL's LP64, OpenBLAS without INTERFACE64); a program that was compiled with one of their headers
 * needs this one not, and must not include both. Unlike theirs:
 *   - A wrong argument neither prints nor ends the program: nothing is written, and the handler below is
 *     told. HGEMM_LOG=error writes a line for each.
 *   - Sums are fp32 and each result is rounded once, in cblas_hgemm as well.
 * Small products run on the CPU, large ones on CUDA device 0 if there is one; a function returns when C is
 * written. Any number of threads may call at the same time.
 */
#ifndef HGEMM_CBLAS_H
#define HGEMM_CBLAS_H

#include <hgemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * C (m x n) = alpha * op(A) * op(B) + beta * C. Layouts 101 and 102, transposes 111 to 113, as in hgemm.h,
 * and 114, conjugated without transpose, which is 111 on real data.
 */

/** fp16 all over, alpha and beta by their bits. Signature: oneMKL's, where MKL_F16 is unsigned short. */
HGEMM_API void cblas_hgemm(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m, int n, int k,
                           hgemm_half_t alpha, const hgemm_half_t *A, int lda, const hgemm_half_t *B,
                           int ldb, hgemm_half_t beta, hgemm_half_t *C, int ldc);

/** bf16 all over, alpha and beta by their bits. Signature: OpenBLAS's. */
HGEMM_API void cblas_bgemm(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m, int n, int k,
                           hgemm_bfloat16_t alpha, const hgemm_bfloat16_t *A, int lda,
                           const hgemm_bfloat16_t *B, int ldb, hgemm_bfloat16_t beta, hgemm_bfloat16_t *C,
                           int ldc);

/** fp16 operands, fp32 result. Signatures: OpenBLAS's, and oneMKL's under its name. */
HGEMM_API void cblas_shgemm(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m, int n,
                            int k, float alpha, const hgemm_half_t *A, int lda, const hgemm_half_t *B,
                            int ldb, float beta, float *C, int ldc);
HGEMM_API void cblas_gemm_f16f16f32(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m,
                                    int n, int k, float alpha, const hgemm_half_t *A, int lda,
                                    const hgemm_half_t *B, int ldb, float beta, float *C, int ldc);

/** bf16 operands, fp32 result. Signatures: OpenBLAS's, and oneMKL's under its name. */
HGEMM_API void cblas_sbgemm(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m, int n,
                            int k, float alpha, const hgemm_bfloat16_t *A, int lda,
                            const hgemm_bfloat16_t *B, int ldb, float beta, float *C, int ldc);
HGEMM_API void cblas_gemm_bf16bf16f32(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m,
                                      int n, int k, float alpha, const hgemm_bfloat16_t *A, int lda,
                                      const hgemm_bfloat16_t *B, int ldb, float beta, float *C, int ldc);

/**
 * Called in the calling thread for each call that failed. `argument` is the wrong one's position, counted
 * from 1 as by cblas_xerbla; 0 if no argument was wrong. `message` is one line that names it, its value and
 * what was wanted, and is valid during the call alone.
 */
typedef void (*hgemm_cblas_handler_t)(const char *function, int argument, const char *message);

/** Set the process's handler; NULL, as at first, ignores errors. Returns the one before. */
HGEMM_API hgemm_cblas_handler_t hgemm_cblas_set_handler(hgemm_cblas_handler_t handler);

/** Status of this thread's last product. */
HGEMM_API hgemm_status_t hgemm_cblas_status(void);

#ifdef __cplusplus
}
#endif

#endif
