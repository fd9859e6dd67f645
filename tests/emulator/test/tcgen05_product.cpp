#include "test/tcgen05_product.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace emu {

namespace {

constexpr int b_start = 32768;

// One operand in shared memory, in elements: swizzle width w in 16 bytes (1: none), both strides.
struct Layout {
    bool mn_major = false;
    int width = 8;
    int leading = 0, stride = 0;

    // CuTe: K-major ((8,m),(T,2k)):((wT,SBO),(1,T or LBO)), MN-major ((T,w,m),(8,k)):((1,T,LBO),(wT,SBO)),
    // where no swizzle exchanges LBO and SBO.
    int element(int r, int k) const
    {
        int at;
        if (!mn_major)
            at = r % 8 * width * 8 + r / 8 * stride + k % 8 + k / 8 * (width == 1 ? leading : 8);
        else if (width == 1)
            at = r % 8 + r / 8 * stride + k % 8 * 8 + k / 8 * leading;
        else
            at = r % 8 + r / 8 % width * 8 + r / (8 * width) * leading + k % 8 * width * 8 + k / 8 * stride;
        const int byte = at * 2;
        return (byte ^ (byte >> 7 & (width - 1)) << 4) / 2;
    }

    uint64_t descriptor(int start) const
    {
        const uint64_t mode = width == 8 ? 2 : width == 4 ? 4 : width == 2 ? 6 : 0;
        return uint64_t(start / 16) | uint64_t(leading / 8) << 16 | uint64_t(stride / 8) << 32 |
               uint64_t{1} << 46 | mode << 61;
    }
};

Layout make_layout(bool mn_major, int width, int rows)
{
    Layout layout{mn_major, width, 0, 0};
    if (!mn_major && width == 1)
        layout.stride = 72, layout.leading = rows / 8 * 72;
    else if (!mn_major)
        layout.stride = width * 64;
    else if (width == 1)
        layout.stride = 72, layout.leading = rows / 8 * 72;
    else
        layout.leading = width * 64, layout.stride = (rows + 8 * width - 1) / (8 * width) * width * 64;
    return layout;
}

}  // namespace

uint16_t to_bits(int value, FormatId type)
{
    return type == FormatId::F16 ? double_to_f16(value)
                                 : std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
}

ProductCell place(const ProductCase& c, int m, int n)
{
    if (c.weights && c.m < 128) {
        const int cut = c.n * c.m / 128;
        return {0, m + n / cut * c.m, n % cut};
    }
    if (c.group == 1 && c.m == 64)
        return {0, m / 16 * 32 + m % 16, n};
    if (c.group == 2 && c.m == 128)
        return {m / 64, m % 64 + (n < c.n / 2 ? 0 : 64), n % (c.n / 2)};
    return {m / 128, m % 128, n};
}

IntegerProduct::IntegerProduct(const ProductCase& shape)
    : c(shape), probe(c.group, c.n < 32 ? 32 : std::bit_ceil(unsigned(c.n))), a(c.m * 16), b(c.n * 16),
      d(c.m * c.n)
{
    std::mt19937 random(c.m * 1000 + c.n);
    for (auto* matrix : {&a, &b, &d})
        for (int& value : *matrix)
            value = static_cast<int>(random() % 9) - 4;
    const int rows = c.m / c.group, columns = c.n / c.group;
    const Layout a_layout = make_layout(c.a_mn, c.a_width, rows),
                 b_layout = make_layout(c.b_mn, c.b_width, columns);
    for (int m = 0; m < c.m; ++m)
        for (int k = 0; k < 16; ++k)
            put(m / rows, a_layout.element(m % rows, k), to_bits(a[m * 16 + k], c.a));
    for (int n = 0; n < c.n; ++n)
        for (int k = 0; k < 16; ++k)
            put(n / columns, b_start / 2 + b_layout.element(n % columns, k), to_bits(b[n * 16 + k], c.b));
    fill_accumulators();
    probe.a = a_layout.descriptor(0);
    probe.b = b_layout.descriptor(b_start);
    probe.descriptor = !c.half_result << 4 | (c.a == FormatId::Bf16) << 7 | (c.b == FormatId::Bf16) << 10 |
                       c.negate_a << 13 | c.negate_b << 14 | c.a_mn << 15 | c.b_mn << 16 | c.n / 8 << 17 |
                       c.m / 16 << 24;
    probe.enable = c.accumulate;
    probe.work = mma_line;
    if (c.weights)
        probe.work.replace(probe.work.find(".cta_group"), 0, ".ws");
    if (c.scale)
        probe.work.replace(probe.work.find(", %enable"), 9, ", %enable, " + std::to_string(c.scale));
}

void IntegerProduct::put(int cta, int element, uint16_t bits)
{
    std::memcpy(&probe.images[cta][element * 2], &bits, 2);
}

void IntegerProduct::fill_accumulators()
{
    for (auto& memory : probe.before)
        for (size_t i = 0; i < memory.size(); ++i)
            memory[i] = 0x40000000 + static_cast<uint32_t>(i);
    for (int m = 0; m < c.m; ++m)
        for (int n = 0; n < c.n; ++n) {
            const ProductCell at = place(c, m, n);
            probe.word(at.cta, at.lane, at.column) = result_bits(d[m * c.n + n]);
        }
}

uint32_t IntegerProduct::result_bits(double value) const
{
    return c.half_result ? double_to_f16(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
}

uint32_t IntegerProduct::expected(int m, int n) const
{
    double sum = c.accumulate ? std::ldexp(d[m * c.n + n], -c.scale) : 0;
    for (int k = 0; k < 16; ++k)
        sum += double(a[m * 16 + k]) * b[n * 16 + k] * (c.negate_a != c.negate_b ? -1 : 1);
    return result_bits(sum);
}

void IntegerProduct::check(const std::vector<std::pair<int, int>>& untouched) const
{
    auto wanted = probe.before;
    for (int m = 0; m < c.m; ++m)
        for (int n = 0; n < c.n; ++n) {
            const ProductCell at = place(c, m, n);
            if (std::find(untouched.begin(), untouched.end(), std::pair{at.cta, at.lane}) ==
                untouched.end())
                wanted[at.cta][at.lane * probe.columns + at.column] = expected(m, n);
        }
    int wrong = 0;
    for (int cta = 0; cta < c.group; ++cta)
        for (size_t i = 0; i < wanted[cta].size(); ++i)
            if (wanted[cta][i] != probe.after[cta][i] && ++wrong < 5)
                ADD_FAILURE() << "CTA " << cta << " lane " << i / probe.columns << " column "
                              << i % probe.columns << ": " << std::hex << probe.after[cta][i] << ", not "
                              << wanted[cta][i];
    EXPECT_EQ(wrong, 0);
}

}  // namespace emu
