// Tasks in child processes, some at once, each with a limit on its processor time, which other work on the
// machine does not change.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mutation {

using Task = std::function<std::string()>;

struct Answer {
    std::string text;
    bool late = false;    // it was stopped at the limit
    bool failed = false;  // it crashed or threw
};

// `done` is told each answer, in the order that they come.
void run_tasks(const std::vector<Task>& tasks, int at_once, int seconds,
               const std::function<void(size_t task, const Answer&)>& done);

}  // namespace mutation
