// ldmatrix, stmatrix, movmatrix and mma.sync, against the layouts that the PTX ISA draws.
#include "numerics/tensor_core.hpp"

#include "test/golden.hpp"
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace emu {
namespace {

// Four 8 x 8 matrices, one after another, row by row: element value = its index.
std::vector<uint16_t> counted(int count)
{
    std::vector<uint16_t> values(count);
    for (int i = 0; i < count; i++)
        values[i] = static_cast<uint16_t>(i);
    return values;
}

// Copies 512 bytes to shared memory; %r2: the 16 bytes of this lane there, %r3: where matrices start.
const char* load_shared = R"(
.shared .align 16 .b8 tiles[512];
mov.u32 %r3, tiles;
mad.lo.u32 %r2, %r0, 16, %r3;
mul.wide.u32 %rd10, %r0, 16;
add.u64 %rd11, %rd0, %rd10;
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd11];
st.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7};
bar.warp.sync 0xffffffff;
add.u64 %rd12, %rd1, %rd10;
)";

TEST(Matrix, LoadsFragments)
{
    for (bool transposed : {false, true}) {
        Device device(80);
        uint64_t in = device.put(counted(256)), out = device.put(std::vector<uint16_t>(256));
        std::string body =
            std::string(load_shared) + "ldmatrix.sync.aligned.m8n8.x4" + (transposed ? ".trans" : "") +
            ".shared.b16 {%r4, %r5, %r6, %r7}, [%r2];\nst.global.v4.u32 [%rd12], {%r4, %r5, %r6, %r7};";
        EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, body), shape_of(1, 32), {in, out}), "")
            << device.message();
        auto got = device.get<uint16_t>(out, 256);
        for (int lane = 0; lane < 32; lane++)
            for (int matrix = 0; matrix < 4; matrix++)
                for (int half = 0; half < 2; half++) {
                    int row = lane / 4, column = 2 * (lane % 4) + half;
                    int expected = matrix * 64 + (transposed ? column * 8 + row : row * 8 + column);
                    ASSERT_EQ(got[lane * 8 + matrix * 2 + half], expected);
                }
    }
}

TEST(Matrix, SmallerLoadsTakeTheFirstLanesAddresses)
{
    Device device(80);
    uint64_t in = device.put(counted(256)), out = device.put(std::vector<uint32_t>(128));
    std::string body = std::string(load_shared) + R"(
setp.gt.u32 %p0, %r0, 15;
@%p0 mov.u32 %r2, 12;
ldmatrix.sync.aligned.x2.m8n8.shared::cta.b16 {%r4, %r5}, [%r2];
setp.gt.u32 %p0, %r0, 7;
@%p0 mov.u32 %r2, 12;
ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r6}, [%r2];
mov.u32 %r7, 0;
st.global.v4.u32 [%rd12], {%r4, %r5, %r6, %r7};
)";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, body), shape_of(1, 32), {in, out}), "") << device.message();
    auto got = device.get<uint32_t>(out, 128);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t element = lane / 4 * 8 + 2 * (lane % 4), mirrored = 2 * (lane % 4) * 8 + lane / 4;
        EXPECT_EQ(got[lane * 4], element | (element + 1) << 16);
        EXPECT_EQ(got[lane * 4 + 1], (element + 64) | (element + 65) << 16);
        EXPECT_EQ(got[lane * 4 + 2], mirrored | (mirrored + 8) << 16);
    }
}

TEST(Matrix, StoresAreTheInverseOfLoads)
{
    for (const char* trans : {"", ".trans"}) {
        Device device(90);
        uint64_t in = device.put(counted(256)), out = device.put(std::vector<uint16_t>(256));
        std::string suffix = std::string("m8n8.x4") + trans + ".shared.b16";
        std::string body =
            std::string(load_shared) + "ldmatrix.sync.aligned." + suffix +
            " {%r4, %r5, %r6, %r7}, [%r2];\nxor.b32 %r2, %r2, 128;\nbar.warp.sync 0xffffffff;\n" +
            "stmatrix.sync.aligned." + suffix + " [%r2], {%r4, %r5, %r6, %r7};\n" +
            "bar.warp.sync 0xffffffff;\nld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n" +
            "st.global.v4.u32 [%rd12], {%r4, %r5, %r6, %r7};";
        EXPECT_EQ(device.run(ptx_kernel("sm_90", 2, body), shape_of(1, 32), {in, out}), "")
            << device.message();
        EXPECT_EQ(device.get<uint16_t>(out, 256), counted(256));
    }
}

