// TMA: against the H200's boxes, against plain loops, and what is reported when boxes are not waited for.
#include "test/golden.hpp"
#include "test/map_arguments.hpp"
#include "test/run_ptx.hpp"

namespace emu {
namespace {

// The kernel that ran on the H200: shared memory filled with 0xEE, one box a CTA, all of it stored.
std::string load_kernel(int rank, const std::string& fill_fence = "")
{
    std::string coordinates = rank == 2 ? "{%r10, %r11}" : "{%r10, %r11, %r12}";
    return ptx_kernel("sm_90a", 4,
                      R"(
.shared .align 8 .b64 bar;
mov.u32 %r2, dynamic;
mov.u32 %r3, bar;
setp.eq.u32 %p0, %r0, 0;
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
mov.u32 %r4, %r0;
mov.u32 %r5, 0xEEEEEEEE;
FILL: mad.lo.u32 %r6, %r4, 16, %r2;
st.shared.v4.u32 [%r6], {%r5, %r5, %r5, %r5};
add.u32 %r4, %r4, 128;
setp.lt.u32 %p1, %r4, 2048;
@%p1 bra FILL;
)" + (fill_fence.empty() ? "fence.proxy.async.shared::cta;" : fill_fence) +
                          R"(
bar.sync 0;
mul.wide.u32 %rd10, %r1, 16;
add.u64 %rd10, %rd10, %rd1;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd10];
cvt.u32.u64 %r14, %rd2;
@!%p0 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r14;
cp.async.bulk.tensor.)" + std::to_string(rank) +
                          R"(d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0, )" +
                          coordinates + R"(], [%r3];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;
@!%p1 bra WAIT;
mul.wide.u32 %rd11, %r1, 32768;
add.u64 %rd11, %rd11, %rd3;
mov.u32 %r4, %r0;
SHOW: mul.lo.u32 %r6, %r4, 16;
cvt.u64.u32 %rd12, %r6;
add.u64 %rd12, %rd12, %rd11;
add.u32 %r6, %r6, %r2;
ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r6];
st.global.v4.u32 [%rd12], {%r20, %r21, %r22, %r23};
add.u32 %r4, %r4, 128;
setp.lt.u32 %p1, %r4, 2048;
@%p1 bra SHOW;
)");
}

MapArguments hardware_map(uint64_t base, int rank, uint32_t swizzle, bool narrow)
{
    MapArguments arguments;
    arguments.rank = static_cast<uint32_t>(rank);
    arguments.base = base;
    arguments.swizzle = swizzle;
    arguments.box[0] = swizzle == 0 ? (narrow ? 24 : 64) : (8u << swizzle) / (narrow ? 2 : 1);
    arguments.box[1] = narrow ? 40 : 64;
    arguments.box[2] = 2;
    while (arguments.box[0] * 2 * arguments.box[1] * (rank == 3 ? 2 : 1) > 32768)
        arguments.box[1] /= 2;
    return arguments;
}

TEST(Tma, LoadsTheBoxesOfTheH200)
{
    constexpr int boxes = 6;
    std::vector<uint16_t> tensor(1 << 19);
    for (size_t i = 0; i < tensor.size(); i++)
        tensor[i] = static_cast<uint16_t>(i);
    std::vector<int32_t> coordinates = {0,   0,   0, 0, 64,  64,  1,  0, -8, -3, 0, 0,
                                        176, 130, 4, 0, 192, 149, -1, 0, 8,  5,  3, 0};
    for (int rank = 2; rank <= 3; rank++)
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++)
            for (int narrow = 0; narrow < 2; narrow++) {
                Device device(90, 5);
                MapArguments arguments = hardware_map(device.put(tensor), rank, swizzle, narrow);
                uint64_t map = device.put(std::vector<TensorMap>{arguments.map()});
                uint64_t out = device.put(std::vector<uint8_t>(boxes * 32768));
                uint64_t bytes = arguments.box[0] * 2 * arguments.box[1] * (rank == 3 ? 2 : 1);
                EXPECT_EQ(device.run(load_kernel(rank), shape_of(boxes, 128, 1, 32768),
                                     {map, device.put(coordinates), bytes, out}),
                          "")
                    << device.message();
                EXPECT_EQ(golden::hash(reinterpret_cast<void*>(out), boxes * 32768),
                          golden::tma_hashes[rank - 2][swizzle][narrow])
                    << rank << " " << swizzle << " " << narrow;
            }
}

