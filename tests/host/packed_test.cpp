// White-box tests of host_packed and host_amx, with the loops of every vector unit that this machine has:
// all bits against sums in the documented order. Without AMX the loops that replace its instruction are
// tested.
#include "arch/host/packed/packed.hpp"
#include "src/base/convert.hpp"
#include "src/base/cpu.hpp"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace hg {
namespace {

enum class Strides { AlongK, Across, Scattered };

float packed_value(Type type, uint16_t x)
{
    return type == Type::F16 ? half_to_float(x) : bfloat16_to_float(x);
}
uint16_t packed_element(Type type, float x)
{
    return type == Type::F16 ? float_to_half(x) : float_to_bfloat16(x);
}

// An operand of rows with `k` elements, at an odd address.
struct PackedOperand {
    PackedOperand(int64_t rows, int64_t k, Strides strides, const std::function<uint16_t()>& draw)
        : operand{nullptr, nullptr, k + 3, 1, 0, 0}
    {
        if (strides == Strides::Across)
            operand.row_stride = 1, operand.k_stride = rows + 1;
        if (strides == Strides::Scattered)
            operand.row_stride = 2 * k + 1, operand.k_stride = 2;
        const uint16_t nan = 0x7fff;
        memory.assign(2 + (rows - 1) * operand.row_stride + (k - 1) * operand.k_stride + 1, nan);
        operand.ptr = memory.data() + 1;
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t p = 0; p < k; ++p)
                at(i, p) = draw();
    }
    uint16_t& at(int64_t i, int64_t p) { return memory[1 + i * operand.row_stride + p * operand.k_stride]; }

    Operand operand;
    std::vector<uint16_t> memory;
};

class Packed : public testing::TestWithParam<std::tuple<const PackedKernels*, Type>> {
protected:
    std::vector<float> run(const PackedOperand& a, const PackedOperand& b, int64_t m, int64_t n, int64_t k,
                           int threads = 1)
    {
        std::vector<float> d(m * n, NAN);
        Problem p{};
        p.m = m, p.n = n, p.k = k, p.batch = 1;
        p.type_ab = type_;
        p.a = a.operand, p.b = b.operand;
        p.alpha = 1;
        p.d.type = Type::F32;
        p.d.ptr = d.data();
        p.d.ld = n;
        const PackedBlocks blocks =
            packed_blocks(kernels_, p, threads, max_packed_workspace(kernels_, threads));
        std::vector<float> memory(blocks.workspace() / sizeof(float) + 65, NAN);
        float* workspace = memory.data();
        while (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
            ++workspace;
        Pool pool(threads - 1);
        multiply_packed(pool, kernels_, p, blocks, workspace);
        return d;
    }

    // From +0 in ascending order of K.
    float sum_of(PackedOperand& a, PackedOperand& b, int64_t i, int64_t j, int64_t from, int64_t to,
                 int64_t step) const
    {
        float sum = 0;
        for (int64_t p = from; p < to; p += step)
            sum = std::fma(packed_value(type_, a.at(i, p)), packed_value(type_, b.at(j, p)), sum);
        return sum;
    }

    // Slices of packed_depth in ascending order. AMX: of 32, even and odd K apart.
    float wanted(PackedOperand& a, PackedOperand& b, int64_t i, int64_t j, int64_t k) const
    {
        const int64_t depth = is_amx() ? 32 : packed_depth;
        float total = 0;
        for (int64_t from = 0; from < k; from += depth) {
            const int64_t to = std::min(k, from + depth);
            const float sum = is_amx()
                                  ? sum_of(a, b, i, j, from, to, 2) + sum_of(a, b, i, j, from + 1, to, 2)
                                  : sum_of(a, b, i, j, from, to, 1);
            total = from == 0 && !is_amx() ? sum : total + sum;
        }
        return total;
    }

    bool is_amx() const { return kernels_.has_squares; }

    void expect_order(int64_t m, int64_t n, int64_t k, Strides sa, Strides sb, int threads,
                      const std::function<uint16_t()>& draw)
    {
        PackedOperand a(m, k, sa, draw), b(n, k, sb, draw);
        const std::vector<float> d = run(a, b, m, n, k, threads);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                const float right = wanted(a, b, i, j, k);
                ASSERT_EQ(std::bit_cast<uint32_t>(d[i * n + j]), std::bit_cast<uint32_t>(right))
                    << m << " x " << n << " x " << k << ", row " << i << " column " << j << ": "
                    << d[i * n + j] << " for " << right;
            }
    }

