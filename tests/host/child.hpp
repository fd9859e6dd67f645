// A process that is forked off for a while.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace hg::test {

// Does `body`, called in a forked child, come back within seconds and return true?
template <typename Body>
bool succeeds_in_child(Body body)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(body() ? 0 : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace hg::test
