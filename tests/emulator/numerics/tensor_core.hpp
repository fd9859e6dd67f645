// Arithmetic of the tensor cores, bit for bit as each generation does it where that is known: the products
// of a step and the accumulator are aligned to the largest exponent, truncated, added exactly and rounded
// once. Integers are exact.
#pragma once

#include "core/config.hpp"
#include "numerics/floats.hpp"

#include <cstdint>

namespace emu {

struct TensorCore {
    bool exact = true;         // false: plain fp32
    int fraction = 25;         // bits kept below the binary point of the largest exponent
    int step = 32;             // bytes of a row of A whose products are added at once
    int result_fraction = 23;  // bits of an f32 result
};

// 24 bits and two steps of 16 bytes on compute capability 8.x, 25 bits and one step from 9.0 on. Products
// of fp8 keep 13 bits on 8.9, and with wgmma.
enum class MatrixUnit { Mma, Wgmma, Tcgen05 };
TensorCore tensor_core(const Config& config, MatrixUnit unit, FormatId operand);

struct MatrixShape {
    int m = 0, n = 0, k = 0;
    FormatId a = FormatId::F16, b = FormatId::F16;
    bool half_result = false;  // accumulator and result are f16
    // Powers of two that scale each row of A and column of B, biased by 127 (ue8m0); null: none.
    const uint8_t *a_scale = nullptr, *b_scale = nullptr;
};

// d = a b + d. a: m rows of k; b: n rows (columns of the matrix) of k; d: m rows of n, fp32 bits or an f16
// in the low half. What enters negated or scaled is changed by the caller beforehand. A tf32 is the upper
// 19 bits of a float, in the low bits.
void multiply_accumulate(const TensorCore& core, const MatrixShape& shape, const uint32_t* a,
                         const uint32_t* b, uint32_t* d);

// Elements narrower than a register, at the bit where they start; signed ones are extended.
struct IntegerType {
    int bits = 8;
    bool is_signed = true;
};
struct IntegerShape {
    int m = 0, n = 0, k = 0;
    IntegerType a, b;
    bool saturate = false;                                   // the sum, not each step
    enum Combine { Multiply, Xor, And } combine = Multiply;  // of single bits: their count is added
};
void multiply_accumulate(const IntegerShape& shape, const uint32_t* a, const uint32_t* b, uint32_t* d);

// fp4 with a scale for each `block` elements of a row, ue8m0 or ue4m3: the products of 16 are added
// exactly, and these sums and the accumulator then aligned to 35 bits.
struct ScaledShape {
    int m = 0, n = 0, k = 64;
    int block = 32;
    bool ue4m3 = false;
};
void multiply_accumulate(const ScaledShape& shape, const uint32_t* a, const uint32_t* b,
                         const uint8_t* a_scale, const uint8_t* b_scale, uint32_t* d);

}  // namespace emu
