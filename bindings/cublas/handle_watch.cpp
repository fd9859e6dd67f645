// Functions that set what cuBLAS has no getter for: how algorithms of cublasLtMatmul were made, the
// workspace of a handle, its end. The shim notes it; the real library does the work.
#include "counts.hpp"
#include "handles.hpp"
#include "lt_call.hpp"
#include "real.hpp"
#include "real_call.hpp"
#include "verify.hpp"

#include <pthread.h>

using namespace hg::shim;

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

// A program that asks for algorithms without split-K relies on sums that do not depend on how many SMs a
// shape keeps busy. libhgemm promises that in batch-invariant mode alone.
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

// Setting a stream takes the workspace away, as cuBLAS documents.
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

// A forked child lacks the threads that may hold the shim's locks, so it abandons what those protect.
[[gnu::constructor]] void watch_forks()
{
    pthread_atfork(nullptr, nullptr, [] {
        leave_handles_behind();
        leave_algorithms_behind();
        leave_differences_behind();
        reset_counts();
    });
}

}  // namespace
