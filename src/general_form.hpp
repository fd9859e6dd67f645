// The general form of a GEMM, an hgemm_args_t, which all others become.
#pragma once

#include "arguments.hpp"
#include "handle.hpp"

#include <algorithm>
#include <cstring>

namespace hg {

// The longest struct that a newer version may have. A struct that was never initialised most likely has a
// larger `size`, and is refused before more of it is read.
constexpr size_t max_struct_bytes = 1024;

// Checks the caller's struct <name>_t, which is argument 2. It may be newer and longer than ours.
template <typename Args>
Status check_size(const Args* args, const char* name)
{
    const size_t size = args->size;
    if (size < sizeof *args || size > max_struct_bytes || size % alignof(Args) != 0)
        return fail_argument(2, "args->size",
                             "is %zu, must be a multiple of %zu from %zu to %zu: use %s_init", size,
                             alignof(Args), sizeof *args, max_struct_bytes, name);
    const auto* bytes = reinterpret_cast<const unsigned char*>(args);
    if (std::any_of(bytes + sizeof *args, bytes + size, [](unsigned char b) { return b != 0; }))
        return fail_argument(2, "args->size", "is %zu, members beyond %zu must be 0 for this version", size,
                             sizeof *args);
    return ok;
}

// Checks that `args`, which messages call `argument`, is aligned.
template <typename Args>
Status check_struct(const char* argument, const Args* args)
{
    if (reinterpret_cast<uintptr_t>(args) % alignof(Args) != 0)
        return fail_argument(2, argument, "is %p, must be aligned to %zu bytes",
                             static_cast<const void*>(args), alignof(Args));
    return ok;
}

// Checks the struct and copies the members that this version knows.
template <typename Args>
Status copy_struct(const Args* args, const char* name, Args& copy)
{
    if (!args)
        return fail_argument(2, "args", "is NULL, must point to an %s_t", name);
    Status status = check_struct("args", args);
    if (status == ok)
        status = check_size(args, name);
    if (status != ok)
        return status;
    std::memcpy(&copy, args, sizeof copy);
    copy.size = sizeof copy;
    return ok;
}

// How the pointers of a call can be checked.
inline Pointers pointers_of(const Handle& handle)
{
    return handle.context ? Pointers::Checked : Pointers::OnHost;
}

// copy_struct() for hgemm_args_t.
Status copy_args(const hgemm_args_t* args, hgemm_args_t& copy);
// Checks the members of a copy.
Status check_members(const hgemm_args_t& args, Pointers pointers);
// copy_args(), then check_members().
Status check_args(const hgemm_args_t* args, Pointers pointers, hgemm_args_t& copy);

// Plans and runs checked arguments.
Status run_checked(Handle& handle, const hgemm_args_t& args);

}  // namespace hg
