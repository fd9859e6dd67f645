// A program that is not linked with cuBLAS: it calls a plug-in that is, or asks for a function by name.
#include "cublas.hpp"
#include "plugin.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Finds the shim's functions, behind which there is no real one.
void call_by_name(void* where)
{
    const auto gemm = reinterpret_cast<hg::shim::GemmEx<int>*>(dlsym(where, "cublasGemmEx"));
    const auto destroy = reinterpret_cast<hg::shim::Destroy*>(dlsym(where, "cublasDestroy_v2"));
    const auto matmul = reinterpret_cast<hg::shim::LtMatmul*>(dlsym(where, "cublasLtMatmul"));
    const float one = 1;
    int something = 0;
    std::printf("gemm %d ", gemm(&something, 0, 0, 1, 1, 1, &one, &something, 2, 1, &something, 2, 1, &one,
                                 &something, 2, 1, 68, -1));
    std::printf("matmul %d ", matmul(&something, nullptr, &one, nullptr, nullptr, nullptr, nullptr, &one,
                                     nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr));
    std::printf("destroy %d\n", destroy(&something));
}

// As JAX does. The plug-in binds deeply, so that it finds nothing of the shim either.
void look_up(const char* path)
{
    void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void* cublas = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!plugin || !cublas) {
        std::printf("%s\n", dlerror());
        return;
    }
    const auto product = reinterpret_cast<decltype(&plugin_product_by)>(dlsym(plugin, "plugin_product_by"));
    std::printf("%s\n", product(reinterpret_cast<hg::shim::GemmEx<int>*>(dlsym(cublas, "cublasGemmEx"))));
}

// The shim is not preloaded here: it comes and goes, and what it left behind must not be called.
void unload(const char* shim, const char* plugin)
{
    void* library = dlopen(shim, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        std::printf("%s\n", dlerror());
        return;
    }
    if (plugin)
        std::printf("%s\n", product_of_plugin(plugin, RTLD_LOCAL, false));
    else
        call_by_name(library);
    dlclose(library);
    std::fflush(stdout);
    int status = -1;
    if (const pid_t child = fork())
        waitpid(child, &status, 0);
    else
        _exit(0);
    std::printf("unloaded, child ended with %d\n", status);
}

}  // namespace

int main(int, char** arguments)
{
    const char *what = arguments[1], *plugin = arguments[2];
    if (!std::strcmp(what, "missing"))
        call_by_name(RTLD_DEFAULT);
    else if (!std::strcmp(what, "look-up"))
        look_up(plugin);
    else if (!std::strcmp(what, "unload"))
        unload(plugin, arguments[3]);
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
