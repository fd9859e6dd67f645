// Shared memory of other CTAs of the cluster: loads, stores, atomics; and special registers.
#include "makers.hpp"
#include "text.hpp"

namespace emu::silicon {
namespace {

constexpr uint32_t cluster_cell = 32, cluster_region = threads * cluster_cell, results = 8;

// The address of a cell of another CTA: in shared::cluster, or generic.
struct Remote {
    std::string address, space;
};
Remote remote(Text& text, const std::string& cell_here, const std::string& rank, bool generic)
{
    if (!generic) {
        const std::string there = text.word();
        text("mapa.shared::cluster.u32 {}, {}, {};", there, cell_here, rank);
        return {there, ".shared::cluster"};
    }
    const std::string wide = text.wide(), there = text.wide();
    text("cvt.u64.u32 {}, {};", wide, cell_here);
    text("cvta.shared.u64 {}, {};", wide, wide);
    text("mapa.u64 {}, {}, {};", there, wide, rank);
    return {there, ""};
}

std::string neighbour(Text& text, uint32_t ranks, uint32_t by)
{
    const std::string rank = text.word();
    text("add.u32 {}, %c, {};", rank, by);
    text("and.b32 {}, {}, {};", rank, rank, ranks - 1);
    return rank;
}

void load_and_keep(Text& text, const Remote& from, Random& random, const std::string& out, uint32_t index)
{
    const std::string word = text.word(), wide = text.wide(), half = text.half();
    const uint32_t at = 16 * random.below(2);
    switch (random.below(6)) {
    case 0: text("ld{}.u8 {}, [{} + {}];", from.space, word, from.address, at + 3); break;
    case 1: text("ld{}.s16 {}, [{} + {}];", from.space, word, from.address, at + 6); break;
    case 2: text("ld{}.b32 {}, [{} + {}];", from.space, word, from.address, at + 12); break;
    case 3:
        text("ld{}.b64 {}, [{} + {}];", from.space, wide, from.address, at + 8);
        text("mov.b64 {{{}, _}}, {};", word, wide);
        break;
    case 4: text("ld{}.v2.b32 {{_, {}}}, [{} + {}];", from.space, word, from.address, at + 8); break;
    default: text("ld{}.v4.b32 {{_, _, {}, _}}, [{} + {}];", from.space, word, from.address, at);
    }
    text("st.global.b32 [{} + {}], {};", out, 4 * index, word);
}

void atomic_and_keep(Text& text, const Remote& to, Random& random, const std::string& value,
                     const std::string& out, uint32_t index)
{
    const std::string old = text.word();
    const std::string operation = random.pick({"add.u32", "min.s32", "max.u32", "inc.u32", "dec.u32",
                                               "and.b32", "or.b32", "xor.b32", "exch.b32", "add.f32"});
    text("atom{}{}.{} {}, [{} + 4], {};", random.chance(50) ? ".relaxed.cluster" : "", to.space, operation,
         old, to.address, value);
    text("st.global.b32 [{} + {}], {};", out, 4 * index, old);
    text("red{}.add.u32 [{} + 16], {};", to.space, to.address, value);
}

const char* const registers[] = {"%tid.x",
                                 "%tid.y",
                                 "%tid.z",
                                 "%ntid.x",
                                 "%ntid.y",
                                 "%ntid.z",
                                 "%ctaid.x",
                                 "%ctaid.y",
                                 "%ctaid.z",
                                 "%nctaid.x",
                                 "%nctaid.y",
                                 "%nctaid.z",
                                 "%clusterid.x",
                                 "%clusterid.y",
                                 "%clusterid.z",
                                 "%nclusterid.x",
                                 "%nclusterid.y",
                                 "%nclusterid.z",
                                 "%cluster_ctaid.x",
                                 "%cluster_ctaid.y",
                                 "%cluster_ctaid.z",
                                 "%cluster_nctaid.x",
                                 "%cluster_nctaid.y",
                                 "%cluster_nctaid.z",
                                 "%cluster_ctarank",
                                 "%cluster_nctarank",
                                 "%laneid",
                                 "%lanemask_eq",
                                 "%lanemask_lt",
                                 "%lanemask_le",
                                 "%lanemask_gt",
                                 "%lanemask_ge",
                                 "%dynamic_smem_size"};

// Number of the CTA in the grid, times the CTA's threads, plus the thread's number.
std::string grid_thread(Text& text, const Extent& grid, const Extent& block)
{
    const auto linear = [&](const char* name, const Extent& extent) {
        const std::string index = text.word(), more = text.word();
        text("mov.u32 {}, %{}.z;", index, name);
        text("mov.u32 {}, %{}.y;", more, name);
        text("mad.lo.u32 {}, {}, {}, {};", index, index, extent.y, more);
        text("mov.u32 {}, %{}.x;", more, name);
        text("mad.lo.u32 {}, {}, {}, {};", index, index, extent.x, more);
        return index;
    };
    const std::string cta = linear("ctaid", grid), thread = linear("tid", block), result = text.word();
    text("mad.lo.u32 {}, {}, {}, {};", result, cta, block.x * block.y * block.z, thread);
    return result;
}

}  // namespace

Kernel make_cluster_memory(Random& random, uint32_t seed)
{
    const uint32_t ranks = seed % 4 == 3 ? 8
                           : seed % 2    ? 4
                                         : 2,
                   out_bytes = cluster_region + threads * 4 * results;
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.grid.x = kernel.cluster.x = ranks;
    kernel.input = draw_bytes(random, 'i', (ranks + 1) * cluster_region);
    const std::string base = text.shared("memory", cluster_region, 128),
                      here = sum(text, base, scaled(text, "%t", cluster_cell));
    const std::string in = global_address(
        text, "%in", sum(text, scaled(text, "%c", cluster_region), scaled(text, "%t", cluster_cell)));
    const std::vector<std::string> words = text.words(4), value = text.words(1);
    for (uint32_t i = 0; i < 2; ++i) {
        text("ld.global.v4.b32 {}, [{} + {}];", Text::list(words), in, 16 * i);
        text("st.shared.v4.b32 [{} + {}], {};", here, 16 * i, Text::list(words));
    }
    text("ld.global.b32 {}, [{} + {}];", value[0], in, cluster_region + 12);
    const std::string out =
        global_address(text, "%out",
                       sum(text, scaled(text, "%c", out_bytes, status_bytes + cluster_region),
                           scaled(text, "%t", 4 * results)));
    cluster_barrier(text);
    uint32_t index = 0;
    for (; index < results - 2; ++index)
        load_and_keep(text, remote(text, here, neighbour(text, ranks, index + seed), random.chance(50)),
                      random, out, index);
    cluster_barrier(text);
    const std::string next = neighbour(text, ranks, 1 + random.below(ranks));
    for (; index < results; ++index)
        atomic_and_keep(text, remote(text, here, next, index % 2), random, value[0], out, index);
    text("st{}.b32 [{} + 24], {};", ".shared::cluster", remote(text, here, next, false).address, words[1]);
    cluster_barrier(text);
    dump_shared(text, base, cluster_region, scaled(text, "%c", out_bytes, status_bytes), threads);
    kernel.output = untouched(status_bytes + ranks * out_bytes);
    kernel.ptx = text.finish();
    return kernel;
}

Kernel make_special_registers(Random& random, uint32_t seed)
{
    Text text;
    Kernel kernel;
    kernel.block = {random.pick<uint32_t>({32, 5, 16, 96}), 1 + random.below(3), 1 + random.below(2)};
    kernel.cluster = {random.pick<uint32_t>({1, 2}), random.pick<uint32_t>({1, 2}), seed % 3 ? 1u : 2u};
    kernel.grid = {kernel.cluster.x * (1 + random.below(2)), kernel.cluster.y * (1 + random.below(2)),
                   kernel.cluster.z};
    kernel.dynamic_shared = 16 * random.below(100);
    const std::string number = grid_thread(text, kernel.grid, kernel.block);
    constexpr uint32_t count = std::size(registers), bytes = 4 * (count + 1);
    const std::string out = global_address(text, "%out", scaled(text, number, bytes, status_bytes));
    for (uint32_t i = 0; i < count; ++i) {
        const std::string word = text.word();
        text("mov.u32 {}, {};", word, registers[i]);
        text("st.global.b32 [{} + {}], {};", out, 4 * i, word);
    }
    const std::string is_explicit = text.predicate(), word = text.word();
    text("mov.pred {}, %is_explicit_cluster;", is_explicit);
    text("selp.u32 {}, 1, 0, {};", word, is_explicit);
    text("st.global.b32 [{} + {}], {};", out, 4 * count, word);
    const auto volume = [](const Extent& e) { return e.x * e.y * e.z; };
    kernel.output = untouched(status_bytes + volume(kernel.grid) * volume(kernel.block) * bytes);
    kernel.ptx = text.finish();
    return kernel;
}

}  // namespace emu::silicon
