// A program linked with cuBLAS, to be run under the shim. Prints what happened for the test to read.
#include "../forks.hpp"
#include "cublas.hpp"
#include "plugin.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// Device memory of the parent is of no use in a child: only what needs none is called.
void call_in_child()
{
    const float one = 1;
    const int status = cublasGemmEx(nullptr, 0, 0, 1, 1, 1, &one, nullptr, 2, 1, nullptr, 2, 1, &one,
                                    nullptr, 2, 1, 68, -1);
    std::printf("child: status %d, destroyed %d\n", status, plugin_destroy());
}

void fork_and_wait(void (*work)())
{
    std::fflush(stdout);
    if (const pid_t child = fork()) {
        int status = 0;
        waitpid(child, &status, 0);
        std::printf("child ended with %d\n", status);
    } else {
        work();
        std::exit(0);
    }
}

void use_at_exit()
{
    std::printf("at exit: %s\n", plugin_product());
    std::printf("destroyed %d\n", plugin_destroy());
}

void destroy_at_exit() { std::printf("at exit: destroyed %d\n", plugin_destroy()); }

// As a program that turns on its log while it runs.
void set_log(const char* level)
{
    using Set = int(const char* variable, const char* value);
    if (auto* const set = reinterpret_cast<Set*>(dlsym(RTLD_DEFAULT, "hgemm_shim_set")))
        std::printf("set %d\n", set("HGEMM_SHIM_LOG", level));
}

// A wrong call, found as by a program that also runs with a cuBLAS without the function.
void call_groups()
{
    void* handle = nullptr;
    cublasCreate_v2(&handle);
    using Groups = hg::shim::GemmGroupedBatchedEx<int>;
    if (auto* const groups = reinterpret_cast<Groups*>(dlsym(RTLD_DEFAULT, "cublasGemmGroupedBatchedEx")))
        std::printf("groups %d\n",
                    groups(handle, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 2,
                           nullptr, nullptr, 2, nullptr, nullptr, nullptr, 2, nullptr, -1, nullptr, 68));
    cublasDestroy_v2(handle);
}

// What goes through the shim without a GPU: handles found in its list, algorithms remembered.
bool call_without_device()
{
    void* handles[2] = {};
    uint64_t algorithm[8];
    bool right = true;
    for (void*& handle : handles)
        right = right && cublasCreate_v2(&handle) == 0;
    for (int i = 0; i < 50; ++i)
        right = right && cublasSetStream_v2(handles[i % 2], nullptr) == 0 &&
                cublasLtMatmulAlgoInit(handles[0], 68, 0, 2, 2, 2, 2, 66,
                                       reinterpret_cast<hg::shim::LtAlgorithm*>(algorithm)) == 0;
    return right;
}

}  // namespace

int main(int, char** arguments)
{
    const std::string what = arguments[1];
    if (what == "at-exit") {
        std::atexit(use_at_exit);
        return 0;
    }
    if (what == "fork-beside-threads") {
        std::printf("%d failed\n", hg::test::count_failures(200, call_without_device));
        return 0;
    }
    if (what == "log-later")
        set_log("summary");
    if (what == "groups")
        call_groups();
    if (what == "fork-before")
        fork_and_wait([] { std::printf("child: %s\n", plugin_product()); });
    std::printf("%s\n", plugin_product());
    if (what == "fork-after") {
        fork_and_wait(call_in_child);
        std::printf("%s\n", plugin_product());
    }
    if (what == "destroy-at-exit")
        std::atexit(destroy_at_exit);
    else if (what != "leak")
        plugin_destroy();
}
