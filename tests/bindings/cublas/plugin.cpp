// What a program under the shim computes: in a plug-in, or linked with the program.
#include "plugin.hpp"

#include "operands.hpp"

namespace {

using namespace hg::test;

void* handle = nullptr;

}  // namespace

const char* plugin_product() { return plugin_product_by(cublasGemmEx); }

const char* plugin_product_by(hg::shim::GemmEx<int>* gemm)
{
    DeviceMemory memory(*Cuda::get());
    if (!handle)
        cublasCreate_v2(&handle);
    const Operands o(memory, {});
    const int status = o.gemm_ex(handle, hg::shim::compute_32f, hg::shim::algo_default, gemm);
    return status != 0 ? "refused" : o.wrong() == 0 ? "right" : "wrong";
}

int plugin_destroy()
{
    void* const gone = handle;
    handle = nullptr;
    return cublasDestroy_v2(gone);
}