    std::function<uint16_t()> normal(float scale = 1)
    {
        return [this, scale] { return packed_element(type_, scale * gauss_(random_)); };
    }
    // bf16 with exponent fields from `low` to `low` + 2, both signs, some zeros.
    std::function<uint16_t()> near(int low)
    {
        return [this, low] {
            const auto bits = static_cast<uint32_t>(random_());
            return static_cast<uint16_t>(
                bits % 9 == 0 ? 0 : (low + bits / 16 % 3) << 7 | (bits >> 16 & 0x807f));
        };
    }

    const PackedKernels& kernels_ = *std::get<0>(GetParam());
    const Type type_ = std::get<1>(GetParam());
    std::mt19937 random_{1};
    std::normal_distribution<float> gauss_;
};

TEST_P(Packed, SumsAreInOrder)
{
    for (const Strides sa : {Strides::AlongK, Strides::Across, Strides::Scattered})
        for (const Strides sb : {Strides::AlongK, Strides::Across, Strides::Scattered})
            for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                          {1, 40, 33},
                                          {7, 3, 100},
                                          {13, 33, 31},
                                          {29, 65, 17},
                                          {50, 1, 70},
                                          {70, 9, 64},
                                          {200, 65, 95},
                                          {33, 300, 40},
                                          {16, 100, 513}})
                expect_order(m, n, k, sa, sb, 1, normal());
}

TEST_P(Packed, SumsOfManyBlocksAndSlicesAreInOrderForAnyThreads)
{
    for (const int threads : {1, 2, 5}) {
        expect_order(packed_rows + 3, 77, 40, Strides::AlongK, Strides::Across, threads, normal());
        expect_order(20, packed_columns + 9, 515, Strides::AlongK, Strides::AlongK, threads, normal());
        expect_order(packed_rows + 1, 300, 33, Strides::AlongK, Strides::AlongK, threads, normal());
        expect_order(2, 333, 20000, Strides::AlongK, Strides::AlongK, threads, normal());
        expect_order(300, 150, 1100, Strides::Across, Strides::AlongK, threads, normal());
        expect_order(packed_columns + 1, 5, 1027, Strides::AlongK, Strides::Scattered, threads, normal());
    }
}

// The results do not depend on whether a faster tile was used.
TEST_P(Packed, SubnormalsAreKept)
{
    const auto subnormal = [this] {
        return static_cast<uint16_t>(random_() % 0x20 | (random_() & 0x8000));
    };
    const auto one_in_thirty = [&] {
        return random_() % 30 == 0 ? subnormal() : packed_element(type_, static_cast<float>(random_() % 4));
    };
    expect_order(15, 40, 70, Strides::Across, Strides::AlongK, 1, one_in_thirty);
    // What is compiled for no vector unit has no FMA, and rounds products that underflow.
    if (type_ == Type::F16 || std::string(kernels_.name) == "plain")
        return;
    expect_order(15, 40, 70, Strides::AlongK, Strides::Across, 1, subnormal);
    // One in the first of several slices, some of whose sums stay so small.
    for (const int64_t m : {40, 100})
        for (const int64_t k : {600, 2080, 4096}) {
            int64_t drawn = 0;
            expect_order(m, 90, k, Strides::AlongK, Strides::AlongK, 1, [&] {
                const bool in_a = drawn < m * k;
                const int64_t p = drawn++ % k;
                if (in_a)
                    return p == 5    ? uint16_t{3}
                           : p > 512 ? packed_element(type_, 0)
                                     : packed_element(type_, 1);
                return p == 5 ? packed_element(type_, 0x1p-10f) : packed_element(type_, 0);
            });
        }
    // Exponent fields whose sums reach from results below 2^-149 to all of them normal.
    // K is odd at times: what a word lacks changes no sum, and not the sign of one that is zero.
    for (int low = 50; low <= 76; ++low)
        expect_order(15, 40, 70 - low / 2 % 2, low % 2 ? Strides::AlongK : Strides::Across, Strides::AlongK,
                     1, near(low));
    for (int low = 1; low <= 3; ++low)
        for (const int64_t k : {1, 3, 69, 70})
            expect_order(15, 40, k, Strides::AlongK, Strides::AlongK, 1, near(low));
}

