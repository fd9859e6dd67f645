// Tensor maps: what the driver refuses, and what lies outside.
#include "test/map_arguments.hpp"
#include "test/run_ptx.hpp"

#include <cstring>
#include <numeric>

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
    EXPECT_TRUE(refused([](auto& a) { a.base = 8; }));
    EXPECT_FALSE(refused([](auto& a) { a.base = 0; }));
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

TEST(TensorMap, OutlivesACutlassWorkaround)
{
    // It clears a bit of the second word of maps of small tensors.
    for (const uint64_t base : {uint64_t{0x10000}, ~uint64_t{15}}) {
        MapArguments arguments;
        arguments.base = base;
        const TensorMap before = arguments.map();
        TensorMap map = before;
        reinterpret_cast<uint64_t*>(&map)[1] &= ~(uint64_t{1} << 21);
        EXPECT_EQ(std::memcmp(&map, &before, sizeof map), 0);
    }
}

TEST(TensorMap, FillsWithNaN)
{
    MapArguments arguments;
    arguments.fill = 1;
    EXPECT_EQ(fill_bits(arguments.map()), 0x7ff77ff77ff77ff7u);
    arguments.fill = 0;
    EXPECT_EQ(fill_bits(arguments.map()), 0u);
}

// A kernel makes a map of its own from zeros: %rd0 is the tensor (64 x 16 words), %rd1 the map's place, and
// the box of 8 x 4 words at (8, 2) goes to %rd2.
std::string making_kernel(const std::string& changes)
{
    return ptx_kernel("sm_90a", 3, R"(
.shared .align 128 .b8 box[128];
.shared .align 128 .b8 map[128];
.shared .align 8 .b64 bar;
mov.u32 %r2, map;
mad.lo.u32 %r3, %r0, 4, %r2;
st.shared.u32 [%r3], 0;
bar.warp.sync -1;
mov.u32 %r4, bar;
mov.u32 %r5, box;
setp.eq.u32 %p0, %r0, 0;
@!%p0 bra COPY;
mbarrier.init.shared::cta.b64 [%r4], 1;
cvt.u64.u32 %rd10, %r2;
tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd10], %rd0;
tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd10], 1;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd10], 0, 8;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd10], 1, 4;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd10], 0, 64;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd10], 1, 16;
tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd10], 0, 256;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd10], 0, 1;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd10], 1, 1;
tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%rd10], 2;
tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%rd10], 0;
tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%rd10], 0;
tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%rd10], 0;
)" + changes + R"(
fence.proxy.async.shared::cta;
COPY: bar.warp.sync -1;
cvt.u64.u32 %rd10, %r2;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd10], 128;
fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
@!%p0 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
mov.u32 %r6, 8;
mov.u32 %r7, 2;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r5], [%rd1, {%r6, %r7}], [%r4];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
@!%p1 bra WAIT;
mad.lo.u32 %r8, %r0, 4, %r5;
ld.shared.u32 %r9, [%r8];
mad.wide.u32 %rd11, %r0, 4, %rd2;
st.global.u32 [%rd11], %r9;
)");
}

TEST(TensorMap, MadeByAKernel)
{
    std::vector<uint32_t> tensor(64 * 16);
    std::iota(tensor.begin(), tensor.end(), 0);
    for (const bool flawed : {false, true}) {
        Device device(90);
        const uint64_t in = device.put(tensor), map = device.put(std::vector<uint8_t>(256)),
                       out = device.put(std::vector<uint32_t>(32));
        const std::string change =
            flawed ? "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd10], 1, 300;" : "";
        EXPECT_EQ(
            device.run(making_kernel(change), shape_of(1, 32), {in, (map + 127) & ~uint64_t{127}, out}),
            flawed ? "tensor-map" : "")
            << device.message();
        const auto box = device.get<uint32_t>(out, 32);
        for (uint32_t i = 0; i < 32 && !flawed; ++i)
            EXPECT_EQ(box[i], (2 + i / 8) * 64 + 8 + i % 8);
    }
}

// A map that the host encoded with the address 0 (at %rd1), of 64 x 16 words: the kernel takes it to shared
// memory, changes it and puts it back, then one box of 8 x 4 words at (8, 2) comes to %rd2.
std::string completing_kernel(const std::string& change)
{
    return ptx_kernel("sm_90a", 3, R"(
.shared .align 128 .b8 box[128];
.shared .align 128 .b8 map[128];
.shared .align 8 .b64 bar;
mov.u32 %r2, map;
mad.lo.u32 %r3, %r0, 4, %r2;
mad.wide.u32 %rd11, %r0, 4, %rd1;
ld.global.u32 %r9, [%rd11];
st.shared.u32 [%r3], %r9;
bar.warp.sync -1;
mov.u32 %r4, bar;
mov.u32 %r5, box;
cvt.u64.u32 %rd10, %r2;
setp.eq.u32 %p0, %r0, 0;
@!%p0 bra COPY;
mbarrier.init.shared::cta.b64 [%r4], 1;
)" + change + R"(
fence.proxy.async.shared::cta;
COPY: bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd10], 128;
fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
@!%p0 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
mov.u32 %r6, 8;
mov.u32 %r7, 2;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r5], [%rd1, {%r6, %r7}], [%r4];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
@!%p1 bra WAIT;
mad.lo.u32 %r8, %r0, 4, %r5;
ld.shared.u32 %r9, [%r8];
mad.wide.u32 %rd11, %r0, 4, %rd2;
st.global.u32 [%rd11], %r9;
)");
}

TEST(TensorMap, AddressZeroMustBeReplaced)
{
    std::vector<uint32_t> tensor(64 * 16);
    std::iota(tensor.begin(), tensor.end(), 0);
    MapArguments arguments;
    arguments.type = u32_type;
    arguments.base = 0;
    arguments.size[0] = 64, arguments.size[1] = 16, arguments.stride[0] = 256;
    arguments.box[0] = 8, arguments.box[1] = 4;
    for (const bool replaced : {true, false}) {
        Device device(90);
        const uint64_t in = device.put(tensor), out = device.put(std::vector<uint32_t>(32)),
                       map = (device.put(std::vector<uint8_t>(256)) + 127) & ~uint64_t{127};
        *reinterpret_cast<TensorMap*>(map) = arguments.map();
        const std::string change =
            replaced ? "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd10], %rd0;" : "";
        EXPECT_EQ(device.run(completing_kernel(change), shape_of(1, 32), {in, map, out}),
                  replaced ? "" : "tensor-map")
            << device.message();
        const auto box = device.get<uint32_t>(out, 32);
        for (uint32_t i = 0; i < 32 && replaced; ++i)
            EXPECT_EQ(box[i], (2 + i / 8) * 64 + 8 + i % 8);
        if (!replaced) {
            EXPECT_NE(device.message().find("the tensor map has the address 0"), std::string::npos);
            EXPECT_NE(device.message().find(": cp.async.bulk.tensor.2d"), std::string::npos)
                << device.message();
        }
    }
}

TEST(TensorMap, OtherFieldsAreRefused)
{
    Device device(90);
    for (const char* line : {"tensormap.replace.tile.no_field.shared::cta.b1024.b32 [%rd0], 1;",
                             "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd0], 5, 1;",
                             "tensormap.replace.tile.global_address.shared::cta.b1024.b32 [%rd0], 1;"})
        EXPECT_EQ(device.run(ptx_kernel("sm_90a", 0, line), shape_of(1, 32), {}), "refused") << line;
}

}  // namespace
}  // namespace emu
