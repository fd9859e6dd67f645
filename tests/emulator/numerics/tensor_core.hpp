// Arithmetic of the tensor cores on 16-bit inputs, bit for bit as each generation does it: the products of
// a step and the accumulator are aligned to the largest exponent, truncated, added exactly and rounded
// once.
#pragma once

#include "core/config.hpp"

#include <cstdint>

namespace emu {

enum class Half : uint8_t { F16, Bf16 };

struct TensorCore {
    bool exact = true;  // false: plain fp32
    int fraction = 25;  // bits kept below the binary point of the largest exponent
    int step = 16;      // products that are added at once
};

// 24 bits and two steps of 8 on compute capability 8.x, 25 bits and steps of 16 from 9.0 on.
TensorCore tensor_core(const Config& config);

struct MatrixShape {
    int m = 0, n = 0, k = 0;  // k: a multiple of 8
    Half a = Half::F16, b = Half::F16;
    bool half_result = false;  // accumulator and result are f16
};

// d = a b + d. a: m rows of k; b: n rows (columns of the matrix) of k; d: m rows of n, fp32 bits or an f16
// in the low half. What enters negated or scaled is changed by the caller beforehand.
void multiply_accumulate(const TensorCore& core, const MatrixShape& shape, const uint16_t* a,
                         const uint16_t* b, uint32_t* d);

// Conversions that are exact or round to nearest even.
float half_to_float(uint16_t bits, Half type);
uint16_t double_to_f16(double value);

}  // namespace emu
