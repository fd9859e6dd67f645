// wgmma, tcgen05.mma and wmma on tf32, fp8, fp6, fp4 and integers, against sums of small integers.
#include "numerics/tensor_core.hpp"

#include "test/run_ptx.hpp"
#include "test/tcgen05_fixture.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

namespace emu {
namespace {

struct Type {
    std::string name;
    int bits;  // of an element in shared memory
    uint64_t (*encode)(int);
    int code = 0;   // in tcgen05's instruction descriptor
    int dense = 0;  // bits of an element where sixteen stand at the start of 16 bytes
    int least = -4, most = 4;
};

template <FormatId Id>
uint64_t encode_float(int value)
{
    return from_double(Id, value, Rounding::Nearest);
}
uint64_t encode_integer(int value) { return static_cast<uint64_t>(value); }

const Type tf32{"tf32", 32, encode_float<FormatId::F32>, 2},
    e4m3{"e4m3", 8, encode_float<FormatId::E4m3>, 0}, e5m2{"e5m2", 8, encode_float<FormatId::E5m2>, 1},
    e2m3{"e2m3", 8, encode_float<FormatId::E2m3>, 3, 6},
    e3m2{"e3m2", 8, encode_float<FormatId::E3m2>, 4, 6},
    e2m1{"e2m1", 8, encode_float<FormatId::E2m1>, 5, 4}, fp4{"e2m1", 4, encode_float<FormatId::E2m1>, 1},
    s8{"s8", 8, encode_integer, 1, 0, -128, 127}, u8{"u8", 8, encode_integer, 0, 0, 0, 255},
    f16{"f16", 16, encode_float<FormatId::F16>}, bf16{"bf16", 16, encode_float<FormatId::Bf16>},
    s4{"s4", 4, encode_integer, 0, 0, -8, 7}, b1{"b1", 1, encode_integer, 0, 0, 0, 1},
    f64{"f64", 64, encode_float<FormatId::F64>};

std::vector<int> numbers(const Type& type, int count, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<int> values(count);
    for (int& value : values)
        value = type.least + static_cast<int>(random() % (type.most - type.least + 1));
    return values;
}

void put_bits(std::vector<uint8_t>& image, size_t bit, uint64_t code, int width)
{
    for (int i = 0; i < width; ++i)
        image[(bit + i) / 8] |= static_cast<uint8_t>((code >> i & 1) << (bit + i) % 8);
}

// Rows of 32 bytes, K-major without a swizzle: 8 x 16 bytes lie together, the two halves of k 128 bytes
// apart, eight rows 256.
void put_matrix(std::vector<uint8_t>& image, size_t start, const std::vector<int>& values, const Type& type)
{
    const int k = 256 / type.bits, chunk = 128 / type.bits;
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t row = i / k, column = i % k;
        const size_t at = start + row / 8 * 256 + column / chunk * 128 + row % 8 * 16;
        const int step = type.dense ? type.dense : type.bits;
        put_bits(image, at * 8 + column % chunk * step, type.encode(values[i]), step);
    }
}

int64_t dot(const std::vector<int>& a, const std::vector<int>& b, int row, int column, int k)
{
    int64_t sum = 0;
    for (int i = 0; i < k; ++i)
        sum += int64_t{a[row * k + i]} * b[column * k + i];
    return sum;
}

uint32_t result_bits(bool integers, int64_t value)
{
    return integers ? static_cast<uint32_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
}

// ---- wgmma ------------------------------------------------------------------------------------------
void check_wgmma(const Type& a, const Type& b)
{
    const bool integers = a.name == "s8" || a.name == "u8";
    const int k = 256 / a.bits;
    const std::vector<int> left = numbers(a, 64 * k, 1), right = numbers(b, 16 * k, 2);
    std::vector<uint8_t> image(4096);
    put_matrix(image, 0, left, a);
    put_matrix(image, 2048, right, b);
    Device device(90);
    const uint64_t out = device.put(std::vector<uint32_t>(128 * 8));
    const std::string body = R"(
.shared .align 128 .b8 smem[4096];
mov.u32 %r2, smem;
mul.lo.u32 %r3, %r0, 32;
cvt.u64.u32 %rd8, %r3;
add.u64 %rd8, %rd8, %rd0;
add.u32 %r3, %r3, %r2;
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd8];
st.shared.v4.u32 [%r3], {%r4, %r5, %r6, %r7};
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd8+16];
st.shared.v4.u32 [%r3+16], {%r4, %r5, %r6, %r7};
fence.proxy.async.shared::cta;
bar.sync 0;
cvt.u64.u32 %rd9, %r2;
shr.u64 %rd9, %rd9, 4;
or.b64 %rd10, %rd9, 0x0000001000080000;
add.u64 %rd11, %rd10, 128;
setp.ne.u32 %p1, 0, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n16k)" +
                             std::to_string(k) + "." + (integers ? "s32." : "f32.") + a.name + "." +
                             b.name +
                             " {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, %rd10, %rd11, %p1" +
                             (integers ? "" : ", 1, -1") + R"(;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %rd12, %r0, 32, %rd1;
