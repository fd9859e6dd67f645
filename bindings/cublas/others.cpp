// cublasLtMatmul, and what is called beside products: each goes to the real library, and tells us what no
// getter of it would.
#include "lt_call.hpp"
#include "real.hpp"
#include "serve.hpp"

#include <pthread.h>

using namespace hg::shim;

#define EXPORT extern "C" __attribute__((visibility("default"))) int

EXPORT cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* layout_a,
                      const void* b, void* layout_b, const void* beta, const void* c, void* layout_c,
                      void* d, void* layout_d, const LtAlgorithm* algorithm, void* workspace,
                      size_t workspace_bytes, void* stream)
{
    const auto call = [&] {
        LtMatmul* function = real(Library::Lt).cublasLtMatmul;
        return function ? function(handle, desc, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d,
                                   layout_d, algorithm, workspace, workspace_bytes, stream)
                        : status_not_initialized;
    };
    LtCall lt;
    lt.alpha = alpha;
    lt.beta = beta;
    lt.a_data = a;
    lt.b_data = b;
    lt.c_data = c;
    lt.d_data = d;
    return serve(
        handle,
        {desc, {layout_a, layout_b, layout_c, layout_d}, algorithm, {workspace, workspace_bytes}, stream},
        lt, RealCall(call));
}

EXPORT cublasLtMatmulAlgoInit(void* handle, int compute, int scale, int type_a, int type_b, int type_c,
                              int type_d, int id, LtAlgorithm* algorithm)
{
    LtAlgoInit* function = real(Library::Lt).cublasLtMatmulAlgoInit;
    const int status = function
                           ? function(handle, compute, scale, type_a, type_b, type_c, type_d, id, algorithm)
                           : status_not_initialized;
    if (status == status_success && !is_nested())
        remember_made(*algorithm);
    return status;
}

EXPORT cublasLtMatmulAlgoConfigSetAttribute(LtAlgorithm* algorithm, int attribute, const void* value,
                                            size_t bytes)
{
    LtAlgoConfigSet* function = real(Library::Lt).cublasLtMatmulAlgoConfigSetAttribute;
    const int status = function ? function(algorithm, attribute, value, bytes) : status_not_initialized;
    if (status == status_success && !is_nested())
        remember_made(*algorithm);
    return status;
}

EXPORT cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes)
{
    SetWorkspace* function = real(Library::Blas).cublasSetWorkspace_v2;
    const int status = function ? function(handle, workspace, bytes) : status_not_initialized;
    if (status == status_success)
        set_workspace(handle, {workspace, bytes});
    return status;
}

// A new stream takes the workspace away, as cuBLAS documents.
EXPORT cublasSetStream_v2(void* handle, void* stream)
{
    SetPointer* function = real(Library::Blas).cublasSetStream_v2;
    const int status = function ? function(handle, stream) : status_not_initialized;
    if (status == status_success)
        set_workspace(handle, {});
    return status;
}

EXPORT cublasDestroy_v2(void* handle)
{
    Destroy* function = real(Library::Blas).cublasDestroy_v2;
    const int status = function ? function(handle) : status_not_initialized;
    forget(handle);
    return status;
}

EXPORT cublasLtDestroy(void* handle)
{
    Destroy* function = real(Library::Lt).cublasLtDestroy;
    const int status = function ? function(handle) : status_not_initialized;
    forget(handle);
    return status;
}

namespace {

[[gnu::constructor]] void watch_forks()
{
    pthread_atfork(nullptr, nullptr, [] {
        forget_all();
        reset_counts();
    });
}

}  // namespace
