// TMA loads: boxes of all ranks, types and swizzles that hang over the edges, and multicast in a cluster.
#include "makers.hpp"
#include "tensor.hpp"

#include <cstring>

namespace emu::silicon {
namespace {

constexpr uint32_t load_slot = 8192, load_maps = 2, boxes = 4;
constexpr uint32_t load_room = 33 * 1024;  // of a tensor in the input, and what may lie behind it

// A barrier that thread 0 has initialised.
std::string single_barrier(Text& text)
{
    const std::string barrier = text.shared("barrier", 8, 8);
    text("@{} mbarrier.init.shared::cta.b64 [{}], 1;", thread_is(text, 0), barrier);
    text("fence.mbarrier_init.release.cluster;");
    return barrier;
}

// Everything that is written so far is visible to the async proxy and to all threads.
void publish(Text& text, bool cluster)
{
    text("fence.proxy.async.shared::cta;");
    if (cluster)
        cluster_barrier(text);
    else
        text("bar.sync 0;");
}

// What a box, or a group of them, needs of a rank: read from a table in the input.
struct Turn {
    uint32_t mask = 0, expected = 0;
    int32_t at[5] = {};
    uint32_t unused = 0;
};

std::vector<Turn> draw_turns(Random& random, const TensorMap& map, uint32_t ranks)
{
    std::vector<Turn> turns(ranks);
    for (Turn& turn : turns) {
        turn.mask = 1 + random.below((1u << ranks) - 1);
        const std::vector<int> at = draw_coordinates(random, map);
        std::copy(at.begin(), at.end(), turn.at);
    }
    for (uint32_t rank = 0; rank < ranks; ++rank)
        for (const Turn& turn : turns)
            turns[rank].expected += turn.mask >> rank & 1 ? box_bytes(map) : 0;
    return turns;
}

void issue_multicast(Text& text, const TensorMap& map, const std::string& base, const std::string& barrier,
                     const std::string& turns)
{
    const std::string mask = text.half(), expected = text.word(), low = text.word();
    text("ld.global.b32 {}, [{}];", low, turns);
    text("cvt.u16.u32 {}, {};", mask, low);
    text("ld.global.b32 {}, [{} + 4];", expected, turns);
    const std::vector<std::string> at = text.words(static_cast<int>(map.rank));
    for (uint32_t i = 0; i < map.rank; ++i)
        text("ld.global.b32 {}, [{} + {}];", at[i], turns, 8 + 4 * i);
    const std::string to = text.word(), tensor = text.wide();
    text("mad.lo.u32 {}, %c, 1024, {};", to, base);
    text("mov.u64 {}, map0;", tensor);
    text("cvta.param.u64 {}, {};", tensor, tensor);
    text("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", barrier, expected);
    text("cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::"
         "cluster "
         "[{}], [{}, {}], [{}], {};",
         map.rank, to, tensor, Text::list(at), barrier, mask);
}

}  // namespace

Kernel make_tma_load(Random& random, uint32_t seed)
{
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    const std::string base = text.shared("memory", boxes * load_slot, 1024), barrier = single_barrier(text);
    const uint32_t prefill_at = load_maps * load_room;
    fill_shared(text, base, boxes * load_slot, prefill_at, threads);
    publish(text, false);
    uint32_t expected = 0;
    text("@!{} bra WAIT;", thread_is(text, 0));
    std::vector<std::pair<std::string, uint32_t>> operands;
    for (uint32_t i = 0; i < load_maps; ++i) {
        MapLimits limits;
        limits.strides = seed % 4 == 3;
        kernel.maps.push_back(draw_map(random, (seed * load_maps + i) % 13, limits));
        kernel.maps.back().offset = i * load_room;
        append(kernel.input, draw_bytes(random, letter_of(kernel.maps[i].type), load_room));
        for (uint32_t box = 0; box < boxes / load_maps; ++box) {
            operands.push_back({box_operand(text, i, draw_coordinates(random, kernel.maps[i])), i});
            expected += box_bytes(kernel.maps[i]);
        }
    }
    append(kernel.input, untouched(boxes * load_slot));
    text("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", barrier, expected);
    for (uint32_t i = 0; i < operands.size(); ++i)
        text("cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
             "[{} + {}], {}, [{}];",
             kernel.maps[operands[i].second].rank, base, i * load_slot, operands[i].first, barrier);
    text.lines("WAIT:\n");
    wait_parity(text, barrier, "0");
    text("bar.sync 0;");
    dump_shared(text, base, boxes * load_slot, status_bytes, threads);
    kernel.output = untouched(status_bytes + boxes * load_slot);
    kernel.ptx = text.finish(load_maps);
    return kernel;
}

Kernel make_tma_multicast(Random& random, uint32_t seed)
{
    const uint32_t ranks = seed % 8 == 7 ? 8 : seed % 2 ? 4 : 2, bytes = ranks * 1024;
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.grid.x = kernel.cluster.x = ranks;
    MapLimits limits;
    limits.box_bytes = 1024;
    kernel.maps.push_back(draw_map(random, seed % 10, limits));
    kernel.input = draw_bytes(random, letter_of(kernel.maps[0].type), load_room);
    const std::vector<Turn> turns = draw_turns(random, kernel.maps[0], ranks);
    kernel.input.resize(load_room + ranks * sizeof(Turn));
    std::memcpy(kernel.input.data() + load_room, turns.data(), ranks * sizeof(Turn));
    append(kernel.input, untouched(bytes));
    const std::string base = text.shared("memory", bytes, 1024), barrier = single_barrier(text);
    fill_shared(text, base, bytes, load_room + ranks * sizeof(Turn), threads);
    publish(text, true);
    const std::string table = global_address(text, "%in", scaled(text, "%c", sizeof(Turn), load_room));
    text("@!{} bra WAIT;", thread_is(text, 0));
    issue_multicast(text, kernel.maps[0], base, barrier, table);
    text.lines("WAIT:\n");
    wait_parity(text, barrier, "0");
    text("bar.sync 0;");
    dump_shared(text, base, bytes, scaled(text, "%c", bytes, status_bytes), threads);
    cluster_barrier(text);
    kernel.output = untouched(status_bytes + ranks * bytes);
    kernel.ptx = text.finish(1);
    return kernel;
}

}  // namespace emu::silicon
