// Products of fp4 with a scale for each block of 16 or 32 elements.
#include "numerics/tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace emu {

namespace {

constexpr int group = 16, fraction = 35;

// A number as the aligner sees it: |significand| < 2 for a normal one, times 2^exponent.
struct Parts {
    double significand;
    int exponent;
};

Parts split(double value, int least_exponent)
{
    if (value == 0)
        return {0, least_exponent};
    const int exponent = std::max(std::ilogb(value), least_exponent);
    return {std::ldexp(value, -exponent), exponent};
}

bool is_nan_scale(const ScaledShape& shape, uint8_t bits)
{
    return shape.ue4m3 ? (bits & 0x7f) == 0x7f : bits == 0xff;
}

Parts split_scale(const ScaledShape& shape, uint8_t bits)
{
    if (!shape.ue4m3)
        return {1, bits - 127};
    return split(to_double(FormatId::E4m3, bits & 0x7f), -6);
}

double group_sum(const uint32_t* a, const uint32_t* b)
{
    double sum = 0;
    for (int i = 0; i < group; i++)
        sum += to_double(FormatId::E2m1, a[i]) * to_double(FormatId::E2m1, b[i]);
    return sum;
}

uint32_t element(const ScaledShape& shape, const uint32_t* a, const uint32_t* b, const uint8_t* a_scale,
                 const uint8_t* b_scale, uint32_t c)
{
    const float start = std::bit_cast<float>(c);
    const int blocks = shape.k / shape.block;
    for (int i = 0; i < blocks; i++)
        if (is_nan_scale(shape, a_scale[i]) || is_nan_scale(shape, b_scale[i]))
            return nan32;
    if (std::isnan(start))
        return nan32;
    if (std::isinf(start))
        return c;
    std::vector<Parts> terms{split(start, -126)};
    for (int k = 0; k < shape.k; k += group) {
        const Parts left = split_scale(shape, a_scale[k / shape.block]),
                    right = split_scale(shape, b_scale[k / shape.block]);
        terms.push_back({group_sum(a + k, b + k) * left.significand * right.significand,
                         left.exponent + right.exponent});
    }
    int largest = terms[0].exponent;
    for (const Parts& term : terms)
        largest = std::max(largest, term.exponent);
    double sum = 0;
    for (const Parts& term : terms)
        sum += std::trunc(std::ldexp(term.significand, fraction + term.exponent - largest));
    return truncate_to_float(std::ldexp(sum, largest - fraction));
}

}  // namespace

void multiply_accumulate(const ScaledShape& shape, const uint32_t* a, const uint32_t* b,
                         const uint8_t* a_scale, const uint8_t* b_scale, uint32_t* d)
{
    const int blocks = shape.k / shape.block;
    for (int row = 0; row < shape.m; row++)
        for (int column = 0; column < shape.n; column++) {
            uint32_t& out = d[row * shape.n + column];
            out = element(shape, a + row * shape.k, b + column * shape.k, a_scale + row * blocks,
                          b_scale + column * blocks, out);
        }
}

}  // namespace emu
