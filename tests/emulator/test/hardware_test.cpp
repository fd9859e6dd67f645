// What an H200 does where the ISA says nothing or something else; found by the generated kernels
// (silicon/).
#include "numerics/reduction.hpp"
#include "numerics/tensor_core.hpp"
#include "test/evaluate.hpp"
#include "test/map_arguments.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace emu {
namespace {

struct Unary {
    const char* text;
    int from, to;
    uint64_t in, out;
};

void check(const std::vector<Unary>& cases)
{
    for (const Unary& c : cases)
        EXPECT_EQ(evaluate(c.text, {c.to, c.from}, {{c.in}})[0], c.out)
            << c.text << std::hex << " " << c.in;
}

uint64_t first(const std::string& text, const std::vector<int>& widths, const std::vector<uint64_t>& values)
{
    std::vector<Values> operands;
    for (const uint64_t value : values)
        operands.push_back({value});
    return evaluate(text, widths, operands)[0];
}

TEST(Hardware, FieldsOf64BitsTakePositionAndLengthWhole)
{
    const std::vector<int> extract = {64, 64, 32, 32}, insert = {64, 64, 64, 32, 32};
    EXPECT_EQ(first("bfe.u64 d, a, b, c;", extract, {0x13d90517446, 0xa, 0xe64a317}), 0x4f64145du);
    EXPECT_EQ(first("bfe.u64 d, a, b, c;", extract, {0x4000000, 0xd41c940e, 0x29}), 0u);
    EXPECT_EQ(first("bfe.s64 d, a, b, c;", extract, {0xafb670cedb0d00fe, 0x18, 0xe6dd631f}),
              0xffffffafb670cedbu);
    EXPECT_EQ(first("bfe.s64 d, a, b, c;", extract, {0xd55d92f7644d60a8, 0x89ffca3d, 0x43}), ~0ull);
    EXPECT_EQ(first("bfi.b64 d, a, b, c, e;", insert, {1, 0xfe06cb287da2acbc, 8, 0x7a8c2f35}), 0x1bcu);
    EXPECT_EQ(first("bfe.u32 d, a, b, c;", {32, 32, 32, 32}, {0x12345678, 0x108, 0x104}), 0x6u);
}

TEST(Hardware, ACarryFromASubtractionIsNoBorrow)
{
    const std::string text = "sub.cc.u32 d, a, b;\naddc.u32 d, c, e;";
    EXPECT_EQ(first(text, {32, 32, 32, 32, 32}, {0x57f100b6, 0x453fc3, 0x13, 0x558503db}), 0x558503efu);
    EXPECT_EQ(first(text, {32, 32, 32, 32, 32}, {0x55555555, 0x80000000, 0x80000000, 10}), 0x8000000au);
}

TEST(Hardware, ConversionsToAndFromDoubleKeepANaN)
{
    check({{"cvt.rz.f16.f64 d, a;", 64, 16, 0xfff8000000000000, 0xfe00},
           {"cvt.rn.bf16.f64 d, a;", 64, 16, 0x7ff0000000000001, 0x7fc0},
           {"cvt.rn.f32.f64 d, a;", 64, 32, 0xffffffffffffffff, 0xffffffff},
           {"cvt.rm.ftz.f32.f64 d, a;", 64, 32, 0xfff0000000000001, 0xffc00000},
           {"cvt.f64.f16 d, a;", 16, 64, 0xfd33, 0xfffccc0000000000},
           {"cvt.f64.bf16 d, a;", 16, 64, 0xff81, 0xfff8200000000000},
           {"cvt.f64.f32 d, a;", 32, 64, 0x7f800001, 0x7ff8000020000000},
           {"cvt.ftz.f64.f32 d, a;", 32, 64, 0x7f800001, 0x7fffffffe0000000},
           {"cvt.rmi.f64.f64 d, a;", 64, 64, 0xfff18cbb0458eace, 0xfff98cbb0458eace}});
}

TEST(Hardware, OtherConversionsOfANaN)
{
    check({{"cvt.f32.bf16 d, a;", 16, 32, 0x7f81, 0x7f810000},
           {"cvt.f32.f16 d, a;", 16, 32, 0xfc01, 0x7fffffff},
           {"cvt.rn.tf32.f32 d, a;", 32, 32, 0xffc00000, 0x7fffe000},
           {"cvt.rz.relu.tf32.f32 d, a;", 32, 32, 0xff800001, 0x7fffe000},
           {"cvt.rna.tf32.f32 d, a;", 32, 32, 0xffffffff, 0xffffe000},
           {"cvt.rna.tf32.f32 d, a;", 32, 32, 0x7f800001, 0x7f800000}});
}

TEST(Hardware, FlushedConversionsToHalfSeeSubnormals)
{
    check({{"cvt.rm.ftz.f16.f32 d, a;", 32, 16, 0x806bdbd0, 0x8001},
           {"cvt.rp.ftz.f16.f32 d, a;", 32, 16, 2, 1},
           {"cvt.rp.ftz.f16.f32 d, a;", 32, 16, 0x80000002, 0x8000}});
}

TEST(Hardware, HalvesAreFlushedBeforeTheyAreRounded)
{
    // 2^-14 times a little less than one rounds to 2^-14.
    EXPECT_EQ(first("mul.ftz.f16x2 d, a, b;", {32, 32, 32}, {0xf97b0400, 0x8002bbff}), 0x8000u);
    EXPECT_EQ(first("mul.f16x2 d, a, b;", {32, 32, 32}, {0x0400, 0xbbff}), 0x8400u);
}

TEST(Hardware, SignsOfNaN)
{
    check({{"abs.f32 d, a;", 32, 32, 0xff800001, 0x7fffffff},
           {"neg.f32 d, a;", 32, 32, 0x7fc00000, 0x7fffffff},
           {"neg.f16 d, a;", 16, 16, 0xfc01, 0x7fff},
           {"abs.bf16 d, a;", 16, 16, 0x7fc5, 0x7fff},
           {"neg.bf16x2 d, a;", 32, 32, 0x7fc05f0d, 0x7fffdf0d},
           {"abs.f16x2 d, a;", 32, 32, 0xfe05015d, 0x7fff015d},
           {"neg.f64 d, a;", 64, 64, 0x7ff8000000000005, 0x7ff8000000000005},
           {"abs.f64 d, a;", 64, 64, 0xfff0000000000001, 0xfff8000000000001}});
    EXPECT_EQ(first("copysign.f32 d, a, b;", {32, 32, 32}, {0xc0400000, 0xff800001}), 0xff800001u);
    EXPECT_EQ(first("copysign.f32 d, a, b;", {32, 32, 32}, {0x00800001, 0xffc00000}), 0x7fc00000u);
}

TEST(Hardware, WhichNaNADoubleHandsOn)
{
    constexpr uint64_t quiet = 0xfff8000000000005, loud = 0x7ff0000000000001, made = 0x7ff8000000000001;
    constexpr uint64_t one = 0x3ff0000000000000;
    for (const char* opcode : {"add.rm", "sub.rn", "mul.rn", "min", "max"}) {
        const std::string text = std::string(opcode) + ".f64 d, a, b;";
        EXPECT_EQ(first(text, {64, 64, 64}, {quiet, loud}), made) << opcode;
        EXPECT_EQ(first(text, {64, 64, 64}, {loud, quiet}), quiet) << opcode;
    }
    const std::string fma = "fma.rn.f64 d, a, b, c;";
    EXPECT_EQ(first(fma, {64, 64, 64, 64}, {quiet, one, loud}), made);
    EXPECT_EQ(first(fma, {64, 64, 64, 64}, {one, loud, quiet}), made);
    EXPECT_EQ(first(fma, {64, 64, 64, 64}, {loud, quiet, one}), quiet);
    EXPECT_EQ(first("div.rn.f64 d, a, b;", {64, 64, 64}, {quiet, 0x7ff8000000000000}), quiet);
}

template <typename T>
T reduced(Reduction reduction, Element element, T old, T value)
{
    reduce(reduction, element, &old, &value, 1);
    return old;
}

TEST(Hardware, SumsAtMemory)
{
    EXPECT_EQ(reduced<uint32_t>(Reduction::Add, Element::F32, 0xffc00000, 0x3f800000), 0x7fffffffu);
    EXPECT_EQ(reduced<uint64_t>(Reduction::Add, Element::F64, 0x3ff0000000000000, 0x7ff0000000000001),
              0x7ff0000000000001u);
    Device device(90);
    const uint64_t cells = device.put(std::vector<uint64_t>{0x3ff0000000000000, 0xc0100000, 0});
    EXPECT_EQ(device.run(ptx_kernel("sm_90a", 1, R"(
.shared .align 8 .b64 cell;
mov.b64 %rd10, 0x7ff0000000000001;
mov.b64 %rd11, 0x3ff0000000000000;
mov.u32 %r2, cell;
st.shared.u64 [%r2], %rd11;
red.global.add.f64 [%rd0], %rd10;
red.shared.add.f64 [%r2], %rd10;
mov.b16 %h0, 0x8000;
mov.b16 %h1, 0x3f80;
red.global.min.noftz.v2.bf16 [%rd0+8], {%h0, %h1};
ld.shared.u64 %rd12, [%r2];
st.global.u64 [%rd0+16], %rd12;
)"),
                         shape_of(1, 1), {cells}),
              "")
        << device.message();
    // -0 is less than +0; a sum of doubles keeps a NaN as it is at global memory alone.
    EXPECT_EQ(device.get<uint64_t>(cells, 3),
              (std::vector<uint64_t>{0x7ff0000000000001, 0xc0108000, 0x7ff8000000000001}));
}

TEST(Hardware, ATensorCoreSumThatVanishesHasNoSign)
{
    Config config;
    config.cc = 90;
    MatrixShape shape;
    shape.m = 64, shape.n = 8, shape.k = 16;
    shape.a = shape.b = FormatId::Bf16;
    std::vector<uint32_t> a(64 * 16), b(8 * 16);
    std::vector<uint32_t> d(64 * 8);
    a[0] = 0x8001, b[0] = 0x0001;
    multiply_accumulate(tensor_core(config, MatrixUnit::Wgmma, FormatId::Bf16), shape, a.data(), b.data(), d.data());
    EXPECT_EQ(d[0], 0u);
}

// One box of four elements at (x, y) of a tensor whose four lines have 64 bytes.
struct Box {
    std::string copy;  // load, prefetch, store or the name of a reduction
    int x = 0, y = 0;
    uint32_t type = f32_type, element_bytes = 4;
};

std::string copy_text(const Box& box)
{
    const std::string at = "[%rd0, {" + std::to_string(box.x) + ", " + std::to_string(box.y) + "}]";
    if (box.copy == "load")
        return "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"
               "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], " +
               at +
               ", [%r3];\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;\n"
               "@!%p1 bra WAIT;\n";
    if (box.copy == "prefetch")
        return "cp.async.bulk.prefetch.tensor.2d.L2.global.tile " + at + ";\n";
    const std::string opcode =
        box.copy == "store"
            ? "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
            : "cp.reduce.async.bulk.tensor.2d.global.shared::cta." + box.copy + ".tile.bulk_group ";
    return opcode + at + ", [%r2];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
}

// The reports; `words` are the first of the tensor, `shared` the first of shared memory afterwards.
std::string run_box(const Box& box, std::vector<uint32_t> words, std::vector<uint32_t>* shared = nullptr)
{
    Device device(90);
    words.resize(64);
    MapArguments arguments;
    arguments.type = box.type;
    arguments.base = device.put(words);
    arguments.size[0] = 64 / box.element_bytes, arguments.size[1] = 4, arguments.stride[0] = 64;
    arguments.box[0] = 4, arguments.box[1] = 1;
    const uint64_t map = device.put(std::vector<TensorMap>{arguments.map()});
    const uint64_t out = device.put(std::vector<uint32_t>(4));
    const std::string reports = device.run(ptx_kernel("sm_90a", 2, R"(
.shared .align 128 .b8 smem[128];
.shared .align 8 .b64 bar;
mov.u32 %r2, smem;
mov.u32 %r3, bar;
mbarrier.init.shared::cta.b64 [%r3], 1;
mov.u32 %r4, 0;
st.shared.v4.u32 [%r2], {%r4, %r4, %r4, %r4};
st.shared.v4.u32 [%r2+16], {%r4, %r4, %r4, %r4};
fence.proxy.async.shared::cta;
)" + copy_text(box) + R"(
ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];
st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};
)"),
                                           shape_of(1, 1), {map, out});
    if (shared)
        *shared = device.get<uint32_t>(out, 4);
    return reports;
}

