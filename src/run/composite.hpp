// Composite: a problem that no kernel serves, and that runs as several that kernels serve.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <cstddef>
#include <string>

namespace hg {

// The workspace that a problem uses, behind what is reserved.
struct Needs {
    size_t bytes = 0;
    bool counts = false;
    double predicted_us = 0;  // 0: unknown

    void include(const Needs& other);
};

struct Composite {
    const char* what;  // behind "bytes of workspace", for messages
    // Finds all that could refuse the problem but a workspace that is too small.
    Status (*check)(Handle&, const Problem&, Needs&);
    // Launches it on the handle's stream, in the current context.
    Status (*run)(Handle&, const Problem&);
    // One line about how it would run, cut to `length` bytes.
    Status (*explain)(Handle&, const Problem&, char* text, size_t length);
    // If set: is there one kernel, whose plan is kept, for the problem as `whole` says it? Such a call may
    // be repeated by what was packed.
    bool (*is_one_kernel)(Handle&, const Problem&, Problem& whole) = nullptr;
};

// Null: the problem is served by a kernel.
const Composite* composite_of(const Handle& handle, const Problem& problem);

// Finds all that could refuse it, and provides a lent workspace.
Status prepare_composite(Handle& handle, const Composite& composite, const Problem& problem);
// The second half of that: WORKSPACE_TOO_SMALL if the handle has less than it needs.
Status provide(Handle& handle, const Composite& composite, const Needs& needs);
// If plans are logged. `key`: what follows in the line.
void log_composite(Handle& handle, const Composite& composite, const Problem& problem,
                   const std::string& key);

// A part of a composite, which is served by a kernel, or a composite again.
Status run_part(Handle& handle, const Problem& part);
Status needs_of(Handle& handle, const Problem& part, Needs& needs);

// What a composite keeps in the workspace gets half of it, and its parts the rest. If that is too little
// for these, it gets what they leave, and then as little as it can have. plan(room, needs, kept) fills in
// what the parts need, and what it keeps.
template <typename PlanInRoom>
Status plan_in_workspace(const Handle& handle, Needs& needs, PlanInRoom plan)
{
    const size_t bytes = handle.workspace().bytes;
    size_t room = bytes / 2;
    Status status = ok;
    for (int attempt = 0; status == ok && attempt < 3; ++attempt) {
        size_t kept = 0;
        needs = {};
        status = plan(room, needs, kept);
        room = attempt == 0 && needs.bytes < bytes ? bytes - needs.bytes : 0;
        needs.bytes += kept;
        if (needs.bytes <= bytes)
            break;
    }
    return status;
}

// The first of the handle's backends that has the function, by its place; backend_count if there is none.
template <typename Function>
int find_backend(const Handle& handle, Function Backend::*function)
{
    int index = 0;
    while (index < handle.backend_count && !(handle.backends[index]->*function))
        ++index;
    return index;
}

}  // namespace hg
