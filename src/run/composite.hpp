// Composite: a problem that no kernel serves, and that runs as several that kernels serve.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <cstddef>

namespace hg {

struct Composite {
    // Finds all that could refuse the problem but a workspace that is too small; `bytes`: what it uses of
    // it, or needs.
    Status (*check)(Handle&, const Problem&, size_t& bytes);
    // Finds all that could refuse it, and provides a lent workspace.
    Status (*prepare)(Handle&, const Problem&);
    // Launches it on the handle's stream, in the current context.
    Status (*run)(Handle&, const Problem&);
    // One line about how it would run, cut to `length` bytes.
    Status (*explain)(Handle&, const Problem&, char* text, size_t length);
};

// Null: the problem is served by a kernel.
const Composite* composite_of(const Handle& handle, const Problem& problem);

// Runs what checked parts a composite has: kernels, or a composite again.
Status run_part(Handle& handle, const Problem& part);
// The workspace that a part uses, behind what is reserved.
struct Needs {
    size_t bytes = 0;
    bool counts = false;
    double predicted_us = 0;  // 0: unknown

    void include(const Needs& other);
};
Status needs_of(Handle& handle, const Problem& part, Needs& needs);
// WORKSPACE_TOO_SMALL if the handle has less; else provides a lent one. `what`: for the message.
Status provide(Handle& handle, const Needs& needs, const char* what);

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
