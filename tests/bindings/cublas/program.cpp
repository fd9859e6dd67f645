// A program linked with cuBLAS, to be run under the shim. Prints what happened for the test to read.
#include "cublas.hpp"
#include "plugin.hpp"

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

}  // namespace

int main(int, char** arguments)
{
    const std::string what = arguments[1];
    if (what == "at-exit") {
        std::atexit(use_at_exit);
        return 0;
    }
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
