// cublasLtMatmul, and what is called beside products: each goes to the real library, and tells us what no
// getter of it would.
#include "lt_call.hpp"
#include "real.hpp"
#include "serve.hpp"
#include "verify.hpp"

#include <pthread.h>

using namespace hg::shim;

HGEMM_SHIM_EXPORT cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* layout_a,
                                 const void* b, void* layout_b, const void* beta, const void* c,
                                 void* layout_c, void* d, void* layout_d, const LtAlgorithm* algorithm,
                                 void* workspace, size_t workspace_bytes, void* stream)
{
    const auto call = [&] {
        return call_real(real(Library::Lt).cublasLtMatmul, handle, desc, alpha, a, layout_a, b, layout_b,
                         beta, c, layout_c, d, layout_d, algorithm, workspace, workspace_bytes, stream);
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

HGEMM_SHIM_EXPORT cublasLtMatmulAlgoInit(void* handle, int compute, int scale, int type_a, int type_b,
                                         int type_c, int type_d, int id, LtAlgorithm* algorithm)
{
    const int status = call_real(real(Library::Lt).cublasLtMatmulAlgoInit, handle, compute, scale, type_a,
                                 type_b, type_c, type_d, id, algorithm);
    if (status == status_success && !is_nested())
        remember(*algorithm, Reason::Algorithm);
    return status;
}

HGEMM_SHIM_EXPORT cublasLtMatmulAlgoConfigSetAttribute(LtAlgorithm* algorithm, int attribute,
                                                       const void* value, size_t bytes)
{
    const int status = call_real(real(Library::Lt).cublasLtMatmulAlgoConfigSetAttribute, algorithm,
                                 attribute, value, bytes);
    if (status == status_success && !is_nested())
        remember(*algorithm, Reason::Algorithm);
    return status;
}

// Who wants nothing but algorithms that do not split k is promised that sums do not depend on how many
// multiprocessors a shape keeps busy.
HGEMM_SHIM_EXPORT cublasLtMatmulAlgoGetHeuristic(void* handle, void* desc, void* a, void* b, void* c,
                                                 void* d, void* preference, int asked,
                                                 LtHeuristicResult* results, int* found)
{
    const Real& lt = real(Library::Lt);
    const int status = call_real(lt.cublasLtMatmulAlgoGetHeuristic, handle, desc, a, b, c, d, preference,
                                 asked, results, found);
    if (status == status_success && !is_nested() && forbids_split(lt, preference))
        for (int i = 0; i < *found; ++i)
            remember(results[i].algorithm, Reason::Split);
    return status;
}

HGEMM_SHIM_EXPORT cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes)
{
    const int status = call_real(real(Library::Blas).cublasSetWorkspace_v2, handle, workspace, bytes);
    if (status == status_success)
        set_workspace(handle, {workspace, bytes});
    return status;
}

// A new stream takes the workspace away, as cuBLAS documents.
HGEMM_SHIM_EXPORT cublasSetStream_v2(void* handle, void* stream)
{
    const int status = call_real(real(Library::Blas).cublasSetStream_v2, handle, stream);
    if (status == status_success)
        take_workspace(handle);
    return status;
}

HGEMM_SHIM_EXPORT cublasDestroy_v2(void* handle)
{
    return forget(handle, [&] { return call_real(real(Library::Blas).cublasDestroy_v2, handle); });
}

HGEMM_SHIM_EXPORT cublasLtDestroy(void* handle)
{
    return forget(handle, [&] { return call_real(real(Library::Lt).cublasLtDestroy, handle); });
}

namespace {

// A child has none of the threads that may hold our locks: what those protect stays behind.
[[gnu::constructor]] void watch_forks()
{
    pthread_atfork(nullptr, nullptr, [] {
        leave_search_behind();
        leave_handles_behind();
        leave_algorithms_behind();
        leave_differences_behind();
        reset_counts();
    });
}

}  // namespace
