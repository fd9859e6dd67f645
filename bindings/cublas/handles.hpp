// For each cuBLAS handle one hgemm handle per context, which follows its stream, workspace and number of
// multiprocessors. Handles of cublasLt are meant as well: they may be the same ones.
#pragma once

#include "route.hpp"

#include <cstddef>
#include <functional>

namespace hg::shim {

struct Workspace {
    void* ptr = nullptr;  // null: none was given
    size_t bytes = 0;
};

// What the caller's handle says about one call.
struct Place {
    void* stream = nullptr;
    int sm_count = 0;
    // cublasLtMatmul brings its workspace along, an empty one included; others use the handle's.
    bool brings_workspace = false;
    Workspace workspace;
};

// Run the product where the caller wants it: None, or why it was not done.
Reason multiply(void* handle, const Place& place, const hgemm_args_t& args);

// The caller gave the handle this workspace, of no bytes perhaps.
void set_workspace(void* handle, Workspace workspace);
// A new stream takes it away.
void take_workspace(void* handle);

// Calls `destroy`, which destroys the handle and returns cuBLAS's status. What is known of the handle goes.
int forget(void* handle, const std::function<int()>& destroy);

// In a child process nothing of the parent's device state is usable.
void leave_handles_behind();

}  // namespace hg::shim