std::string load_once(const std::string& kernel, uint64_t bytes, uint32_t fill = 0)
{
    Device device(90);
    MapArguments arguments = hardware_map(device.put(std::vector<uint16_t>(1 << 19)), 2, 3, false);
    arguments.fill = fill;
    uint64_t map = device.put(std::vector<TensorMap>{arguments.map()});
    uint64_t out = device.put(std::vector<uint8_t>(32768));
    return device.run(kernel, shape_of(1, 128, 1, 32768),
                      {map, device.put(std::vector<int32_t>(4)), bytes, out});
}

TEST(Tma, LoadsThatAreNotWaitedForOrNotFencedAreReported)
{
    EXPECT_EQ(load_once(load_kernel(2), 8192), "");
    std::string unfenced = load_once(load_kernel(2, "fence.proxy.async.global;"), 8192);
    EXPECT_NE(unfenced.find("missing-proxy-fence"), std::string::npos) << unfenced;
    std::string kernel = load_kernel(2);
    kernel.replace(kernel.find("@!%p1 bra WAIT;"), 15, "");
    kernel.replace(kernel.find("mbarrier.try_wait"), 17, "mbarrier.test_wait");
    std::string unwaited = load_once(kernel, 8192);
    EXPECT_NE(unwaited.find("race"), std::string::npos) << unwaited;
    EXPECT_EQ(load_once(load_kernel(2), 8208), "deadlock");
    EXPECT_EQ(load_once(load_kernel(3), 8192), "tensor-map");
}

constexpr uint32_t trip_size[5] = {24, 5, 4, 3, 3}, trip_box[5] = {16, 3, 2, 2, 2};
constexpr int32_t trip_corner[5] = {16, 3, 3, 2, -1};  // the box straddles the tensor's end

MapArguments trip_map(uint32_t rank, uint32_t swizzle)
{
    MapArguments arguments;
    arguments.type = f16_type;
    arguments.rank = rank;
    arguments.swizzle = swizzle;
    for (uint32_t i = 0; i < 5; i++) {
        arguments.size[i] = trip_size[i];
        arguments.box[i] = trip_box[i];
        if (i < 4)
            arguments.stride[i] = i == 0 ? 48 : arguments.stride[i - 1] * trip_size[i];
    }
    return arguments;
}

// Loads a box through one map and stores it through another.
std::string trip_kernel(uint32_t rank, uint32_t bytes)
{
    std::string at = "{", shape = std::to_string(rank) + "d";
    for (uint32_t i = 0; i < rank; i++)
        at += (i ? ", " : "") + std::to_string(trip_corner[i]);
    at += "}";
    std::string body = R"(
.shared .align 1024 .b8 smem[16384];
.shared .align 8 .b64 bar;
mov.u32 %r2, smem;
mov.u32 %r3, bar;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra END;
mbarrier.init.shared::cta.b64 [%r3], 1;
fence.mbarrier_init.release.cluster;
)";
    body += "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], " + std::to_string(bytes) + ";\n";
    body += "cp.async.bulk.tensor." + shape + ".shared::cta.global.tile.mbarrier::complete_tx::bytes " +
            "[%r2], [%rd0, " + at + "], [%r3];\n";
    body += "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;\n@!%p1 bra WAIT;\n";
    body += "cp.async.bulk.tensor." + shape + ".global.shared::cta.tile.bulk_group [%rd1, " + at +
            "], [%r2];\n";
    return ptx_kernel("sm_90", 2,
                      body + "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n");
}

bool in_trip_box(size_t element, uint32_t rank)
{
    bool inside = true;
    for (uint32_t i = 0; i < rank; i++) {
        int32_t coordinate = static_cast<int32_t>(element % trip_size[i]);
        element /= trip_size[i];
        inside &= coordinate >= trip_corner[i];
        inside &= coordinate < trip_corner[i] + static_cast<int32_t>(trip_box[i]);
    }
    return inside;
}