// Sixteen elements of 4 or 6 bits at the start of each 16 bytes become sixteen bytes.
TEST(Matrix, LoadsUnpack)
{
    for (const int bits : {4, 6}) {
        std::vector<uint8_t> packed(512);
        for (int element = 0; element < 512; element++)
            for (int bit = 0; bit < bits; bit++)
                packed[element / 16 * 16 + (element % 16 * bits + bit) / 8] |=
                    static_cast<uint8_t>((element * 37 % 64 >> bit & 1) << (element % 16 * bits + bit) % 8);
        Device device(120);
        uint64_t in = device.put(packed), out = device.put(std::vector<uint8_t>(512));
        std::string body = std::string(load_shared) + "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16." +
                           (bits == 4 ? "b4x16_p64" : "b6x16_p32") +
                           " {%r4, %r5, %r6, %r7}, [%r2];\nst.global.v4.u32 [%rd12], {%r4, %r5, %r6, %r7};";
        EXPECT_EQ(device.run(ptx_kernel("sm_120a", 2, body), shape_of(1, 32), {in, out}), "")
            << device.message();
        auto got = device.get<uint8_t>(out, 512);
        for (int lane = 0; lane < 32; lane++)
            for (int matrix = 0; matrix < 4; matrix++)
                for (int i = 0; i < 4; i++) {
                    const int element = matrix * 128 + lane / 4 * 16 + lane % 4 * 4 + i;
                    ASSERT_EQ(got[lane * 16 + matrix * 4 + i], element * 37 % 64 & ((1 << bits) - 1));
                }
    }
}

TEST(Matrix, MovmatrixTransposes)
{
    Device device(80);
    uint64_t in = device.put(counted(64)), out = device.put(std::vector<uint16_t>(64));
    std::string body = R"(
mul.wide.u32 %rd10, %r0, 4;
add.u64 %rd11, %rd0, %rd10;
add.u64 %rd12, %rd1, %rd10;
ld.global.u32 %r4, [%rd11];
movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;
st.global.u32 [%rd12], %r5;
)";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, body), shape_of(1, 32), {in, out}), "") << device.message();
    auto got = device.get<uint16_t>(out, 64);
    for (int row = 0; row < 8; row++)
        for (int column = 0; column < 8; column++)
            EXPECT_EQ(got[row * 8 + column], column * 8 + row);
}

std::string mma_body(golden::Form form)
{
    const char* types[] = {"f32.bf16.bf16.f32", "f32.f16.f16.f32", "f16.f16.f16.f16"};
    bool half = form == golden::f16_result;
    return std::string(R"(
mad.lo.u32 %r2, %r1, 32, %r0;
mul.wide.u32 %rd10, %r2, 40;
add.u64 %rd11, %rd0, %rd10;
mul.wide.u32 %rd10, %r2, 16;
add.u64 %rd12, %rd1, %rd10;
ld.global.v2.u32 {%r10, %r11}, [%rd11];
ld.global.v2.u32 {%r12, %r13}, [%rd11+8];
ld.global.v2.u32 {%r14, %r15}, [%rd11+16];
ld.global.v2.u32 {%r16, %r17}, [%rd11+24];
ld.global.v2.u32 {%r18, %r19}, [%rd11+32];
mov.u32 %r22, 0;
mov.u32 %r23, 0;
mma.sync.aligned.m16n8k16.row.col.)") +
           types[form] + (half ? " {%r20, %r21}" : " {%r20, %r21, %r22, %r23}") +
           ", {%r10, %r11, %r12, %r13}, {%r14, %r15}" +
           (half ? ", {%r16, %r17}" : ", {%r16, %r17, %r18, %r19}") +
           ";\nst.global.v4.u32 [%rd12], {%r20, %r21, %r22, %r23};";
}

