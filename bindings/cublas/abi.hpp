// The part of cuBLAS's binary interface that the shim uses. Declared here so that the shim builds without a
// CUDA toolkit and serves more than one version; a test compares it with NVIDIA's headers.
#pragma once

#include <cstddef>
#include <cstdint>

// Before a function that stands in for cuBLAS's.
#define HGEMM_SHIM_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace hg::shim {

// cublasStatus_t
constexpr int status_success = 0, status_not_initialized = 1, status_execution_failed = 13,
              status_not_supported = 15;

// cudaDataType
constexpr int r_32f = 0, r_16f = 2, r_16bf = 14;

// cublasOperation_t
constexpr int op_n = 0, op_t = 1, op_c = 2;

// cublasComputeType_t. The fast ones are for operands in fp32.
constexpr int compute_16f = 64, compute_32f = 68, compute_32f_fast_16f = 74, compute_32f_fast_16bf = 75,
              compute_32f_fast_tf32 = 77;

// cublasPointerMode_t, cublasLtPointerMode_t
constexpr int pointers_host = 0, pointers_device = 1;

// cublasMath_t
constexpr int math_pedantic = 2;

// cublasGemmAlgo_t: none of these has an effect from compute capability 8.0 on.
constexpr int algo_default = -1, algo_last = 23, algo_tensor_default = 99, algo_tensor_last = 115;

// libraryPropertyType
constexpr int property_major = 0;

// cublasLtMatmulDescAttributes_t
enum DescAttribute : int {
    desc_compute_type = 0,
    desc_scale_type = 1,
    desc_pointer_mode = 2,
    desc_transa = 3,
    desc_transb = 4,
    desc_transc = 5,
    desc_fill_mode = 6,
    desc_epilogue = 7,
    desc_bias_pointer = 8,
    desc_bias_batch_stride = 10,
    desc_sm_count_target = 15,
    desc_a_scale_pointer = 17,
    desc_b_scale_pointer = 18,
    desc_c_scale_pointer = 19,
    desc_d_scale_pointer = 20,
    desc_amax_d_pointer = 21,
    desc_bias_data_type = 26,
    desc_atomic_sync_in_counters = 29,   // cuBLAS 12 alone
    desc_atomic_sync_out_counters = 30,  // cuBLAS 12 alone
    desc_d_out_scale_pointer = 36
};

// cublasLtMatrixLayoutAttribute_t
enum LayoutAttribute : int {
    layout_type = 0,
    layout_order = 1,
    layout_rows = 2,
    layout_cols = 3,
    layout_ld = 4,
    layout_batch_count = 5,
    layout_batch_stride = 6,
    layout_batch_mode = 8
};

// cublasFillMode_t, cublasLtOrder_t, cublasLtBatchMode_t
constexpr int fill_full = 2;
constexpr int order_col = 0, order_row = 1;
constexpr int batch_strided = 0, batch_pointer_array = 1;

// cublasLtEpilogue_t: sums of these bits, the first one alone for nothing.
constexpr uint32_t epilogue_default = 1, epilogue_relu = 2, epilogue_bias = 4, epilogue_gelu = 32;

// cublasLtMatmulAlgo_t
struct LtAlgorithm {
    uint64_t data[8];
};

// cublasLtMatmulHeuristicResult_t
struct LtHeuristicResult {
    LtAlgorithm algorithm;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};

// cublasLtMatmulPreferenceAttributes_t; cublasLtReductionScheme_t: a mask, 0 for algorithms without split-K
constexpr int preference_reduction_mask = 3;
constexpr uint32_t reduction_schemes = 7;

// Signatures: enumerations are int and handles void*, which the ABI passes in the same way. Int is int, or
// int64_t for the functions that end in _64.
template <typename Int>
using GemmEx = int(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha,
                   const void* a, int type_a, Int lda, const void* b, int type_b, Int ldb, const void* beta,
                   void* c, int type_c, Int ldc, int compute, int algorithm);
template <typename Int>
using GemmStridedBatchedEx = int(void* handle, int transa, int transb, Int m, Int n, Int k,
                                 const void* alpha, const void* a, int type_a, Int lda, long long stride_a,
                                 const void* b, int type_b, Int ldb, long long stride_b, const void* beta,
                                 void* c, int type_c, Int ldc, long long stride_c, Int batch, int compute,
                                 int algorithm);
template <typename Int>
using GemmBatchedEx = int(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha,
                          const void* const* a, int type_a, Int lda, const void* const* b, int type_b,
                          Int ldb, const void* beta, void* const* c, int type_c, Int ldc, Int batch,
                          int compute, int algorithm);
// Everything but the matrices lies in host memory: arrays with an element for each group.
template <typename Int>
using GemmGroupedBatchedEx = int(void* handle, const int* transa, const int* transb, const Int* m,
                                 const Int* n, const Int* k, const void* alpha, const void* const* a,
                                 int type_a, const Int* lda, const void* const* b, int type_b,
                                 const Int* ldb, const void* beta, void* const* c, int type_c,
                                 const Int* ldc, Int groups, const Int* sizes, int compute);
template <typename Int>
using SgemmEx = int(void* handle, int transa, int transb, Int m, Int n, Int k, const float* alpha,
                    const void* a, int type_a, Int lda, const void* b, int type_b, Int ldb,
                    const float* beta, void* c, int type_c, Int ldc);
template <typename Int>
using Hgemm = int(void* handle, int transa, int transb, Int m, Int n, Int k, const uint16_t* alpha,
                  const uint16_t* a, Int lda, const uint16_t* b, Int ldb, const uint16_t* beta, uint16_t* c,
                  Int ldc);
template <typename Int>
using HgemmStridedBatched = int(void* handle, int transa, int transb, Int m, Int n, Int k,
                                const uint16_t* alpha, const uint16_t* a, Int lda, long long stride_a,
                                const uint16_t* b, Int ldb, long long stride_b, const uint16_t* beta,
                                uint16_t* c, Int ldc, long long stride_c, Int batch);
template <typename Int>
using HgemmBatched = int(void* handle, int transa, int transb, Int m, Int n, Int k, const uint16_t* alpha,
                         const uint16_t* const* a, Int lda, const uint16_t* const* b, Int ldb,
                         const uint16_t* beta, uint16_t* const* c, Int ldc, Int batch);

using LtMatmul = int(void* handle, void* desc, const void* alpha, const void* a, void* layout_a,
                     const void* b, void* layout_b, const void* beta, const void* c, void* layout_c,
                     void* d, void* layout_d, const LtAlgorithm* algorithm, void* workspace,
                     size_t workspace_bytes, void* stream);
using LtAlgoInit = int(void* handle, int compute, int scale, int type_a, int type_b, int type_c, int type_d,
                       int id, LtAlgorithm* algorithm);
using LtAlgoGetHeuristic = int(void* handle, void* desc, void* a, void* b, void* c, void* d,
                               void* preference, int asked, LtHeuristicResult* results, int* found);
using LtAlgoConfigSet = int(LtAlgorithm* algorithm, int attribute, const void* value, size_t bytes);
using LtGetAttribute = int(void* object, int attribute, void* value, size_t bytes, size_t* written);

using GetInt = int(void* handle, int* value);
using GetPointer = int(void* handle, void** value);
using SetPointer = int(void* handle, void* value);
using SetWorkspace = int(void* handle, void* workspace, size_t bytes);
using Destroy = int(void* handle);
using GetProperty = int(int which, int* value);

}  // namespace hg::shim
