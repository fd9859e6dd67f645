// cublasLtMatmul, under its own name.
#include "lt_call.hpp"
#include "real.hpp"
#include "serve.hpp"

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
