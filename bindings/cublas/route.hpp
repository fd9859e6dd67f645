// Translates a call of cuBLAS to the arguments of hgemm_gemm_ex(), or to a reason to pass it on. Pure
// functions: no state, GPU or real library.
#pragma once

#include "abi.hpp"
#include "hgemm.h"

#include <vector>

namespace hg::shim {

enum class Reason {
    None,  // libhgemm serves it
#define HGEMM_REASON(name, strict, text) name,
#include "reasons.def"
#undef HGEMM_REASON
    count
};

const char* text_of(Reason reason);

// Does a half-precision product go to the real library in strict mode as well?
bool passes_in_strict_mode(Reason reason);

enum class Batch { One, Strided, Arrays };

// Any of the cublasGemmEx, cublasSgemmEx and cublasHgemm calls. For Batch::Arrays a, b and c are arrays of
// pointers.
struct GemmCall {
    int transa, transb;
    int64_t m, n, k;
    const void* alpha;
    const void* a;
    int type_a;
    int64_t lda, stride_a;
    const void* b;
    int type_b;
    int64_t ldb, stride_b;
    const void* beta;
    void* c;
    int type_c;
    int64_t ldc, stride_c;
    Batch kind;
    int64_t batch;
    int compute;
    int algorithm;
    bool half_scalars;       // cublasHgemm: alpha and beta are fp16
    bool follows_math_mode;  // it names no compute type
};

Reason route(const GemmCall& call, int pointer_mode, hgemm_args_t& args);

// Is A or B fp16 or bf16?
bool is_half(const GemmCall& call);

// An array of int or int64_t with an element for each group.
class PerGroup {
public:
    PerGroup(const int* list) : narrow_(list) {}
    PerGroup(const int64_t* list) : wide_(list) {}
    int64_t operator[](int64_t group) const { return wide_ ? wide_[group] : narrow_[group]; }
    bool is_null() const { return !wide_ && !narrow_; }

private:
    const int* narrow_ = nullptr;
    const int64_t* wide_ = nullptr;
};

// cublasGemmGroupedBatchedEx. a, b and c are arrays of pointers to the problems of all groups.
struct GroupedCall {
    const int *transa, *transb;
    PerGroup m, n, k;
    const void* alpha;
    const void* const* a;
    int type_a;
    PerGroup lda;
    const void* const* b;
    int type_b;
    PerGroup ldb;
    const void* beta;
    void* const* c;
    int type_c;
    PerGroup ldc;
    int64_t groups;
    PerGroup sizes;
    int compute;
};

// A problem for each group that changes C, a batch of arrays of pointers.
Reason route(const GroupedCall& call, int pointer_mode, std::vector<hgemm_args_t>& problems);

bool is_half(const GroupedCall& call);

// Has libhgemm compute one half of D, and mirror it, if D is a matrix times its transpose and no more.
void use_symmetry(hgemm_args_t& args);

// One matrix of cublasLtMatmul as its layout describes it.
struct LtMatrix {
    int type = -1, order = -1;
    uint64_t rows = 0, columns = 0;
    int64_t ld = 0;
    int batch = 1, batch_mode = batch_strided;
    int64_t stride = 0;
};

// cublasLtMatmul, its descriptors read.
struct LtCall {
    int compute = -1, scale_type = -1, pointer_mode = -1;
    int transa = -1, transb = -1, transc = op_n, fill = fill_full;
    uint32_t epilogue = 0;
    bool scaled = false;  // has scale factors, or is to report a maximum
    const void* bias = nullptr;
    int64_t bias_stride = 0;
    int bias_type = -1;  // -1: D's type
    int sm_count = 0;
    LtMatrix a, b, c, d;
    const void *alpha, *beta;
    const void *a_data, *b_data, *c_data;
    void* d_data;
};

// Is beta known to be 0? Then C and its layout may be null, as in XLA's calls.
bool ignores_c(const LtCall& call);

Reason route(const LtCall& call, hgemm_args_t& args);

// Is A or B fp16 or bf16? True as well if the types were not read: then they may be.
bool is_half(const LtCall& call);

}  // namespace hg::shim