st.global.v4.u32 [%rd12], {%r10, %r11, %r12, %r13};
st.global.v4.u32 [%rd12+16], {%r14, %r15, %r16, %r17};
)";
    ASSERT_EQ(device.run(ptx_kernel("sm_90a", 2, body), shape_of(1, 128), {device.put(image), out}), "")
        << device.message();
    const auto got = device.get<uint32_t>(out, 128 * 8);
    for (int thread = 0; thread < 128; ++thread)
        for (int i = 0; i < 8; ++i) {
            const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
                      column = i / 4 * 8 + thread % 4 * 2 + i % 2;
            ASSERT_EQ(got[thread * 8 + i],
                      result_bits(integers, dot(left, right, row, column, k) * (integers ? 1 : -1)))
                << a.name << " " << b.name << " " << row << " " << column;
        }
}

TEST(ElementTypes, Wgmma)
{
    check_wgmma(tf32, tf32);
    for (const Type& a : {e4m3, e5m2})
        for (const Type& b : {e4m3, e5m2})
            check_wgmma(a, b);
    for (const Type& a : {s8, u8})
        for (const Type& b : {s8, u8})
            check_wgmma(a, b);
}

// ---- tcgen05.mma ------------------------------------------------------------------------------------
constexpr uint64_t plain_descriptor = uint64_t{1} << 46 | uint64_t{16} << 32 | uint64_t{8} << 16;
constexpr int b_start = 16384, scale_column = 32;

struct Product {
    Type a, b;
    std::vector<int> left, right;
    Probe probe{1, 64};
    int k;

    Product(const Type& a, const Type& b, const std::string& kind)
        : a(a), b(b), left(numbers(a, 128 * (256 / a.bits), 3)), right(numbers(b, 32 * (256 / a.bits), 4)),
          k(256 / a.bits)
    {
        put_matrix(probe.images[0], 0, left, a);
        put_matrix(probe.images[0], b_start, right, b);
        probe.a = plain_descriptor;
        probe.b = plain_descriptor | b_start >> 4;
        probe.work = "tcgen05.mma.cta_group::1.kind::" + kind + " [%tmem], %a, %b, %idesc, %enable;";
        probe.descriptor = uint32_t(a.code) << 7 | uint32_t(b.code) << 10 | 32 / 8 << 17;
    }
    void check(bool integers, int64_t factor = 1)
    {
        ASSERT_EQ(probe.run(), "") << probe.message;
        for (int row = 0; row < 128; ++row)
            for (int column = 0; column < 32; ++column)
                ASSERT_EQ(probe.result(0, row, column),
                          result_bits(integers, dot(left, right, row, column, k) * factor))
                    << a.name << " " << b.name << " " << row << " " << column;
    }
};

