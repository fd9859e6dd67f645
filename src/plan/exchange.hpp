// Exchange: what is handed from one stream or GPU to another, and by which flags.
#pragma once

#include "src/plan/problem.hpp"

#include <hgemm.h>

#include <cstdint>
#include <span>

namespace hg {

// How often parts can be halved, and how many there are at most.
constexpr int log2_parts = 6, most_parts = 1 << log2_parts;

// In this order: raises flags, waits for flags, adds up parts, stores the sums to each of `d`, and raises
// flags. The steps whose pointers are null, or whose spans are empty, are left out.
struct Exchange {
    static constexpr uint32_t code_of_exchange = 1;
    static constexpr uint32_t code_of_block(int64_t block) { return 2 + static_cast<uint32_t>(block); }

    std::span<hgemm_flag_t* const> raise;
    std::span<hgemm_flag_t* const> wait;
    int64_t limit_us = 0;  // 0: none
    uint32_t* error = nullptr;
    uint32_t error_code = code_of_exchange;  // what a wait that lasts too long sets *error to

    int64_t rows = 0, columns = 0;
    std::span<const void* const> parts;
    int64_t ld_part = 0;
    Type type_part = Type::F32;
    bool pairwise = false;
    const void* bias = nullptr;  // of the columns, added last
    Type type_bias = Type::F32;
    std::span<void* const> d;
    int64_t ldd = 0;
    Type type_d = Type::F32;

    std::span<hgemm_flag_t* const> raise_after;
};

}  // namespace hg
