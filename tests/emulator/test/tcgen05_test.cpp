// tcgen05 products: every shape, operand layout and type.
#include "test/tcgen05_product.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

void expect_product(const ProductCase& c)
{
    IntegerProduct product(c);
    EXPECT_EQ(product.probe.run(), "");
    product.check();
}

TEST(Tcgen05Product, shapes)
{
    for (const ProductCase& c :
         {ProductCase{1, 128, 256}, ProductCase{1, 128, 8}, ProductCase{1, 128, 104},
          ProductCase{1, 64, 64}, ProductCase{1, 64, 256}, ProductCase{2, 256, 256},
          ProductCase{2, 256, 48}, ProductCase{2, 128, 128}, ProductCase{2, 128, 16}}) {
        SCOPED_TRACE(std::to_string(c.group) + ": " + std::to_string(c.m) + " x " + std::to_string(c.n));
        expect_product(c);
    }
}

TEST(Tcgen05Product, weight_stationary)
{
    for (const int m : {32, 64, 128}) {
        ProductCase c{1, m, 64};
        c.weights = true;
        expect_product(c);
    }
}

TEST(Tcgen05Product, layouts)
{
    for (const int group : {1, 2})
        for (const int width : {1, 2, 4, 8})
            for (int major = 0; major < 4; ++major) {
                SCOPED_TRACE("width " + std::to_string(width) + " major " + std::to_string(major));
                ProductCase c{group, 128, 128};
                c.a_width = c.b_width = width;
                c.a_mn = major & 1;
                c.b_mn = major & 2;
                expect_product(c);
            }
}

TEST(Tcgen05Product, types_and_signs)
{
    ProductCase c{1, 128, 32};
    c.a = c.b = FormatId::Bf16;
    expect_product(c);
    c.b = FormatId::F16;
    c.negate_a = true;
    expect_product(c);
    c.a = FormatId::F16;
    c.half_result = true;
    c.negate_b = true;
    expect_product(c);
    c.accumulate = false;
    expect_product(c);
}

TEST(Tcgen05Product, scaled_accumulator)
{
    ProductCase c{1, 128, 32};
    c.scale = 3;
    expect_product(c);
}

TEST(Tcgen05Product, disabled_lanes)
{
    IntegerProduct product({1, 128, 32});
    product.probe.work =
        "mov.b32 %x, 0x80000001; mov.b32 %y, 0; tcgen05.mma.cta_group::1.kind::f16 [%tmem], %a, %b, "
        "%idesc, {%x, %y, %y, %x}, %enable;";
    EXPECT_EQ(product.probe.run(), "");
    product.check({{0, 0}, {0, 31}, {0, 96}, {0, 127}});
}

TEST(Tcgen05Product, chained_products_of_one_accumulator_act_in_order)
{
    for (uint64_t seed = 1; seed < 6; ++seed) {
        IntegerProduct product({1, 128, 64});
        product.probe.seed = seed;
        product.probe.work = std::string("setp.ne.u32 %p, 0, 0; ") + mma_line + " " + mma_line;
        product.probe.work.replace(product.probe.work.find("%enable"), 7, "%p");
        EXPECT_EQ(product.probe.run(), "");
        for (int& value : product.d)
            value = 0;
        for (int& value : product.a)
            value *= 2;
        product.check();
    }
}

// A in tensor memory, two elements in a word, in columns behind the accumulator.
TEST(Tcgen05Product, left_operand_in_tensor_memory)
{
    for (const ProductCase& c : {ProductCase{1, 128, 32}, ProductCase{1, 64, 32}, ProductCase{2, 256, 32},
                                 ProductCase{2, 128, 64}}) {
        IntegerProduct product(c);
        Probe& probe = product.probe;
        Probe wide(c.group, 2 * probe.columns);
        const int rows = c.m / c.group;
        for (int cta = 0; cta < c.group; ++cta)
            for (int lane = 0; lane < 128; ++lane)
                for (int column = 0; column < probe.columns; ++column)
                    wide.word(cta, lane, column) = probe.word(cta, lane, column);
        for (int m = 0; m < c.m; ++m)
            for (int n = 0; n < c.n; n += c.n / 2) {  // lanes of both halves of the columns
                const ProductCell at = place(c, m, n);
                for (int i = 0; i < 8; ++i)
                    wide.word(at.cta, at.lane, probe.columns + i) =
                        uint32_t{to_bits(product.a[m * 16 + 2 * i], c.a)} |
                        uint32_t{to_bits(product.a[m * 16 + 2 * i + 1], c.a)} << 16;
            }
        ASSERT_GE(rows, 64);
        wide.images = probe.images;
        wide.b = probe.b;
        wide.descriptor = probe.descriptor;
        wide.enable = probe.enable;
        wide.work = "add.u32 %x, %tmem, " + std::to_string(probe.columns) +
                    "; tcgen05.mma.cta_group::GROUP.kind::f16 [%tmem], [%x], %b, %idesc, %enable;";
        EXPECT_EQ(wide.run(), "");
        for (int cta = 0; cta < c.group; ++cta)
            for (int lane = 0; lane < 128; ++lane)
                for (int column = 0; column < probe.columns; ++column)
                    probe.after[cta][lane * probe.columns + column] = wide.result(cta, lane, column);
        product.check();
    }
}

TEST(Tcgen05Product, impossible_descriptors)
{
    const auto with = [](auto change) {
        IntegerProduct product({1, 128, 32});
        change(product.probe);
        return product.probe.run();
    };
    EXPECT_EQ(with([](Probe& p) { p.descriptor |= 4; }), "tcgen05-descriptor") << "sparse";
    EXPECT_EQ(with([](Probe& p) { p.descriptor |= 1 << 23; }), "tcgen05-descriptor") << "reserved";
    EXPECT_EQ(with([](Probe& p) { p.descriptor += 1 << 24; }), "tcgen05-descriptor") << "M = 144";
    EXPECT_EQ(with([](Probe& p) { p.descriptor |= 2 << 7; }), "tcgen05-descriptor") << "type of A";
    EXPECT_EQ(with([](Probe& p) { p.a ^= uint64_t{1} << 46; }), "tcgen05-descriptor") << "constant bits";
    EXPECT_EQ(with([](Probe& p) { p.b ^= uint64_t{1} << 61; }), "tcgen05-descriptor") << "swizzle mode 3";
    EXPECT_EQ(with([](Probe& p) { p.b |= 0x3fff; }), "out-of-bounds");
}

}  // namespace
}  // namespace emu
