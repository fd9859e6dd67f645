// Moves to and from tensor memory, and clusters that take over others' work.
#include "test/run_ptx.hpp"
#include "test/tcgen05_fixture.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

// Where a shape puts bits, as CuTe's copy traits say it: a thread's first bit, then those of its registers,
// in a block of lanes of so many bits each.
struct Shape {
    const char* name;
    int registers, lanes, lane_bits;  // of x1
    int half = 0;                     // 16x32bx2: its operand, for x1

    int bit(int thread, int reg, int num) const
    {
        const std::string shape = name;
        if (shape == "32x32b")
            return thread * 32 * num + reg * 32;
        if (shape == "16x32bx2")
            return thread % 16 * 64 * num + thread / 16 * 32 * num + reg * 32;
        if (shape == "16x64b")
            return thread % 2 * 512 * num + thread / 2 % 2 * 32 + thread / 4 * 64 * num + reg * 64;
        if (shape == "16x128b")
            return thread % 4 * 32 + thread / 4 * 128 * num + reg % 2 * 1024 * num + reg / 2 * 128;
        return thread % 4 * 64 + thread / 4 * 256 * num + reg % 2 * 32 + reg / 2 % 2 * 2048 * num +
               reg / 4 * 256;
    }
};

constexpr Shape shapes[] = {{"32x32b", 1, 32, 32},
                            {"16x64b", 1, 16, 64},
                            {"16x128b", 2, 16, 128},
                            {"16x256b", 4, 16, 256},
                            {"16x32bx2", 1, 16, 64, 1}};

std::string registers(int count)
{
    std::string list;
    for (int i = 0; i < count; ++i)
        list += (i ? ", %v" : "%v") + std::to_string(i);
    return "{" + list + "}";
}

// Moves registers between global memory (row of the thread) and themselves.
std::string move_registers(int count, bool load)
{
    std::string text;
    for (int i = 0; i < count; ++i) {
        const std::string at =
            "[%" + std::string(load ? "before" : "after") + " + " + std::to_string(4 * i) + "]";
        const std::string reg = "%v" + std::to_string(i);
        text +=
            load ? "ld.global.u32 " + reg + ", " + at + ";\n" : "st.global.u32 " + at + ", " + reg + ";\n";
    }
    return text;
}

void expect_shape(const Shape& shape, int num, bool load, bool packed)
{
    const int count = shape.registers * num;
    const int words = shape.lane_bits / 32 * num * (packed ? 2 : 1);
    if (count > 128 || words > 256)
        return;
    SCOPED_TRACE(std::string(load ? "ld." : "st.") + shape.name + ".x" + std::to_string(num) +
                 (packed ? " packed" : ""));
    Probe probe(1, std::max(128, words < 256 ? 128 : 256));
    for (size_t i = 0; i < probe.before[0].size(); ++i)
        probe.before[0][i] = static_cast<uint32_t>(i * 2654435761u);
    const int half = shape.half * num * (packed ? 2 : 1);
    const std::string tail = half ? ", " + std::to_string(half) : "";
    const std::string shape_words = std::string(".sync.aligned.") + shape.name + ".x" + std::to_string(num);
    const std::string address = "add.u32 %x, %tmem, %lane;\n";
    if (load)
        probe.show = address + "tcgen05.ld" + shape_words + (packed ? ".pack::16b" : "") + ".b32 " +
                     registers(count) + ", [%x]" + tail + ";\ntcgen05.wait::ld.sync.aligned;\n" +
                     move_registers(count, false);
    else
        probe.fill = address + move_registers(count, true) + "tcgen05.st" + shape_words +
                     (packed ? ".unpack::16b" : "") + ".b32 [%x]" + tail + ", " + registers(count) + ";\n";
    const std::string reports = probe.run();
    const bool everything = load || (shape.lanes == 32 && words == probe.columns);
    EXPECT_EQ(reports, everything ? "" : "uninitialised-read") << "a store leaves the rest unwritten";
    int wrong = 0;
    for (int thread = 0; thread < 128; ++thread)
        for (int i = 0; i < count; ++i) {
            const int bit = shape.bit(thread % 32, i, num);
            const int lane = thread / 32 * 32 + bit / (shape.lane_bits * num);
            const int column = bit % (shape.lane_bits * num) / 32;
            const auto& memory = load ? probe.before : probe.after;
            const auto& registers_of = load ? probe.after : probe.before;
            const auto cell = [&](int at) { return memory[0][lane * probe.columns + at]; };
            const uint32_t reg = registers_of[0][thread * probe.columns + i];
            if (!packed)
                wrong += cell(column) != reg;
            else if (load)
                wrong += ((cell(2 * column) & 0xffff) | cell(2 * column + 1) << 16) != reg;
            else
                wrong += cell(2 * column) != (reg & 0xffff) || cell(2 * column + 1) != reg >> 16;
        }
    EXPECT_EQ(wrong, 0);
}

TEST(Tcgen05Move, shapes)
{
    for (const Shape& shape : shapes)
        for (const int num : {1, 2, 4, 32, 128})
            for (const bool load : {true, false})
                for (const bool packed : {false, true})
                    expect_shape(shape, num, load, packed);
}

