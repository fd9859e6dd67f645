// wgmma: chains of products with random descriptors over random shared memory.
#include "makers.hpp"
#include "text.hpp"

#include <algorithm>

namespace emu::silicon {
namespace {

constexpr uint32_t warpgroup_row = threads * 4, shared_bytes = 64 * 1024, region_a = 24 * 1024;
constexpr int depth = 16;

struct Matrix {
    int swizzle = 0;  // of the descriptor: none, 128, 64, 32 bytes
    bool mn_major = false;
    uint32_t start = 0, leading = 0, stride = 0, base_offset = 0;

    uint32_t span() const { return swizzle == 0 ? 0 : 256u >> swizzle; }
};

// Where the last bytes lie, before swizzling.
uint32_t extent(const Matrix& m, uint32_t rows)
{
    const uint32_t last = rows - 1, k = depth - 1, span = m.span();
    if (!m.mn_major && span == 0)
        return 7 * 16 + last / 8 * m.stride + k / 8 * m.leading + 16;
    if (!m.mn_major)
        return 7 * span + last / 8 * m.stride + span;
    if (span == 0)
        return 7 * 16 + k / 8 * m.leading + last / 8 * m.stride + 16;
    return 7 * span + k / 8 * m.stride + last / (span / 2) * m.leading + span;
}

Matrix draw_layout(Random& random, bool mn_major)
{
    Matrix m;
    m.mn_major = mn_major;
    m.swizzle = static_cast<int>(random.below(4));
    const uint32_t span = m.span(), atom = 8 * span;
    if (span == 0) {
        m.leading = 128 * static_cast<uint32_t>(random.between(1, 9));
        m.stride = 128 * static_cast<uint32_t>(random.between(1, 9));
        m.start = 16 * random.below(32);
        return m;
    }
    m.stride = atom * static_cast<uint32_t>(random.between(1, 3));
    m.leading = mn_major ? atom * static_cast<uint32_t>(random.between(1, 4)) : 16;
    m.start = 1024 * random.below(3);
    if (!mn_major && span > 32)
        m.start += 32 * random.below(span / 32);
    if (random.chance(30)) {
        m.base_offset = random.below(8);
        m.start += 128 * m.base_offset;
    }
    return m;
}

// One that fits into a region; rows: 64 or N.
Matrix draw_matrix(Random& random, bool mn_major, uint32_t rows, uint32_t bytes)
{
    for (;;) {
        const Matrix m = draw_layout(random, mn_major);
        // A swizzle may move the end up to that of its pattern.
        if ((m.start + extent(m, rows) + 1023) / 1024 * 1024 <= bytes)
            return m;
    }
}

// The descriptor of a matrix in a region of shared memory, whose address is in a register.
std::string descriptor(Text& text, const Matrix& m, const std::string& base, uint32_t region)
{
    const std::string address = text.word(), result = text.wide(), fixed = text.wide();
    text("add.u32 {}, {}, {};", address, base, region + m.start);
    text("shr.u32 {}, {}, 4;", address, address);
    text("and.b32 {}, {}, 0x3fff;", address, address);
    const uint64_t rest =
        static_cast<uint64_t>(m.leading >> 4) << 16 | static_cast<uint64_t>(m.stride >> 4) << 32 |
        static_cast<uint64_t>(m.base_offset) << 49 | static_cast<uint64_t>(m.swizzle) << 62;
    text("mov.u64 {}, {:#x};", fixed, rest);
    text("cvt.u64.u32 {}, {};", result, address);
    text("or.b64 {}, {}, {};", result, result, fixed);
    return result;
}

struct WgmmaForm {
    const char* types;
    char operand, accumulator;
    uint32_t values;  // accumulators in a register
};
const WgmmaForm forms[] = {
    {"f32.f16.f16", 'H', 'F', 1}, {"f32.bf16.bf16", 'B', 'F', 1}, {"f16.f16.f16", 'H', 'H', 2}};

// Products that are issued one behind the other.
struct Issue {
    std::string a, b, scale, modifiers;
};

Issue draw_issue(Text& text, Random& random, const std::string& base, const std::string& in, uint32_t n,
                 uint32_t first_register, bool first)
{
    Issue issue;
    const bool registers = random.chance(40), a_mn = !registers && random.chance(40),
               b_mn = random.chance(40);
    if (registers) {
        const std::vector<std::string> words = text.words(4);
        for (uint32_t i = 0; i < 4; ++i)
            text("ld.global.b32 {}, [{} + {}];", words[i], in, first_register + i * warpgroup_row);
        issue.a = Text::list(words);
    } else {
        issue.a = descriptor(text, draw_matrix(random, a_mn, 64, region_a), base, 0);
    }
    issue.b = descriptor(text, draw_matrix(random, b_mn, n, shared_bytes - region_a), base, region_a);
    issue.scale = text.predicate();
    text("setp.ne.u32 {}, {}, 0;", issue.scale, first && random.chance(40) ? 0 : 1);
    issue.modifiers = fmt::format("{}, {}", random.chance(30) ? -1 : 1, random.chance(30) ? -1 : 1);
    if (!registers)
        issue.modifiers += fmt::format(", {}", a_mn ? 1 : 0);
    issue.modifiers += fmt::format(", {}", b_mn ? 1 : 0);
    return issue;
}

// Shared memory aligned to 1024 bytes, filled and visible to the async proxy.
std::string operands(Text& text)
{
    text.before(".extern .shared .align 1024 .b8 memory[];\n");
    const std::string base = text.word();
    text("mov.u32 {}, memory;", base);
    text("add.u32 {}, {}, 1023;", base, base);
    text("and.b32 {}, {}, -1024;", base, base);
    fill_shared(text, base, shared_bytes, 0, threads);
    text("fence.proxy.async.shared::cta;");
    text("bar.sync 0;");
    return base;
}

}  // namespace

Kernel make_wgmma(Random& random, uint32_t seed)
{
    const WgmmaForm& form = forms[seed % std::size(forms)];
    const uint32_t n = random.chance(30) ? 8 * static_cast<uint32_t>(random.between(1, 32))
                                         : random.pick<uint32_t>({8, 16, 24, 32, 40, 64, 72, 96, 128});
    const uint32_t registers = n / 2 / form.values, products = 1 + random.below(3);
    const auto range = static_cast<Range>(random.below(ranges));
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.dynamic_shared = shared_bytes + 1024;
    kernel.input = draw_range(random, form.operand, range, shared_bytes + products * 4 * warpgroup_row);
    const std::vector<uint8_t> accumulators =
        draw_range(random, form.accumulator, range, registers * warpgroup_row);
    const auto accumulators_at = static_cast<uint32_t>(kernel.input.size());
    kernel.input.insert(kernel.input.end(), accumulators.begin(), accumulators.end());
    const std::string base = operands(text), offset = scaled(text, "%t", 4);
    const std::string in = global_address(text, "%in", offset), out = global_address(text, "%out", offset);
    const std::vector<std::string> d = text.words(static_cast<int>(registers));
    for (uint32_t i = 0; i < registers; ++i)
        text("ld.global.b32 {}, [{} + {}];", d[i], in, accumulators_at + i * warpgroup_row);
    std::vector<Issue> issues;
    for (uint32_t i = 0; i < products; ++i)
        issues.push_back(
            draw_issue(text, random, base, in, n, shared_bytes + i * 4 * warpgroup_row, i == 0));
    text("wgmma.fence.sync.aligned;");
    for (const Issue& issue : issues)
        text("wgmma.mma_async.sync.aligned.m64n{}k16.{} {}, {}, {}, {}, {};", n, form.types, Text::list(d),
             issue.a, issue.b, issue.scale, issue.modifiers);
    text("wgmma.commit_group.sync.aligned;");
    text("wgmma.wait_group.sync.aligned 0;");
    for (uint32_t i = 0; i < registers; ++i)
        text("st.global.b32 [{} + {}], {};", out, status_bytes + i * warpgroup_row, d[i]);
    kernel.output = untouched(status_bytes + registers * warpgroup_row);
    kernel.ptx = text.finish();
    return kernel;
}

}  // namespace emu::silicon
