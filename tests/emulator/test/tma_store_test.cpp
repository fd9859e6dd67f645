// TMA stores and reductions: what they write at a tensor's edges, and what is reported.
#include "test/map_arguments.hpp"
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

// Stores 64 x 64 boxes of f32 (or what `type` says) from shared memory, element (y, x) = 64 y + x.
std::string store_kernel(const std::string& operation, const std::string& fence, const std::string& wait)
{
    return ptx_kernel("sm_90a", 2, R"(
.shared .align 1024 .b8 smem[16384];
mov.u32 %r2, smem;
mov.u32 %r4, %r0;
FILL: mad.lo.u32 %r6, %r4, 4, %r2;
cvt.rn.f32.u32 %f0, %r4;
st.shared.f32 [%r6], %f0;
add.u32 %r4, %r4, 128;
setp.lt.u32 %p1, %r4, 4096;
@%p1 bra FILL;
)" + fence + R"(
bar.sync 0;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra DONE;
ld.global.v2.u32 {%r10, %r11}, [%rd1];
)" + operation + R"(
cp.async.bulk.commit_group;
DONE:
)" + wait + R"(
bar.sync 0;
mov.u32 %r7, 0;
st.shared.u32 [%r6], %r7;
)");
}

const char* plain_store =
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd0, {%r10, %r11}], [%r2];";
const char* add_store = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                        "[%rd0, {%r10, %r11}], [%r2];";
const char* shared_fence = "fence.proxy.async.shared::cta;";
const char* read_wait = "cp.async.bulk.wait_group.read 0;";

std::string store_once(const std::string& kernel, std::vector<float>& tensor, int x, int y, uint64_t seed)
{
    Device device(90, seed);
    MapArguments arguments;
    arguments.type = f32_type;
    arguments.base = device.put(tensor);
    arguments.size[0] = 100, arguments.size[1] = 90, arguments.stride[0] = 416;
    arguments.box[0] = 64, arguments.box[1] = 64;
    uint64_t map = device.put(std::vector<TensorMap>{arguments.map()});
    std::string reports =
        device.run(kernel, shape_of(1, 128), {map, device.put(std::vector<int32_t>{x, y})});
    tensor = device.get<float>(arguments.base, tensor.size());
    return reports;
}

TEST(Tma, StoresAndAddsWithinTheTensorAlone)
{
    constexpr int pitch = 104;
    for (bool adds : {false, true})
        for (auto [x, y] : {std::pair{0, 0}, {36, 26}, {60, 40}, {4, 63}, {96, 89}, {100, 0}}) {
            std::vector<float> tensor(pitch * 91, 0.5f);
            EXPECT_EQ(store_once(store_kernel(adds ? add_store : plain_store, shared_fence, read_wait),
                                 tensor, x, y, 7),
                      "");
            for (int row = 0; row < 91; row++)
                for (int column = 0; column < pitch; column++) {
                    bool inside = row >= y && row < y + 64 && column >= x && column < x + 64 && row < 90 &&
                                  column < 100;
                    float value = static_cast<float>((row - y) * 64 + column - x);
                    ASSERT_EQ(tensor[row * pitch + column], inside ? value + (adds ? 0.5f : 0) : 0.5f);
                }
        }
}

// A store of an 8 x 2 box of halves at (8, 0) of a tensor of `width` x 2, in memory of 16 x 2.
std::vector<uint16_t> store_at_edge(const std::string& operation, uint64_t width, std::string* reports)
{
    Device device(90);
    MapArguments arguments;
    arguments.type = f16_type;
    arguments.base = device.put(std::vector<uint16_t>(32, 0x3c00));
    arguments.size[0] = width, arguments.size[1] = 2, arguments.stride[0] = 32;
    arguments.box[0] = 8, arguments.box[1] = 2;
    const uint64_t map = device.put(std::vector<TensorMap>{arguments.map()});
    *reports = device.run(ptx_kernel("sm_90a", 1, R"(
.shared .align 128 .b8 smem[32];
setp.ne.u32 %p0, %r0, 0;
@%p0 bra END;
mov.u32 %r2, smem;
mov.u32 %r3, 0x40004000;
st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3};
st.shared.v4.u32 [%r2+16], {%r3, %r3, %r3, %r3};
fence.proxy.async.shared::cta;
)" + operation + R"(
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
)"),
                          shape_of(1, 32), {map});
    return device.get<uint16_t>(arguments.base, 32);
}

TEST(Tma, StoresAndReductionsWriteWholeUnits)
{
    const std::string place = ".2d.global.shared::cta", to = " [%rd0, {8, 0}], [%r2];";
    const std::string store_once = "cp.async.bulk.tensor" + place + ".bulk_group" + to;
    const std::string add = "cp.reduce.async.bulk.tensor" + place + ".add.bulk_group" + to;
    std::string reports;
    for (const uint64_t width : {8, 9, 15, 16}) {
        const auto stored = store_at_edge(store_once, width, &reports);
        EXPECT_EQ(reports, "");
        const auto added = store_at_edge(add, width, &reports);
        EXPECT_EQ(reports, "");
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t column = i % 16;
            const bool written = column >= 8 && width > 8;
            EXPECT_EQ(stored[i], written ? 0x4000 : 0x3c00) << width << " " << i;
            EXPECT_EQ(added[i], written ? 0x4200 : 0x3c00) << width << " " << i;
        }
    }
}

TEST(Tma, StoresReadNothingForWhatTheyDrop)
{
    // Only the part that lands in the tensor has been written.
    std::string kernel = store_kernel(plain_store, shared_fence, read_wait);
    std::string fill = "st.shared.f32 [%r6], %f0;";
    std::string some = "and.b32 %r20, %r4, 63;\nsetp.lt.u32 %p2, %r20, 20;\n@%p2 " + fill;
    kernel.replace(kernel.find(fill), fill.size(), some);
    std::vector<float> tensor(104 * 91);
    EXPECT_EQ(store_once(kernel, tensor, 80, 0, 1), "");
    EXPECT_EQ(store_once(kernel, tensor, 76, 0, 1), "uninitialised-read");
}

TEST(Tma, StoresThatAreNotFencedOrNotWaitedForAreReported)
{
    std::vector<float> tensor(104 * 91);
    EXPECT_EQ(store_once(store_kernel(plain_store, "", read_wait), tensor, 0, 0, 1), "missing-proxy-fence");
    for (uint64_t seed = 1; seed <= 5; seed++) {
        std::string reports = store_once(store_kernel(plain_store, shared_fence, ""), tensor, 0, 0, seed);
        EXPECT_NE(reports, "") << seed;
    }
    EXPECT_EQ(
        store_once(store_kernel(plain_store, shared_fence, "cp.async.bulk.wait_group 0;"), tensor, 0, 0, 1),
        "");
}

}  // namespace
}  // namespace emu
