// The argument checks of Level 3. Each public function has one list of arguments, checked in order, so that
// the first wrong one is reported, with its position in the C prototype.
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

// How pointers are checked. OnHost: they must lead to memory that the CPU reads, arrays of pointers too.
enum class Pointers { Checked, OnHost, Unchecked };

// Are the arguments right? `args` holds the values, whatever the function's prototype.
Status check_arguments(const Signature& signature, const hgemm_args_t& args, Pointers pointers);

// A matrix as stored: `outer` lines of `inner` contiguous elements, `ld` apart.
struct Stored {
    int64_t inner, outer;
    const char* inner_name;
};

// How A, B and D (and C and aux) of a problem are stored.
Stored stored_a(const hgemm_args_t& args);
Stored stored_b(const hgemm_args_t& args);
Stored stored_d(const hgemm_args_t& args);

// Do `count` steps of `step` elements exceed 2^62 bytes, beyond which adding addresses could overflow?
bool is_too_far(int64_t step, int64_t count, int64_t element_bytes);

// Checks argument `position`: a leading dimension of the matrix, or a pointer to elements.
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
