// A program that is not linked with cuBLAS: it calls a plug-in that is, or asks for a function by name.
#include "cublas.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace {

const char* product_of_plugin(const char* path, int flags, bool close)
{
    void* plugin = dlopen(path, RTLD_NOW | flags);
    if (!plugin)
        return dlerror();
    const char* result = reinterpret_cast<const char* (*)()>(dlsym(plugin, "plugin_product"))();
    if (close)
        dlclose(plugin);
    return result;
}

// Finds the shim's function, behind which there is no real one.
void call_by_name()
{
    const auto gemm = reinterpret_cast<hg::shim::GemmEx<int>*>(dlsym(RTLD_DEFAULT, "cublasGemmEx"));
    const auto destroy = reinterpret_cast<hg::shim::Destroy*>(dlsym(RTLD_DEFAULT, "cublasDestroy_v2"));
    const auto matmul = reinterpret_cast<hg::shim::LtMatmul*>(dlsym(RTLD_DEFAULT, "cublasLtMatmul"));
    const float one = 1;
    int something = 0;
    std::printf("gemm %d ", gemm(&something, 0, 0, 1, 1, 1, &one, &something, 2, 1, &something, 2, 1, &one,
                                 &something, 2, 1, 68, -1));
    std::printf("matmul %d ", matmul(&something, nullptr, &one, nullptr, nullptr, nullptr, nullptr, &one,
                                     nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr));
    std::printf("destroy %d\n", destroy(&something));
}

}  // namespace

int main(int, char** arguments)
{
    const char *what = arguments[1], *plugin = arguments[2];
    if (!std::strcmp(what, "missing"))
        call_by_name();
    else if (!std::strcmp(what, "local"))
        std::printf("%s\n", product_of_plugin(plugin, RTLD_LOCAL, false));
    else if (!std::strcmp(what, "global"))
        std::printf("%s\n", product_of_plugin(plugin, RTLD_GLOBAL, false));
    else if (!std::strcmp(what, "deepbind"))
        std::printf("%s\n", product_of_plugin(plugin, RTLD_LOCAL | RTLD_DEEPBIND, false));
    else if (!std::strcmp(what, "again"))
        for (int i = 0; i < 3; ++i)
            std::printf("%s\n", product_of_plugin(plugin, RTLD_LOCAL, true));
}
