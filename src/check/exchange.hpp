// The argument checks of hgemm_exchange() and hgemm_gemm_blocks(), in the order of their members.
#pragma once

#include "src/base/status.hpp"
#include "src/check/arguments.hpp"

#include <hgemm.h>

namespace hg {

// `tree`: parts are added pairwise.
Status check_exchange(const hgemm_exchange_args_t& args, bool tree, Pointers pointers);

// Blocks of a product whose own arguments are checked, and which is not empty.
Status check_blocks(const hgemm_blocks_t& blocks, const hgemm_args_t& args, Pointers pointers);

// What a product in blocks cannot be, before its other arguments are checked.
Status check_product_of_blocks(const hgemm_args_t& args);

// Argument 2, which must point to a word.
Status check_error_word(const char* name, int position, const uint32_t* error, Pointers pointers);

// Of hgemm_blocks_t, whose rows are at least 1.
inline int64_t count_blocks(const hgemm_blocks_t& blocks, const hgemm_args_t& args)
{
    return args.m / blocks.rows + (args.m % blocks.rows != 0 ? 1 : 0);
}

}  // namespace hg