// Rows of shared memory without a swizzle: eight rows of 16 bytes, then the next eight; the second 16 bytes
// of a row lie `leading` bytes on.
std::vector<uint32_t> row_words(std::vector<uint8_t>& image, int rows, int words)
{
    constexpr int stride = 128 + 16, leading = 8192;
    std::vector<uint32_t> values(rows * words);
    for (int row = 0; row < rows; ++row)
        for (int word = 0; word < words; ++word) {
            const uint32_t value = static_cast<uint32_t>((row * 8 + word + 1) * 2654435761u);
            std::memcpy(&image[row % 8 * 16 + row / 8 * stride + word / 4 * leading + word % 4 * 4], &value,
                        4);
            values[row * words + word] = value;
        }
    return values;
}
constexpr uint64_t row_descriptor =
    uint64_t{8192 / 16} << 16 | uint64_t{144 / 16} << 32 | uint64_t{1} << 46;

TEST(Tcgen05Move, copies)
{
    struct Form {
        const char* name;
        int rows, words;
        std::vector<int> (*lanes)(int row);
    };
    const Form forms[] = {
        {"128x256b", 128, 8, [](int row) { return std::vector{row}; }},
        {"128x128b", 128, 4, [](int row) { return std::vector{row}; }},
        {"4x256b", 4, 8, [](int row) { return std::vector{row * 32}; }},
        {"64x128b.warpx2::02_13", 64, 4,
         [](int row) {
             return std::vector{row, row + 64};
         }},
        {"64x128b.warpx2::01_23", 64, 4,
         [](int row) {
             return row < 32 ? std::vector{row, row + 32} : std::vector{row + 32, row + 64};
         }},
        {"32x128b.warpx4", 32, 4,
         [](int row) {
             return std::vector{row, row + 32, row + 64, row + 96};
         }},
    };
    for (const int ctas : {1, 2})
        for (const Form& form : forms) {
            SCOPED_TRACE(form.name);
            Probe probe(ctas, 32);
            probe.a = row_descriptor;
            probe.work = "add.u32 %x, %tmem, 4; tcgen05.cp.cta_group::GROUP." + std::string(form.name) +
                         " [%x], %a;";
            auto wanted = probe.before;
            for (int cta = 0; cta < ctas; ++cta) {
                const auto values = row_words(probe.images[cta], form.rows, form.words);
                for (int row = 0; row < form.rows; ++row)
                    for (const int lane : form.lanes(row))
                        for (int word = 0; word < form.words; ++word)
                            wanted[cta][lane * 32 + 4 + word] = values[row * form.words + word];
            }
            EXPECT_EQ(probe.run(), "");
            EXPECT_EQ(probe.after, wanted);
        }
}

// ---- clusterlaunchcontrol ---------------------------------------------------------------------------
const char claim_text[] = R"(.version 9.0
.target sm_100a
.address_size 64

.visible .entry k(.param .u64 p_counts, .param .u64 p_width)
{
    .reg .pred %p, %first;
    .reg .b32 %x, %y, %z, %rank, %width, %phase, %t, %w;
    .reg .b64 %counts, %at;
    .reg .b128 %response;
    .shared .align 16 .b8 answer[16];
    .shared .align 8 .b64 full;

    ld.param.u64 %counts, [p_counts];
    ld.param.u32 %width, [p_width];
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %rank, %cluster_ctarank;
    sub.u32 %x, %x, %rank;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %phase, 0;
next:
    @!%first bra wait;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    setp.eq.u32 %p, %rank, 0;
    @%p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [answer], [full];
    add.u32 %z, %x, %rank;
    mad.lo.u32 %z, %y, %width, %z;
    mul.wide.u32 %at, %z, 4;
    add.u64 %at, %at, %counts;
    red.global.add.u32 [%at], 1;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], %phase;
    @!%p bra wait;
    xor.b32 %phase, %phase, 1;
    ld.shared.b128 %response, [answer];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %response;
    @!%p bra end;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, %z, _}, %response;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %w, %response;
    add.u32 %y, %w, 0;
    fence.proxy.async.shared::cta;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    bra next;
end:
    ret;
}
)";

TEST(ClusterLaunch, every_cluster_is_worked_on_once)
{
    for (const uint32_t cluster : {1u, 2u})
        for (uint64_t seed = 1; seed < 5; ++seed) {
            Device device(100, seed);
            device.machine().config.sm_count = 2;
            const uint64_t counts = device.put(std::vector<uint32_t>(24));
            Launch launch = shape_of(8, 64, cluster);
            launch.grid.y = 3;
            EXPECT_EQ(device.run(claim_text, launch, {counts, 8}), "") << device.message();
            EXPECT_EQ(device.get<uint32_t>(counts, 24), std::vector<uint32_t>(24, 1));
        }
}

TEST(ClusterLaunch, a_request_after_a_failure_is_reported)
{
    std::string text = claim_text;
    const std::string leave = "@!%p bra end;\n";
    text.replace(text.find(leave), leave.size(), "@!%p bra again;\n");
    const std::string end = "end:\n";
    text.replace(text.find(end), end.size(), R"(again:
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    @%first clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [full];
)");
    Device device(100);
    const std::string kinds = device.run(text, shape_of(1, 32), {device.put(std::vector<uint32_t>(1)), 1});
    EXPECT_NE(kinds.find("cluster-cancel-after-failure"), std::string::npos) << kinds;
}

}  // namespace
}  // namespace emu
