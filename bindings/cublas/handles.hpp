// For each cuBLAS handle one hgemm handle per context, which follows its stream, workspace and number of
// SMs. Handles of cublasLt count as well: they may be the same ones.
#pragma once

#include "route.hpp"

#include <cstddef>
#include <functional>
#include <span>

namespace hg::shim {

struct Workspace {
    void* ptr = nullptr;  // null: none was given
    size_t bytes = 0;
};

// The settings of the caller's handle, and of the shim, for one call.
struct Place {
    void* stream = nullptr;
    int sm_count = 0;
    hgemm_mode_t mode = HGEMM_MODE_DEFAULT;
    // cublasLtMatmul brings its workspace along, an empty one included; others use the handle's.
    bool brings_workspace = false;
    Workspace workspace;
};

// Runs the products of a call on the caller's stream: all of them or none. Returns None, or why it was not
// done; Halfway if some of several may have been.
Reason multiply(void* handle, const Place& place, std::span<const hgemm_args_t> products);

// Notes the workspace that the caller set, perhaps one of 0 bytes.
void set_workspace(void* handle, Workspace workspace);
// Forgets the workspace: cuBLAS drops it when a stream is set.
void take_workspace(void* handle);

// Forgets what is known of the handle and calls `destroy`, which destroys it and returns cuBLAS's status.
int forget(void* handle, const std::function<int()>& destroy);

// Abandons all handles in a forked child, where none of the parent's device state is usable.
void leave_handles_behind();

}  // namespace hg::shim
