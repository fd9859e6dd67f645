// Tensor maps: what the driver refuses, and what lies outside.
#include "test/map_arguments.hpp"

namespace emu {
namespace {

TEST(TensorMap, RefusesWhatTheDriverRefuses)
{
    TensorMap map;
    EXPECT_EQ(MapArguments{}.encode(map), nullptr);
    auto refused = [&](auto change) {
        MapArguments arguments;
        change(arguments);
        return arguments.encode(map) != nullptr;
    };
    EXPECT_TRUE(refused([](auto& a) { a.type = 13; }));
    EXPECT_TRUE(refused([](auto& a) { a.rank = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.rank = 6; }));
    EXPECT_TRUE(refused([](auto& a) { a.base = 0x10008; }));
    EXPECT_TRUE(refused([](auto& a) { a.base = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.size[1] = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.size[0] = (uint64_t{1} << 32) + 1; }));
    EXPECT_FALSE(refused([](auto& a) { a.size[0] = uint64_t{1} << 32; }));
    EXPECT_TRUE(refused([](auto& a) { a.stride[0] = 408; }));
    EXPECT_TRUE(refused([](auto& a) { a.stride[0] = uint64_t{1} << 40; }));
    EXPECT_TRUE(refused([](auto& a) { a.box[0] = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.box[1] = 257; }));
    EXPECT_FALSE(refused([](auto& a) { a.box[1] = 256; }));
    EXPECT_TRUE(refused([](auto& a) { a.box[0] = 12; }));
    EXPECT_TRUE(refused([](auto& a) { a.swizzle = 2; }));
    EXPECT_FALSE(refused([](auto& a) { a.swizzle = 3; }));
    EXPECT_TRUE(refused([](auto& a) { a.swizzle = 7; }));
    EXPECT_TRUE(refused([](auto& a) { a.element_stride[1] = 9; }));
    EXPECT_TRUE(refused([](auto& a) { a.element_stride[0] = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.interleave = 1; }));
    EXPECT_TRUE(refused([](auto& a) { a.fill = 2; }));
    EXPECT_TRUE(refused([](auto& a) { a.fill = 1, a.type = u32_type; }));
    EXPECT_TRUE(refused([](auto& a) { a.rank = 1, a.swizzle = 1; }));
}

TEST(TensorMap, FillsWithNaN)
{
    MapArguments arguments;
    arguments.fill = 1;
    EXPECT_EQ(fill_bits(arguments.map()), 0x7ff77ff77ff77ff7u);
    arguments.fill = 0;
    EXPECT_EQ(fill_bits(arguments.map()), 0u);
}

}  // namespace
}  // namespace emu
