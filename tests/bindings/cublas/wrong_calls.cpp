// Wrong calls, each made to cuBLAS and to the shim in front of it: both must answer the same, and right
// calls must be served. Prints a line of CSV for each. Calls are made in processes of their own, since some
// of them end one, or the device's context.
#include "wrong_calls.hpp"

#include "hgemm_shim.h"

#include "src/tools/support/cuda_driver.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace hg::test {
namespace {

struct Answer {
    int status = 0;       // minus the signal, if the call ended the process
    int device = 0;       // 1: the context was lost
    uint64_t served = 0;  // 1: the shim took it; on the way here, all that it took so far
};

void* open(const char* path)
{
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL))
        return library;
    throw std::runtime_error(dlerror());
}

Answer make_call(const WrongCall& call, const Products& products, const Given& given)
{
    Answer answer;
    answer.status = call.make(products, given);
    try {
        Cuda::get()->wait();
    } catch (const std::exception&) {
        answer.device = 1;
    }
    return answer;
}

// Calls from the first one on, until the context is lost; answers go to `out`.
void work(const Paths& paths, bool through_shim, const std::vector<WrongCall>& calls, size_t first, int out)
{
    if (!Cuda::get())
        throw std::runtime_error(Cuda::absent());
    void* const blas = open(paths.blas);
    void* const lt = open(paths.lt);
    void* const shim = open(paths.shim);
    const auto served = reinterpret_cast<uint64_t (*)()>(dlsym(shim, "hgemm_shim_served"));
    const Products products = through_shim ? Products(shim, shim) : Products(blas, lt);
    const Given given(blas, lt);
    for (size_t i = first; i < calls.size(); ++i) {
        Answer answer = make_call(calls[i], products, given);
        answer.served = served();
        if (write(out, &answer, sizeof answer) != sizeof answer || answer.device != 0)
            break;
    }
}

int end_of(pid_t process)
{
    int status = 0;
    waitpid(process, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// Answers of one process; false if it could not work at all.
bool run_process(const Paths& paths, bool through_shim, const std::vector<WrongCall>& calls,
                 std::vector<Answer>& answers)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    const pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        try {
            work(paths, through_shim, calls, answers.size(), ends[1]);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            _exit(2);
        }
        _exit(0);
    }
    close(ends[1]);
    Answer answer;
    uint64_t served_before = 0;
    while (read(ends[0], &answer, sizeof answer) == sizeof answer) {
        const uint64_t served = answer.served;
        answer.served -= served_before;
        served_before = served;
        answers.push_back(answer);
    }
    close(ends[0]);
    const int end = end_of(process);
    if (end < 0 && answers.size() < calls.size())
        answers.push_back({end, 0, 0});
    return end <= 0;
}

std::vector<Answer> answers_of(const Paths& paths, bool through_shim, const std::vector<WrongCall>& calls)
{
    std::vector<Answer> answers;
    while (answers.size() < calls.size() && run_process(paths, through_shim, calls, answers)) {
    }
    return answers;
}

int compare(const Paths& paths)
{
    const std::vector<WrongCall> calls = wrong_calls();
    const std::vector<Answer> theirs = answers_of(paths, false, calls),
                              ours = answers_of(paths, true, calls);
    if (theirs.size() < calls.size() || ours.size() < calls.size())
        return 2;
    int wrong = 0;
    std::printf("function,call,cublas,shim,context_lost,served,verdict\n");
    for (size_t i = 0; i < calls.size(); ++i) {
        const bool same = theirs[i].status == ours[i].status && theirs[i].device == ours[i].device;
        const bool served = ours[i].served > 0;
        const bool fine = same && (!calls[i].is_right || served) && (theirs[i].status == 0 || !served);
        wrong += !fine;
        std::printf("%s,%s,%d,%d,%d,%d,%s\n", calls[i].function.c_str(), calls[i].what.c_str(),
                    theirs[i].status, ours[i].status, ours[i].device, served, fine ? "same" : "DIFFERENT");
    }
    std::printf("# %zu calls, %d answered otherwise\n", calls.size(), wrong);
    return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hg::test

int main(int count, char** arguments)
{
    if (count != 4) {
        std::fprintf(stderr, "usage: %s <libcublas> <libcublasLt> <libhgemm_cublas>\n", arguments[0]);
        return 2;
    }
    return hg::test::compare({arguments[1], arguments[2], arguments[3]});
}
