// The general form of a product, which all others become: for the walls that take an hgemm_args_t from
// the caller or make one.
#pragma once

#include "arguments.hpp"
#include "handle.hpp"

#include <algorithm>
#include <cstring>

namespace hg {

// The caller's struct, called <name>_t, may be older and shorter, or newer and longer, than ours: is it one
// that this version can read, as argument 2?
template <typename Args>
Status check_size(const Args* args, const char* name)
{
    if (args->size < sizeof *args)
        return fail_argument(2, "args->size", "is %zu, must be at least %zu: use %s_init", args->size,
                             sizeof *args, name);
    const auto* bytes = reinterpret_cast<const unsigned char*>(args);
    if (std::any_of(bytes + sizeof *args, bytes + std::min(args->size, size_t{4096}),
                    [](unsigned char b) { return b != 0; }))
        return fail_argument(2, "args->size", "is %zu, members beyond %zu must be 0 for this version",
                             args->size, sizeof *args);
    return ok;
}

// Check that it is there too, and copy what we know of it.
template <typename Args>
Status copy_struct(const Args* args, const char* name, Args& copy)
{
    if (!args)
        return fail_argument(2, "args", "is NULL, must point to an %s_t", name);
    if (Status status = check_size(args, name); status != ok)
        return status;
    std::memcpy(&copy, args, sizeof copy);
    copy.size = sizeof copy;
    return ok;
}

// Copy the caller's struct, as copy_struct() does, and check its members.
Status check_args(const hgemm_args_t* args, Pointers pointers, hgemm_args_t& copy);

// Plan and run checked arguments.
Status run_checked(Handle& handle, const hgemm_args_t& args);

}  // namespace hg
