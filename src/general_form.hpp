// The general form of a product, which all others become: for the walls that take an hgemm_args_t from
// the caller or make one.
#pragma once

#include "arguments.hpp"
#include "handle.hpp"

namespace hg {

// Copy the caller's struct, which may be of another version, and check it as argument 2.
Status check_args(const hgemm_args_t* args, Pointers pointers, hgemm_args_t& copy);

// Plan and run checked arguments.
Status run_checked(Handle& handle, const hgemm_args_t& args);

}  // namespace hg
