#include "src/tools/bench/cublas.hpp"

#include "src/tools/bench/dynamic_library.hpp"
#include "src/tools/bench/output.hpp"

#include <algorithm>
#include <limits>

namespace hg::bench {

// Declarations follow cublas_api.h of cuBLAS 12 and 13.
struct Cublas::Functions {
    int (*create)(void**);
    int (*destroy)(void*);
    int (*version)(void*, int*);
    int (*set_stream)(void*, CUstream_st*);
    int (*set_workspace)(void*, void*, size_t);
    int (*gemm_ex)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
                   int, const void*, void*, int, int, int, int);
    int (*gemm_strided_batched_ex)(void*, int, int, int, int, int, const void*, const void*, int, int,
                                   long long, const void*, int, int, long long, const void*, void*, int,
                                   int, long long, int, int, int);
};

namespace {

constexpr size_t cublas_workspace_bytes = size_t{64} << 20;

const std::vector<const char*> cublas_names = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                               "/usr/local/cuda/lib64/libcublas.so", "libcublas.so"};

}  // namespace

std::unique_ptr<Cublas> Cublas::load(const std::string& path, test::Memory& memory, CUstream_st* stream,
                                     std::string* why)
{
    void* library = open_library(path, cublas_names, why);
    if (!library)
        return nullptr;
    std::unique_ptr<Cublas> cublas(new Cublas);
    cublas->functions_ = std::make_unique<Functions>();
    Functions& f = *cublas->functions_;
    resolve(library, "cublasCreate_v2", f.create);
    resolve(library, "cublasDestroy_v2", f.destroy);
    resolve(library, "cublasGetVersion_v2", f.version);
    resolve(library, "cublasSetStream_v2", f.set_stream);
    resolve(library, "cublasSetWorkspace_v2", f.set_workspace);
    resolve(library, "cublasGemmEx", f.gemm_ex);
    resolve(library, "cublasGemmStridedBatchedEx", f.gemm_strided_batched_ex);
    require_success(f.create(&cublas->handle_), "cublasCreate");
    int version = 0;
    require_success(f.version(cublas->handle_, &version), "cublasGetVersion");
    cublas->version_ = std::to_string(version);
    // In this order: a change of stream gives the workspace up.
    require_success(f.set_stream(cublas->handle_, stream), "cublasSetStream");
    cublas->workspace_ = test::Block(memory, cublas_workspace_bytes);
    require_success(f.set_workspace(cublas->handle_, cublas->workspace_.get(), cublas_workspace_bytes),
                    "cublasSetWorkspace");
    return cublas;
}

Cublas::~Cublas()
{
    if (handle_)
        functions_->destroy(handle_);
}

bool Cublas::serves(const Product& p)
{
    constexpr int64_t largest = std::numeric_limits<int>::max();
    return !p.output.has(~unsigned{Output::F32 | Output::Beta | Output::Symmetric}) &&
           std::max({p.m, p.n, p.k, p.lda(), p.ldb(), p.ldd(), p.batch}) <= largest;
}

void Cublas::multiply(const Product& p, const Operands& o)
{
    constexpr int compute_32f = 68, algorithm_default = -1;
    const int type = p.type == HGEMM_F16 ? 2 : 14;          // CUDA_R_16F, CUDA_R_16BF
    const int type_d = p.type_d() == HGEMM_F32 ? 0 : type;  // CUDA_R_32F
    const float alpha = 1, beta = p.output.beta();
    const int op_b = p.b_along_k() ? 1 : 0, op_a = p.a_along_k() ? 0 : 1;  // CUBLAS_OP_N, CUBLAS_OP_T
    const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k),
               lda = static_cast<int>(p.lda()), ldb = static_cast<int>(p.ldb()),
               ldd = static_cast<int>(p.ldd());
    if (p.batch == 1)
        require_success(functions_->gemm_ex(handle_, op_b, op_a, n, m, k, &alpha, o.b, type, ldb, o.a, type,
                                            lda, &beta, o.d, type_d, ldd, compute_32f, algorithm_default),
                        "cublasGemmEx");
    else
        require_success(functions_->gemm_strided_batched_ex(
                            handle_, op_b, op_a, n, m, k, &alpha, o.b, type, ldb, p.b_stride(), o.a, type,
                            lda, p.a_stride(), &beta, o.d, type_d, ldd, p.d_stride(),
                            static_cast<int>(p.batch), compute_32f, algorithm_default),
                        "cublasGemmStridedBatchedEx");
}

}  // namespace hg::bench