TEST(ElementTypes, Tcgen05Floats)
{
    const auto plain = [](const Type& a, const Type& b, const char* kind) {
        Product product(a, b, kind);
        product.probe.descriptor |= 1 << 4 | 128 / 16 << 24;
        product.check(false);
    };
    plain(tf32, tf32, "tf32");
    for (const Type& a : {e4m3, e5m2, e2m3, e3m2, e2m1})
        for (const Type& b : {e4m3, e5m2, e2m3, e3m2, e2m1})
            plain(a, b, "f8f6f4");
}

TEST(ElementTypes, Tcgen05Integers)
{
    for (const Type& a : {s8, u8})
        for (const Type& b : {s8, u8}) {
            Product product(a, b, "i8");
            product.probe.descriptor |= 2 << 4 | 128 / 16 << 24;
            product.check(true);
        }
}

// Scales of A stand in columns 32 ... 35, of B in 36: all of A's are 2, all of B's 4.
void check_scaled(const Type& type, const std::string& kind, uint32_t a_scale, uint32_t b_scale, bool ue8m0)
{
    Product product(type, type, kind);
    product.probe.descriptor |= uint32_t{ue8m0} << 23 | 128 / 128 << 27;
    for (int lane = 0; lane < 128; ++lane)
        for (int column = 0; column < 5; ++column)
            product.probe.word(0, lane, scale_column + column) = column < 4 ? a_scale : b_scale;
    product.probe.work = "add.u32 %x, %tmem, " + std::to_string(scale_column) +
                         "; tcgen05.mma.cta_group::1.kind::" + kind +
                         " [%tmem], %a, %b, %idesc, [%x], [%x+4], %enable;";
    product.check(false, 8);
}

TEST(ElementTypes, Tcgen05BlocksAreScaled)
{
    check_scaled(e4m3, "mxf8f6f4.block_scale.scale_vec::1X", 0x80808080, 0x81818181, true);
    check_scaled(e2m1, "mxf8f6f4.block_scale.block32", 0x80808080, 0x81818181, true);
    check_scaled(fp4, "mxf4.block_scale", 0x80808080, 0x81818181, true);
    check_scaled(fp4, "mxf4nvf4.block_scale.scale_vec::4X", 0x40404040, 0x48484848, false);
}

TEST(ElementTypes, Tcgen05DescriptorsAreChecked)
{
    // A type that does not exist, sparse, reserved, an integer result.
    for (const uint32_t wrong : {2u << 7, 1u << 2, 1u << 6, 3u << 4}) {
        Product product(e4m3, e4m3, "f8f6f4");
        product.probe.descriptor |= (1 << 4 | 128 / 16 << 24);
        product.probe.descriptor ^= wrong;
        EXPECT_EQ(product.probe.run(), "tcgen05-descriptor") << wrong;
    }
}

// ---- wmma -------------------------------------------------------------------------------------------
struct Wmma {
    Type type;
    std::string shape, result;
    int m, n, k, registers_a, registers_b;
    std::string sum = "";  // before the rest, for single bits
};

std::string list(const std::string& prefix, int first, int count)
{
    std::string text = "{";
    for (int i = 0; i < count; ++i)
        text += (i ? ", %" : "%") + prefix + std::to_string(first + i);
    return text + "}";
}