TEST(Hardware, BoxesBeginOnUnitsAndStoresWithinTheTensor)
{
    const std::string refused = "illegal-instruction";
    for (const std::string copy : {"load", "prefetch", "store", "add"}) {
        const bool stores = copy == "store" || copy == "add";
        EXPECT_EQ(run_box({copy, 4, 1}, {}), "") << copy;
        EXPECT_EQ(run_box({copy, 16, 3}, {}), "") << copy;
        EXPECT_EQ(run_box({copy, 2, 1}, {}), refused) << copy;
        EXPECT_EQ(run_box({copy, -3, 1}, {}), refused) << copy;
        EXPECT_EQ(run_box({copy, -4, 0}, {}), stores ? refused : "") << copy;
        EXPECT_EQ(run_box({copy, 0, -1}, {}), stores ? refused : "") << copy;
    }
}

TEST(Hardware, LoadsRoundToTf32)
{
    using Words = std::vector<uint32_t>;
    constexpr uint32_t f32_ftz = 10, tf32 = 11, tf32_ftz = 12;
    const Words in = {0xbf335264, 0x7f7fffff, 0xff800001, 0x003fffff};
    Words out;
    EXPECT_EQ(run_box({"load", 0, 0, f32_ftz}, in, &out), "");
    EXPECT_EQ(out, in);
    for (const uint32_t type : {tf32, tf32_ftz}) {
        EXPECT_EQ(run_box({"load", 0, 0, type}, in, &out), "");
        EXPECT_EQ(out, (Words{0xbf336000, 0x7f800000, 0x7fffe000, 0x00400000}));
        EXPECT_EQ(run_box({"load", 0, 0, type}, {0x80000002, 0xc4a03340, 0x7f800000, 0}, &out), "");
        EXPECT_EQ(out, (Words{0x80000000, 0xc4a04000, 0x7f800000, 0}));
    }
}

TEST(Hardware, ReducesSignedWideIntegersToLeastAndGreatestAlone)
{
    constexpr uint32_t u64_type = 4, s64_type = 5;
    for (const std::string operation : {"add", "min", "max", "and", "or", "xor"}) {
        const bool compares = operation == "min" || operation == "max";
        EXPECT_EQ(run_box({operation, 0, 0, u64_type, 8}, {}), "") << operation;
        EXPECT_EQ(run_box({operation, 0, 0, s64_type, 8}, {}), compares ? "" : "illegal-instruction")
            << operation;
    }
    EXPECT_FALSE(may_reduce(Reduction::Add, Element::S64));
}

}  // namespace
}  // namespace emu
