// Tasks in child processes, some at once, each with a time limit.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mutation {

using Task = std::function<std::string()>;

struct Answer {
    std::string text;
    bool late = false;    // it was stopped after the time limit
    bool failed = false;  // it crashed or threw
};

// `done` is told each answer, in the order that they come.
void run_tasks(const std::vector<Task>& tasks, int at_once, int seconds,
               const std::function<void(size_t task, const Answer&)>& done);

}  // namespace mutation
