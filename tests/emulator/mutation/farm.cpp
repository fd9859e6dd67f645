#include "mutation/farm.hpp"

#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace mutation {
namespace {

struct Child {
    size_t task;
    pid_t process;
    int pipe;
    std::string text;
};

// One that sleeps instead of working is stopped by the clock.
constexpr int waiting = 30;

[[noreturn]] void work(const Task& task, int pipe, int seconds)
{
    const itimerval limit{{0, 0}, {seconds, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    alarm(static_cast<unsigned>(seconds * waiting));
    int status = 1;
    try {
        const std::string text = task();
        size_t sent = 0;
        while (sent < text.size()) {
            const ssize_t count = write(pipe, text.data() + sent, text.size() - sent);
            if (count <= 0)
                _exit(1);
            sent += static_cast<size_t>(count);
        }
        status = 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(status);
}

Child start(const std::vector<Task>& tasks, size_t number, int seconds)
{
    int ends[2];
    if (pipe(ends) != 0)
        throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process < 0)
        throw std::runtime_error("no process");
    if (process == 0)
        work(tasks[number], ends[1], seconds);
    close(ends[1]);
    return {number, process, ends[0], ""};
}

// False when the child has said everything.
bool read_some(Child& child)
{
    char buffer[4096];
    const ssize_t count = read(child.pipe, buffer, sizeof buffer);
    if (count > 0)
        child.text.append(buffer, static_cast<size_t>(count));
    return count > 0;
}

Answer finish(const Child& child)
{
    int status = 0;
    close(child.pipe);
    waitpid(child.process, &status, 0);
    Answer answer{child.text};
    answer.late = WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM);
    answer.failed = !answer.late && status != 0;
    return answer;
}

}  // namespace

void run_tasks(const std::vector<Task>& tasks, int at_once, int seconds,
               const std::function<void(size_t task, const Answer&)>& done)
{
    std::vector<Child> children;
    for (size_t next = 0; next < tasks.size() || !children.empty();) {
        while (next < tasks.size() && static_cast<int>(children.size()) < at_once)
            children.push_back(start(tasks, next++, seconds));
        std::vector<pollfd> pipes;
        for (const Child& child : children)
            pipes.push_back({child.pipe, POLLIN, 0});
        poll(pipes.data(), pipes.size(), -1);
        for (size_t i = children.size(); i-- > 0;) {
            if (pipes[i].revents == 0 || read_some(children[i]))
                continue;
            done(children[i].task, finish(children[i]));
            children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
}

}  // namespace mutation