// A row-major with two elements of padding (where lines may have it), B and C in both layouts.
void check_wmma(const Wmma& w, bool b_row, bool c_row)
{
    const bool wide = w.type.bits == 64, small = w.type.bits < 8;
    const int padding = small ? 0 : 16, accumulators = w.m * w.n / 32;
    const int a_stride = w.k + padding, b_stride = (b_row ? w.n : w.k) + padding;
    const std::vector<int> a = numbers(w.type, w.m * w.k, 5), b = numbers(w.type, w.n * w.k, 6);
    std::vector<uint8_t> a_memory(w.m * a_stride * w.type.bits / 8 + 8),
        b_memory((b_row ? w.k : w.n) * b_stride * w.type.bits / 8 + 8);
    for (int row = 0; row < w.m; ++row)
        for (int k = 0; k < w.k; ++k)
            put_bits(a_memory, size_t(row * a_stride + k) * w.type.bits, w.type.encode(a[row * w.k + k]),
                     w.type.bits);
    for (int column = 0; column < w.n; ++column)
        for (int k = 0; k < w.k; ++k)
            put_bits(b_memory, size_t(b_row ? k * b_stride + column : column * b_stride + k) * w.type.bits,
                     w.type.encode(b[column * w.k + k]), w.type.bits);
    const int bytes = wide                ? 8
                      : w.result == "f16" ? 2
                                          : 4,
              d_registers = w.result == "f16" ? accumulators / 2 : accumulators;
    Device device(80);
    const uint64_t out = device.put(std::vector<uint8_t>(w.m * w.n * bytes));
    const std::string layouts = std::string(".row.") + (b_row ? "row" : "col") + "." + w.shape + ".";
    const std::string types = w.type.name == "f16"
                                  ? w.result + "." + w.result
                                  : w.result + "." + w.type.name + "." + w.type.name + "." + w.result;
    const std::string r = wide ? "rd" : "r", d = list(r, 30, d_registers);
    std::string body =
        "mov.u32 %r2, " + std::to_string(a_stride) + ";\nmov.u32 %r3, " + std::to_string(b_stride) + ";\n";
    for (int i = 0; i < d_registers; ++i)
        body += std::string("mov.b") + (wide ? "64" : "32") + " %" + r + std::to_string(30 + i) + ", 0;\n";
    body += "wmma.load.a.sync.aligned.row." + w.shape + ".global." + w.type.name + " " +
            list(r, 10, w.registers_a) + ", [%rd0], %r2;\nwmma.load.b.sync.aligned." +
            (b_row ? "row" : "col") + "." + w.shape + "." + w.type.name + " " + list(r, 20, w.registers_b) +
            ", [%rd1], %r3;\nwmma.mma" + w.sum + ".sync.aligned" + layouts + types + " " + d + ", " +
            list(r, 10, w.registers_a) + ", " + list(r, 20, w.registers_b) + ", " + d +
            ";\nwmma.store.d.sync.aligned." + (c_row ? "row" : "col") + "." + w.shape + ".global." +
            w.result + " [%rd2], " + d + ";\n";
    ASSERT_EQ(device.run(ptx_kernel("sm_80", 3, body), shape_of(1, 32),
                         {device.put(a_memory), device.put(b_memory), out}),
              "")
        << device.message();
    for (int row = 0; row < w.m; ++row)
        for (int column = 0; column < w.n; ++column) {
            const int at = c_row ? row * w.n + column : column * w.m + row;
            const int64_t sum = dot(a, b, row, column, w.k);
            uint64_t got = 0;
            std::memcpy(&got, reinterpret_cast<uint8_t*>(out) + at * bytes, bytes);
            const uint64_t wanted = wide                ? std::bit_cast<uint64_t>(double(sum))
                                    : w.result == "f16" ? double_to_f16(double(sum))
                                                        : result_bits(w.result == "s32", sum);
            ASSERT_EQ(got, wanted) << w.shape << " " << w.type.name << " " << row << " " << column;
        }
}

TEST(ElementTypes, Wmma)
{
    for (int layout = 0; layout < 4; ++layout)
        for (const Wmma& w : {Wmma{f16, "m16n16k16", "f32", 16, 16, 16, 8, 8},
                              {f16, "m32n8k16", "f16", 32, 8, 16, 8, 8},
                              {bf16, "m8n32k16", "f32", 8, 32, 16, 2, 8},
                              {tf32, "m16n16k8", "f32", 16, 16, 8, 4, 4},
                              {s8, "m16n16k16", "s32", 16, 16, 16, 2, 2},
                              {u8, "m32n8k16", "s32", 32, 8, 16, 4, 1},
                              {f64, "m8n8k4", "f64", 8, 8, 4, 1, 1}})
            check_wmma(w, layout & 1, layout & 2);
    check_wmma({s4, "m8n8k32", "s32", 8, 8, 32, 1, 1}, false, true);
    check_wmma({b1, "m8n8k128", "s32", 8, 8, 128, 1, 1, ".and.popc"}, false, true);
}

}  // namespace
}  // namespace emu
