// Rules about operands: addresses, boxes, masks, descriptors, tensor memory.
#include "mutation/rules.hpp"

#include <cstdlib>

namespace mutation {

std::string shifted(const std::string& address, long bytes)
{
    std::string base = address.substr(1, address.size() - 2);
    const size_t plus = base.find('+');
    const long offset = plus == std::string::npos ? 0 : std::strtol(base.c_str() + plus + 1, nullptr, 0);
    base = base.substr(0, plus) + "+" + std::to_string(offset + bytes);
    return std::string("[").append(base) + "]";
}

// The neighbour of an mbarrier is that of the next stage.
void Rules::stages()
{
    const bool tma = here_.is("cp.async.bulk.tensor") && here_.has("mbarrier::");
    const bool barrier = here_.is("mbarrier.arrive") || here_.is("mbarrier.try_wait") ||
                         here_.is("mbarrier.expect_tx") || here_.is("tcgen05.commit") || tma;
    for (size_t i = tma ? 2 : 0; barrier && i < here_.operands.size(); ++i)
        if (here_.operands[i][0] == '[') {
            add("stage", "next barrier", with(i, shifted(here_.operands[i], 8)));
            return;
        }
}

// "[map, {x, y, z}]": coordinates changed one by one, and two exchanged.
static std::vector<std::pair<std::string, std::string>> moved_boxes(const std::string& operand)
{
    std::vector<std::pair<std::string, std::string>> boxes;
    const auto parts = split_list(operand.substr(1, operand.size() - 2));
    const std::vector<std::string> at = split_list(parts[1].substr(1, parts[1].size() - 2));
    const auto box = [&](std::vector<std::string> coordinates) {
        std::string text = "[" + parts[0] + ", {";
        for (size_t i = 0; i < coordinates.size(); ++i)
            text += (i ? ", " : "") + coordinates[i];
        return text + "}]";
    };
    for (size_t i = 0; i < at.size(); ++i) {
        auto next = at;
        next[i] = "%mutant";
        boxes.emplace_back(at[i], box(next));
    }
    if (at.size() > 1 && at[0] != at[1]) {
        auto swapped = at;
        std::swap(swapped[0], swapped[1]);
        boxes.emplace_back("", box(swapped));
    }
    return boxes;
}

void Rules::copies()
{
    if (here_.is("cp.async.bulk.tensor")) {
        const size_t map = here_.has("bulk_group") ? 0 : 1;
        int axis = 0;
        for (const auto& [coordinate, operand] : moved_boxes(here_.operands[map])) {
            if (coordinate.empty())
                add("coordinates", "first two exchanged", with(map, operand));
            else
                add("coordinates", std::string(1, "xyzuv"[axis++]) + " + 1",
                    "{\n.reg .b32 %mutant;\nmov.b32 %mutant, " + coordinate +
                        ";\nadd.s32 %mutant, %mutant, 1;\n" + with(map, operand) + "\n}");
        }
        add("address", "1024 bytes on", with(1 - map, shifted(here_.operands[1 - map], 1024)));
        remove("copy");
    } else if (here_.is("cp.async.ca.") || here_.is("cp.async.cg.")) {
        add("address", "to 16 bytes on", with(0, shifted(here_.operands[0], 16)));
        add("address", "from 16 bytes on", with(1, shifted(here_.operands[1], 16)));
        if (here_.operands.size() == 4)
            add("bytes", "all 16 even at an edge", with(3, "16"));
        remove("copy");
    }
}

// A warp's lanes store side by side, its CTA's next warps behind them.
void Rules::cluster_stores()
{
    if (!here_.is("st.async"))
        return;
    add("address", "16 bytes on", with(0, shifted(here_.operands[0], 16)));
    add("address", "2048 bytes on", with(0, shifted(here_.operands[0], 2048)));
    add("stage", "next barrier", with(2, shifted(here_.operands[2], 8)));
    add("stage", "previous barrier", with(2, shifted(here_.operands[2], -8)));
    remove("copy");
}

void Rules::multicasts()
{
    if (!here_.has(".multicast::cluster") || here_.is("clusterlaunchcontrol"))
        return;
    for (const char* bit : {"1", "2", "4"})
        add("multicast", std::string("mask with bit ") + bit + " flipped",
            changed(here_.operands.size() - 1, "b16", "xor.b16", bit));
}

void Rules::cluster_launches()
{
    if (!here_.is("clusterlaunchcontrol.try_cancel"))
        return;
    add("address", "16 bytes on", with(0, shifted(here_.operands[0], 16)));
    add("stage", "next barrier", with(1, shifted(here_.operands[1], 8)));
    remove("copy");
    constexpr char to_all[] = ".multicast::cluster::all";
    if (!here_.has(to_all))
        return;
    Statement alone = here_;
    alone.opcode.replace(alone.opcode.find(to_all), sizeof to_all - 1, "");
    add("multicast", "to this CTA alone", alone.print());
}

constexpr char unused_leading[] =
    "the leading offset is not used by a swizzled operand that is K-major or one atom wide";
constexpr char unused_stride[] = "the stride is not used by a K-major operand of eight rows";

// "wgmma.mma_async.sync.aligned.m64n256k16...": 256
static long columns_of(const Statement& wgmma)
{
    return std::strtol(wgmma.opcode.c_str() + wgmma.opcode.find(".m64n") + 5, nullptr, 10);
}

void Rules::descriptors()
{
    const bool wgmma = here_.is("wgmma.mma_async"), tcgen05 = here_.is("tcgen05.mma");
    if (!wgmma && !tcgen05)
        return;
    constexpr char bits_62_63[] = "-4611686018427387904", bit_49[] = "562949953421312";
    for (size_t i = 1; i <= 2; ++i) {
        const std::string name = i == 1 ? "A: " : "B: ";
        if (here_.operands[i][0] != '%')
            continue;
        // wgmma says so, and 64 rows of A are one atom; tcgen05's instruction descriptor says so where it
        // is known.
        const long shape = tcgen05 ? constant(here_.operands[3]) : 0;
        const bool k_major = tcgen05 ? shape >= 0 && (shape >> (14 + i) & 1) == 0
                                     : here_.operands[here_.operands.size() - (i == 1 ? 2 : 1)] == "0";
        const bool unused = k_major || (wgmma && (i == 1 || columns_of(here_) <= 64));
        const auto field = [&](const char* what, const char* operation, const char* by,
                               const char* equivalent = "") {
            add("descriptor", name + what, changed(i, "b64", operation, by), equivalent);
        };
        field("start + 16 bytes", "add.s64", "1");
        field("start + 1024 bytes", "add.s64", "64");
        field("leading + 16 bytes", "add.s64", "65536", unused ? unused_leading : "");
        field("stride + 16 bytes", "add.s64", "4294967296",
              wgmma && k_major && i == 2 && columns_of(here_) == 8 ? unused_stride : "");
        field("other swizzle", "xor.b64", bits_62_63);
        field("base offset + 1", "xor.b64", bit_49);
    }
    add("descriptor", "accumulate flag inverted", changed(wgmma ? 3 : 4, "pred", "not.pred"));
    if (!tcgen05)
        return;
    static const std::pair<const char*, int> fields[] = {
        {"type of D", 4},     {"type of A", 7},     {"type of B", 10}, {"A negated", 13}, {"B negated", 14},
        {"A transposed", 15}, {"B transposed", 16}, {"N", 18},         {"M", 26}};
    for (const auto& [name, bit] : fields)
        add("shape", name, changed(3, "b32", "xor.b32", std::to_string(1 << bit)));
}

void Rules::tensor_memory()
{
    if (here_.is("tcgen05.ld") || here_.is("tcgen05.st")) {
        const size_t address = here_.is("tcgen05.ld") ? 1 : 0;
        add("tensor memory", "next lane window", with(address, shifted(here_.operands[address], 32 << 16)));
        add("tensor memory", "16 columns on", with(address, shifted(here_.operands[address], 16)));
    }
    if (here_.is("tcgen05.mma"))
        add("tensor memory", "32 columns on", with(0, shifted(here_.operands[0], 32)));
    if (here_.is("tcgen05.alloc"))
        add("tensor memory", "half the columns", changed(1, "b32", "shr.u32", "1"));
    if (here_.is("tcgen05.dealloc"))
        remove("tensor memory");
    if (here_.is("tcgen05.relinquish"))
        remove("tensor memory", "it only lets other CTAs of the SM allocate; there are none");
}

void Rules::matrices()
{
    if (here_.is("ldmatrix"))
        add("address", "16 bytes on", with(1, shifted(here_.operands[1], 16)));
    if (here_.is("stmatrix"))
        add("address", "16 bytes on", with(0, shifted(here_.operands[0], 16)));
}

}  // namespace mutation