// 129 * 129 - 130 * 128 = 1: the least that a sum of products can be, in units of the last places of both.
TEST_P(Packed, SumsThatBecomeSubnormalAreKept)
{
    if (type_ == Type::F16)
        return;  // products of fp16 are never subnormal
    const bool fused = std::string(kernels_.name) != "plain";
    for (int low = fused ? 50 : 60; low <= 76; ++low)
        for (const int more : {0, 1}) {
            int count_a = 0, count_b = 0;
            expect_order(3, 5, 2, Strides::AlongK, Strides::AlongK, 1, [&] {
                const bool in_a = count_a < 6;
                const int place = in_a ? count_a++ : count_b++;
                const int exponent = in_a ? low : low + more;
                return static_cast<uint16_t>(exponent << 7 | (place % 2 == 0 ? 1 : in_a ? 0x8002 : 0));
            });
        }
}

TEST_P(Packed, NaNAndInfinityStayInTheirRowAndColumn)
{
    const int64_t m = 40, n = 70, k = 43;
    for (const float special : {NAN, INFINITY, -INFINITY})
        for (const bool in_a : {true, false}) {
            PackedOperand a(m, k, Strides::AlongK, [this] { return packed_element(type_, 2); });
            PackedOperand b(n, k, Strides::Across, [this] { return packed_element(type_, 3); });
            (in_a ? a : b).at(17, 42) = packed_element(type_, special);
            const std::vector<float> d = run(a, b, m, n, k);
            for (int64_t i = 0; i < m; ++i)
                for (int64_t j = 0; j < n; ++j) {
                    const float got = d[i * n + j];
                    if ((in_a ? i : j) != 17)
                        ASSERT_EQ(got, 6.0f * k);
                    else if (std::isnan(special))
                        ASSERT_TRUE(std::isnan(got));
                    else
                        ASSERT_EQ(got, special);
                }
        }
}

TEST_P(Packed, SumsBeginWithPlusZero)
{
    PackedOperand a(3, 5, Strides::AlongK, [] { return uint16_t{0x8000}; });
    PackedOperand b(4, 5, Strides::AlongK, [this] { return packed_element(type_, 1); });
    for (const float got : run(a, b, 3, 4, 5))
        EXPECT_EQ(std::bit_cast<uint32_t>(got), 0u);
}

#if defined(__x86_64__)
// As AMX's instruction, but without it.
class TakesSubnormalsForZero {
public:
    TakesSubnormalsForZero() { _mm_setcsr(before_ | flush_to_zero | denormals_are_zero); }
    ~TakesSubnormalsForZero() { _mm_setcsr(before_); }

private:
    static constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x40;
    const unsigned before_ = _mm_getcsr();
};
#endif

// AMX's, with its model in the place of the instruction.
const PackedKernels* modelled_amx_kernels()
{
#if defined(__x86_64__)
    static const PackedKernels modelled = [] {
        PackedKernels kernels = *amx_kernels();
        kernels.name = "amx_model";
        kernels.runs_here = cpu_has_avx512;
        kernels.multiply = [](const PanelProduct& p) {
            const TakesSubnormalsForZero mode;
            amx_kernels()->multiply_exactly(p);
        };
        kernels.multiply_lines = [](const PackSource& a, const PanelProduct& p) {
            const TakesSubnormalsForZero mode;
            return amx_kernels()->multiply_lines_exactly(a, p);
        };
        return kernels;
    }();
    return &modelled;
#else
    return nullptr;
#endif
}

std::vector<std::tuple<const PackedKernels*, Type>> all_that_run_here()
{
    std::vector<const PackedKernels*> known(packed_kernels().begin(), packed_kernels().end());
    if (amx_kernels())
        known.insert(known.end(), {amx_kernels(), modelled_amx_kernels()});
    std::vector<std::tuple<const PackedKernels*, Type>> all;
    for (const PackedKernels* kernels : known)
        for (const Type type : {Type::F16, Type::BF16})
            if (kernels->pack(type) && kernels->runs_here())
                all.emplace_back(kernels, type);
    return all;
}

INSTANTIATE_TEST_SUITE_P(, Packed, testing::ValuesIn(all_that_run_here()), [](const auto& info) {
    return std::string(std::get<0>(info.param)->name) + "_" + name_of(std::get<1>(info.param));
});

}  // namespace
}  // namespace hg
