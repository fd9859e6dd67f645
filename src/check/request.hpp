// The arguments of Level 3 as a caller gave them: their names, how matrices are stored, and which are read.
#pragma once

#include "hgemm.h"

#include <cstdint>
#include <span>

namespace hg {

enum class Arg : uint8_t {
    Handle,
    Args,
    Size,
    Layout,
    Uplo,
    Trans,  // of functions with one op
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
    Flags,
    Gate
};

struct Signature {
    std::span<const Arg> args;
    bool in_struct;  // args are members of hgemm_args_t, itself argument 2
};

// What an argument is called in messages: by the prototype, or as a member of args.
const char* name_of(Arg arg, bool in_struct, bool in_arrays);

// A matrix as stored: `outer` lines of `inner` contiguous elements, `ld` apart.
struct Stored {
    int64_t inner, outer;
    const char* inner_name;
};

// How A and B of a problem are stored, C and aux, and D, whose lines are half as long where it is gated.
Stored stored_a(const hgemm_args_t& args);
Stored stored_b(const hgemm_args_t& args);
Stored stored_c(const hgemm_args_t& args);
Stored stored_d(const hgemm_args_t& args);

// Nothing to compute: m, n or the batch count is 0.
bool is_empty(const hgemm_args_t& args);

// Which operands are read.
bool reads_ab(const hgemm_args_t& args);
bool reads_c(const hgemm_args_t& args);

}  // namespace hg
