// The general form of a GEMM, an hgemm_args_t, which all others become.
#pragma once

#include "src/base/status.hpp"
#include "src/check/arguments.hpp"
#include "src/check/request.hpp"
#include "src/run/handle.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace hg {

// The longest struct that a newer version may have. A struct that was never initialised most likely has a
// larger `size`, and is refused before more of it is read.
constexpr size_t max_struct_bytes = 1024;

// What messages call a struct of the caller's, which is an argument, and its first member.
struct StructNames {
    int position = 2;
    const char* argument = "args";
    const char* size = "args->size";
};

// The size that a struct had in the first version with this SONAME. Programs that were compiled then still
// pass as much; members that came later are 0.
template <typename Struct>
constexpr size_t first_bytes = 0;
template <>
inline constexpr size_t first_bytes<hgemm_args_t> = 280;
template <>
inline constexpr size_t first_bytes<hgemm_grouped_args_t> = 160;
template <>
inline constexpr size_t first_bytes<hgemm_exchange_args_t> = sizeof(hgemm_exchange_args_t);
template <>
inline constexpr size_t first_bytes<hgemm_blocks_t> = sizeof(hgemm_blocks_t);
template <>
inline constexpr size_t first_bytes<hgemm_route_args_t> = sizeof(hgemm_route_args_t);
template <>
inline constexpr size_t first_bytes<hgemm_rows_args_t> = 104;
template <>
inline constexpr size_t first_bytes<hgemm_gate_gradient_args_t> = sizeof(hgemm_gate_gradient_args_t);
template <>
inline constexpr size_t first_bytes<hgemm_tune_options_t> = 40;
template <>
inline constexpr size_t first_bytes<hgemm_tune_report_t> = 112;

// Checks the size of the caller's struct <name>_t. It may be older or newer, shorter or longer than ours.
template <typename Struct>
Status check_size(const Struct* value, const char* name, const StructNames& names = {})
{
    static_assert(0 < first_bytes<Struct> && first_bytes<Struct> <= sizeof(Struct));
    const size_t size = value->size;
    if (size < first_bytes<Struct> || size > max_struct_bytes || size % alignof(Struct) != 0)
        return fail_argument(names.position, names.size,
                             "is %zu, must be a multiple of %zu from %zu to %zu: use %s_init", size,
                             alignof(Struct), first_bytes<Struct>, max_struct_bytes, name);
    const auto* bytes = reinterpret_cast<const unsigned char*>(value);
    if (size > sizeof *value &&
        std::any_of(bytes + sizeof *value, bytes + size, [](unsigned char b) { return b != 0; }))
        return fail_argument(names.position, names.size,
                             "is %zu, members beyond %zu must be 0 for this version", size, sizeof *value);
    return ok;
}

// Checks that a struct is aligned.
template <typename Struct>
Status check_struct(const char* argument, const Struct* value, int position = 2)
{
    if (reinterpret_cast<uintptr_t>(value) % alignof(Struct) != 0)
        return fail_argument(position, argument, "is %p, must be aligned to %zu bytes",
                             static_cast<const void*>(value), alignof(Struct));
    return ok;
}

// Checks the struct and copies the members that this version knows; those that it lacks are 0.
template <typename Struct>
Status copy_struct(const Struct* value, const char* name, Struct& copy, const StructNames& names = {})
{
    if (!value)
        return fail_argument(names.position, names.argument, "is NULL, must point to an %s_t", name);
    Status status = check_struct(names.argument, value, names.position);
    if (status == ok)
        status = check_size(value, name, names);
    if (status != ok)
        return status;
    if constexpr (first_bytes<Struct> < sizeof(Struct)) {
        copy = {};
        std::memcpy(&copy, value, std::min(value->size, sizeof copy));
    } else {
        std::memcpy(&copy, value, sizeof copy);
    }
    copy.size = sizeof copy;
    return ok;
}

// Fills the first `size` bytes of the caller's struct with defaults, and with 0 what this version does not
// know. NULL does nothing.
template <typename Struct>
void fill_struct(Struct* value, size_t size, Struct defaults = {})
{
    if (!value)
        return;
    defaults.size = size;
    std::memset(value, 0, size);
    std::memcpy(value, &defaults, std::min(size, sizeof defaults));
}

// How the pointers of a call can be checked.
inline Pointers pointers_of(const Handle& handle)
{
    return handle.context ? Pointers::Checked : Pointers::OnHost;
}

// What functions without a struct ask for: all matrices have `type`.
hgemm_args_t basic_args(hgemm_type_t type, hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb,
                        int64_t m, int64_t n, int64_t k, float alpha, float beta);
// C is also D.
void set_matrices(hgemm_args_t& g, const void* a, int64_t lda, const void* b, int64_t ldb, void* c,
                  int64_t ldc);
// Checks and runs them. `args`: the arguments of `function`, in order.
Status run_form(const char* function, hgemm_handle_t handle, std::span<const Arg> args,
                const hgemm_args_t& g) noexcept;

// copy_struct() for hgemm_args_t.
Status copy_args(const hgemm_args_t* args, hgemm_args_t& copy);
// Checks the members of a copy.
Status check_members(const hgemm_args_t& args, Pointers pointers);
// copy_args(), then check_members().
Status check_args(const hgemm_args_t* args, Pointers pointers, hgemm_args_t& copy);

// Plans and runs checked arguments.
Status run_checked(Handle& handle, const hgemm_args_t& args);

// For calls that run several products: finds all that could refuse one, before any runs; and runs one.
Status prepare_product(Handle& handle, const hgemm_args_t* args);
Status run_product(Handle& handle, const hgemm_args_t* args);

}  // namespace hg
