// The argument checks of Level 3: one list of arguments per public function, checked in its order, so
// that the first wrong one wins and its position is that of the C prototype.
#pragma once

#include "problem.hpp"
#include "status.hpp"

#include <span>

namespace hg {

enum class Arg : uint8_t {
    Handle,
    Args,
    Size,
    Layout,
    TransA,
    TransB,
    TypeAb,
    TypeC,
    TypeD,
    M,
    N,
    K,
    Alpha,
    Beta,
    A,
    Lda,
    StrideA,
    B,
    Ldb,
    StrideB,
    C,
    Ldc,
    StrideC,
    D,
    Ldd,
    StrideD,
    Count,
    InOut,
    LdInOut,
    StrideInOut,  // the C of functions whose C is also D
    BiasMode,
    BiasType,
    Bias,
    Activation,
    Aux,
    Ldaux,
    StrideAux,
    Flags
};

struct Signature {
    std::span<const Arg> args;
    bool in_struct;  // args are members of hgemm_args_t, itself argument 2
};

// What an argument is called in messages: by the prototype, or as a member of args.
const char* name_of(Arg arg, bool in_struct, bool in_arrays);

// Is it looked at where pointers lead to? OnHost: to memory that the CPU reads, arrays of pointers among
// it.
enum class Pointers { Checked, OnHost, Unchecked };

// Are the arguments right? `args` holds the values, whatever the function's prototype.
Status check_arguments(const Signature& signature, const hgemm_args_t& args, Pointers pointers);

// A matrix as stored: `outer` lines of `inner` contiguous elements, `ld` apart.
struct Stored {
    int64_t inner, outer;
    const char* inner_name;
};

// How A, B and D (with C and aux) of a product lie in memory.
Stored stored_a(const hgemm_args_t& args);
Stored stored_b(const hgemm_args_t& args);
Stored stored_d(const hgemm_args_t& args);

// Do `count` steps of `step` elements lead further than addresses can be added without overflow, 2^62
// bytes?
bool is_too_far(int64_t step, int64_t count, int64_t element_bytes);

// Is argument `position` a leading dimension for the matrix, or a pointer to its elements?
Status check_leading(int position, const char* name, int64_t ld, const Stored& matrix,
                     int64_t element_bytes);
Status check_pointer(int position, const char* name, const void* ptr, int64_t element_bytes,
                     Pointers pointers);

// Nothing to compute: m, n or the batch count is 0.
bool is_empty(const hgemm_args_t& args);

// Which operands are read.
bool reads_ab(const hgemm_args_t& args);
bool reads_c(const hgemm_args_t& args);

// The canonical form of checked, non-empty arguments.
Problem to_problem(const hgemm_args_t& args);

}  // namespace hg
