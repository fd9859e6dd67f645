// Integer products of the tensor cores.
#include "numerics/tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace emu {

namespace {

int32_t value(uint32_t bits, IntegerType type)
{
    const int unused = 32 - type.bits;
    return type.is_signed ? static_cast<int32_t>(bits << unused) >> unused
                          : static_cast<int32_t>(bits << unused >> unused);
}

int64_t dot(const IntegerShape& shape, const uint32_t* a, const uint32_t* b)
{
    int64_t sum = 0;
    for (int k = 0; k < shape.k; k++)
        switch (shape.combine) {
        case IntegerShape::Multiply: sum += int64_t{value(a[k], shape.a)} * value(b[k], shape.b); break;
        case IntegerShape::Xor: sum += (a[k] ^ b[k]) & 1; break;
        case IntegerShape::And: sum += a[k] & b[k] & 1; break;
        }
    return sum;
}

}  // namespace

void multiply_accumulate(const IntegerShape& shape, const uint32_t* a, const uint32_t* b, uint32_t* d)
{
    using Limits = std::numeric_limits<int32_t>;
    for (int row = 0; row < shape.m; row++)
        for (int column = 0; column < shape.n; column++) {
            uint32_t& out = d[row * shape.n + column];
            int64_t sum = static_cast<int32_t>(out) + dot(shape, a + row * shape.k, b + column * shape.k);
            if (shape.saturate)
                sum = std::clamp<int64_t>(sum, Limits::min(), Limits::max());
            out = static_cast<uint32_t>(sum);
        }
}

}  // namespace emu
