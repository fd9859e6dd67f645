// cuBLAS as the tests call it, with the enumerations' values as plain numbers.
#pragma once

#include "abi.hpp"
#include "fake.hpp"

extern "C" {
int cublasCreate_v2(void** handle);
int cublasDestroy_v2(void* handle);
int cublasSetStream_v2(void* handle, void* stream);
int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes);
int cublasSetPointerMode_v2(void* handle, int mode);
int cublasSetMathMode(void* handle, int mode);
int cublasSetSmCountTarget(void* handle, int count);
int cublasLtCreate(void** handle);
int cublasLtDestroy(void* handle);
int cublasLtMatmulDescCreate(void** desc, int compute, int scale);
int cublasLtMatmulDescDestroy(void* desc);
int cublasLtMatmulDescSetAttribute(void* desc, int which, const void* value, size_t bytes);
int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
int cublasLtMatrixLayoutDestroy(void* layout);
int cublasLtMatrixLayoutSetAttribute(void* layout, int which, const void* value, size_t bytes);
int cublasLtMatmulPreferenceCreate(void** preference);
int cublasLtMatmulPreferenceDestroy(void* preference);
int cublasLtMatmulPreferenceSetAttribute(void* preference, int which, const void* value, size_t bytes);
hg::shim::LtAlgoGetHeuristic cublasLtMatmulAlgoGetHeuristic;
hg::shim::LtAlgoInit cublasLtMatmulAlgoInit;
hg::shim::LtAlgoConfigSet cublasLtMatmulAlgoConfigSetAttribute;
hg::shim::LtMatmul cublasLtMatmul;
hg::shim::GemmEx<int> cublasGemmEx;
hg::shim::GemmEx<int64_t> cublasGemmEx_64;
hg::shim::GemmStridedBatchedEx<int> cublasGemmStridedBatchedEx;
hg::shim::GemmStridedBatchedEx<int64_t> cublasGemmStridedBatchedEx_64;
hg::shim::GemmBatchedEx<int> cublasGemmBatchedEx;
hg::shim::GemmBatchedEx<int64_t> cublasGemmBatchedEx_64;
hg::shim::GemmGroupedBatchedEx<int> cublasGemmGroupedBatchedEx;
hg::shim::GemmGroupedBatchedEx<int64_t> cublasGemmGroupedBatchedEx_64;
hg::shim::SgemmEx<int> cublasSgemmEx;
hg::shim::SgemmEx<int64_t> cublasSgemmEx_64;
hg::shim::Hgemm<int> cublasHgemm;
hg::shim::Hgemm<int64_t> cublasHgemm_64;
hg::shim::HgemmStridedBatched<int> cublasHgemmStridedBatched;
hg::shim::HgemmStridedBatched<int64_t> cublasHgemmStridedBatched_64;
hg::shim::HgemmBatched<int> cublasHgemmBatched;
hg::shim::HgemmBatched<int64_t> cublasHgemmBatched_64;
}