TEST(Tma, SwizzledRoundTripsInAllDimensions)
{
    size_t elements = 1;
    for (uint32_t rank = 1; rank <= 5; rank++) {
        elements *= trip_size[rank - 1];
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
            Device device(90, rank + swizzle);
            MapArguments arguments = trip_map(rank, swizzle);
            std::vector<uint16_t> values(elements);
            for (size_t i = 0; i < elements; i++)
                values[i] = static_cast<uint16_t>(i + 1);
            arguments.base = device.put(values);
            uint64_t in = device.put(std::vector<TensorMap>{arguments.map()});
            uint64_t target = arguments.base = device.put(std::vector<uint16_t>(elements));
            uint64_t out = device.put(std::vector<TensorMap>{arguments.map()});
            std::string kernel = trip_kernel(rank, box_shape(arguments.map()).bytes());
            EXPECT_EQ(device.run(kernel, shape_of(1, 32), {in, out}), "") << device.message();
            auto got = device.get<uint16_t>(target, elements);
            for (size_t i = 0; i < elements; i++)
                ASSERT_EQ(got[i], in_trip_box(i, rank) ? i + 1 : 0) << rank << " " << swizzle << " " << i;
        }
    }
}

TEST(Tma, MulticastReachesEachCtaAndItsBarrier)
{
    // Rank 1 loads for ranks 0, 1 and 3 of a cluster of four; each waits for its own bytes.
    std::string body = R"(
.shared .align 1024 .b8 smem[1024];
.shared .align 8 .b64 bar;
mov.u32 %r2, smem;
mov.u32 %r3, bar;
setp.eq.u32 %p0, %r0, 0;
mov.u32 %r4, %cluster_ctarank;
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r3], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;
fence.mbarrier_init.release.cluster;
READY: barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.aligned;
setp.eq.u32 %p1, %r4, 1;
and.pred %p1, %p1, %p0;
mov.u16 %h0, 11;
@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [%r2], [%rd0, {8, 1}], [%r3], %h0;
setp.eq.u32 %p2, %r4, 2;
@%p2 bra END;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
@!%p3 bra WAIT;
mad.lo.u32 %r5, %r0, 32, %r2;
ld.shared.u16 %h1, [%r5];
mad.lo.u32 %r6, %r4, 32, %r0;
mul.wide.u32 %rd5, %r6, 2;
add.u64 %rd5, %rd5, %rd1;
st.global.u16 [%rd5], %h1;
END: barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)";
    for (uint64_t seed = 1; seed <= 8; seed++) {
        Device device(90, seed);
        std::vector<uint16_t> tensor(208 * 150);
        for (size_t i = 0; i < tensor.size(); i++)
            tensor[i] = static_cast<uint16_t>(i);
        MapArguments arguments;
        arguments.base = device.put(tensor);
        uint64_t map = device.put(std::vector<TensorMap>{arguments.map()}),
                 out = device.put(std::vector<uint16_t>(128));
        EXPECT_EQ(device.run(ptx_kernel("sm_90", 2, body), shape_of(4, 32, 4), {map, out}), "")
            << device.message();
        auto got = device.get<uint16_t>(out, 128);
        for (uint32_t i = 0; i < 128; i++) {
            uint32_t element = i % 32 * 16;
            uint32_t expected = (1 + element / 64) * 208 + 8 + element % 64;
            ASSERT_EQ(got[i], i / 32 == 2 ? 0 : expected) << i;
        }
    }
}

TEST(Tma, ReportsMisuse)
{
    std::string kernel = load_kernel(2);
    auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = kernel;
        text.replace(text.find(from), from.size(), to);
        return load_once(text, 8192);
    };
    EXPECT_EQ(changed("[%r2], [%rd0,", "[%r2+16], [%rd0,"), "misaligned");
    EXPECT_EQ(changed("[%r2], [%rd0,", "[%r2+28672], [%rd0,"), "out-of-bounds");
    EXPECT_EQ(changed("[%rd0, {", "[%rd3, {"), "tensor-map");
    EXPECT_EQ(changed("{%r10, %r11}", "{%r10, %r11, %r12}"), "refused");
    EXPECT_EQ(changed(".2d.shared", ".2d.im2col.shared"), "refused");
    EXPECT_EQ(changed("complete_tx::bytes [", "complete_tx::bytes.multicast::cluster ["), "refused");
}

}  // namespace
}  // namespace emu