TEST(Matrix, MmaGivesTheBitsOfTheH200)
{
    golden::Inputs inputs(golden::seeds[0]);
    for (auto form : {golden::bf16, golden::f16, golden::f16_result}) {
        Device device(90);
        uint64_t in = device.put(inputs.mma(form));
        uint64_t out = device.put(std::vector<uint32_t>(golden::Inputs::mma_cases * 128));
        EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, mma_body(form)),
                             shape_of(golden::Inputs::mma_cases, 32), {in, out}),
                  "")
            << device.message();
        EXPECT_EQ(golden::hash(reinterpret_cast<void*>(out), golden::Inputs::mma_cases * 512),
                  golden::mma_hashes[0][form].output);
    }
}

TEST(Matrix, MmaK8TakesHalfTheOperands)
{
    // A: row r is r + 1 at k = 0 alone; B: column c is c + 1 there; C counts.
    Device device(80);
    uint64_t out = device.put(std::vector<float>(128));
    std::string body = R"(
shr.u32 %r2, %r0, 2;
and.b32 %r3, %r0, 3;
setp.eq.u32 %p0, %r3, 0;
add.u32 %r4, %r2, 1;
cvt.rn.f16.u32 %h0, %r4;
add.u32 %r5, %r2, 9;
cvt.rn.f16.u32 %h1, %r5;
mov.b16 %h2, 0;
mov.b32 %r6, {%h0, %h2};
mov.b32 %r7, {%h1, %h2};
selp.b32 %r6, %r6, 0, %p0;
selp.b32 %r7, %r7, 0, %p0;
cvt.rn.f32.u32 %f0, %r0;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
    {%f1, %f2, %f3, %f4}, {%r6, %r7}, {%r6}, {%f0, %f0, %f0, %f0};
mul.wide.u32 %rd10, %r0, 16;
add.u64 %rd11, %rd0, %rd10;
st.global.v4.f32 [%rd11], {%f1, %f2, %f3, %f4};
)";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 1, body), shape_of(1, 32), {out}), "") << device.message();
    auto got = device.get<float>(out, 128);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + 8 * (i >> 1), column = 2 * (lane % 4) + (i & 1);
            EXPECT_EQ(got[lane * 4 + i], static_cast<float>((row + 1) * (column + 1) + lane));
        }
}

TEST(Matrix, RefusesWhatItDoesNotKnow)
{
    Device device(80);
    for (const char* body :
         {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.f32 {%r0,%r1,%r2,%r3},{%r0,%r1,%r2,%r3},"
          "{%r0,%r1},{%r0,%r1,%r2,%r3};",
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0,%r1,%r2,%r3},{%r0,%r1,%r2,%r3},"
          "{%r0,%r1},{%r0,%r1,%r2,%r3};",
          "mma.sync.aligned.m16n8k16.row.col.s32.s4.s4.s32 {%r0,%r1,%r2,%r3},{%r0,%r1},{%r0},"
          "{%r0,%r1,%r2,%r3};",
          "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7},{%r0,%r1},"
          "{%r0,%r1},{%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7};",
          "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0 "
          "{%r0,%r1,%r2,%r3},{%r0,%r1,%r2,%r3},{%r0,%r1},{%r0,%r1,%r2,%r3},%r0,{0,0},%r0,{0,0};",
          "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3},"
          "{%r0,%r1,%r2,%r3},{%r0,%r1,%r2,%r3},{%r0,%r1,%r2,%r3},%r4,0;",
          "mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 {%r0,%r1},{%r0,%r1,%r2,%r3},{%r0,%r1},"
          "{%r0,%r1};",
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1}, [%r2];",
          "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%r2];"}) {
        EXPECT_EQ(device.run(ptx_kernel("sm_80", 0, body), shape_of(1, 32), {}), "refused") << body;
        EXPECT_NE(device.message().find("test.ptx:"), std::string::npos);
    }
}

TEST(Matrix, ReportsMisuse)
{
    Device device(80);
    std::string misaligned =
        std::string(load_shared) +
        "add.u32 %r2, %r2, 8;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r2];";
    uint64_t in = device.put(counted(256)), out = device.put(std::vector<uint16_t>(256));
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, misaligned), shape_of(1, 32), {in, out}), "misaligned");
    std::string outside =
        std::string(load_shared) +
        "add.u32 %r2, %r2, 16;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r2];";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 2, outside), shape_of(1, 32), {in, out}), "out-of-bounds");
    std::string divergent =
        "setp.lt.u32 %p0, %r0, 16;\n@%p0 movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r0;";
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 0, divergent), shape_of(1, 32), {}), "divergence");
}

}  // namespace
}  // namespace emu
