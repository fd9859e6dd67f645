// What route.cpp and route_lt.cpp share.
#pragma once

#include "abi.hpp"
#include "hgemm.h"

namespace hg::shim {

inline bool is_op(int op) { return op == op_n || op == op_t || op == op_c; }

inline hgemm_op_t transposition(int op) { return op == op_n ? HGEMM_NO_TRANS : HGEMM_TRANS; }

inline bool is_half(int type) { return type == r_16f || type == r_16bf; }

// The pairs of types that are served: fp16 or bf16, with C of the same type or fp32.
inline bool set_types(int type_a, int type_b, int type_d, hgemm_args_t& args)
{
    if (type_a != type_b || !is_half(type_a) || (type_d != type_a && type_d != r_32f))
        return false;
    args.type_ab = type_a == r_16f ? HGEMM_F16 : HGEMM_BF16;
    args.type_c = args.type_d = type_d == r_32f ? HGEMM_F32 : args.type_ab;
    return true;
}

// alpha and beta in fp32, one of each for all elements.
inline bool set_scalars(int pointer_mode, const void* alpha, const void* beta, hgemm_args_t& args)
{
    if (pointer_mode == pointers_device) {
        args.alpha_device = static_cast<const float*>(alpha);
        args.beta_device = static_cast<const float*>(beta);
        return true;
    }
    if (pointer_mode != pointers_host)
        return false;
    args.alpha = *static_cast<const float*>(alpha);
    args.beta = *static_cast<const float*>(beta);
    return true;
}

}  // namespace hg::shim
