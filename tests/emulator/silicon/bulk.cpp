// cp.async.bulk and cp.reduce.async.bulk without tensor maps, and cp.async.
#include "makers.hpp"
#include "text.hpp"

#include <cstring>

namespace emu::silicon {
namespace {

constexpr uint32_t region = 4096;  // of shared memory: a source and a destination

struct Piece {
    uint32_t from = 0, to = 0, bytes = 0;
};

// Pieces that do not overlap where they go.
std::vector<Piece> draw_pieces(Random& random)
{
    std::vector<Piece> pieces(3);
    const uint32_t room = region / static_cast<uint32_t>(pieces.size()) / 16;
    for (uint32_t i = 0; i < pieces.size(); ++i) {
        const uint32_t units = 1 + random.below(random.chance(50) ? 5 : room - 1);
        pieces[i].bytes = 16 * units;
        pieces[i].to = 16 * (i * room + random.below(room - units + 1));
        pieces[i].from = 16 * random.below(region / 16 - units + 1);
    }
    return pieces;
}

struct Reduction {
    const char* name;
    char letter;
};
const Reduction to_global[] = {
    {"add.u32", 'i'},        {"add.s32", 'i'},  {"add.u64", 'l'},       {"min.u32", 'i'}, {"max.s32", 'i'},
    {"min.s64", 'l'},        {"max.u64", 'l'},  {"inc.u32", 'i'},       {"dec.u32", 'i'}, {"and.b32", 'i'},
    {"or.b64", 'l'},         {"xor.b32", 'i'},  {"add.noftz.f16", 'H'}, {"min.f16", 'H'}, {"max.f16", 'H'},
    {"add.noftz.bf16", 'B'}, {"min.bf16", 'B'}, {"max.bf16", 'B'},      {"add.f32", 'F'}, {"add.f64", 'D'}};
const Reduction to_cluster[] = {{"add.u32", 'i'}, {"add.s32", 'i'}, {"add.u64", 'l'}, {"min.u32", 'i'},
                                {"max.u32", 'i'}, {"min.s32", 'i'}, {"max.s32", 'i'}, {"inc.u32", 'i'},
                                {"dec.u32", 'i'}, {"and.b32", 'i'}, {"or.b32", 'i'},  {"xor.b32", 'i'}};

// The same for every kind of copy: the source and the destination in shared memory are filled, then thread
// 0 of each CTA starts the pieces.
struct Bulk {
    Text text;
    Kernel kernel;
    std::string source, target, barrier;
    std::vector<Piece> pieces;
    uint32_t ranks = 1, total = 0;
};

void begin(Bulk& bulk, Random& random, uint32_t ranks, char letter)
{
    Text& text = bulk.text;
    bulk.ranks = bulk.kernel.grid.x = bulk.kernel.cluster.x = ranks;
    bulk.kernel.block.x = threads;
    append(bulk.kernel.input, draw_bytes(random, letter, region));
    append(bulk.kernel.input, draw_bytes(random, letter, region));
    bulk.pieces = draw_pieces(random);
    for (const Piece& piece : bulk.pieces)
        bulk.total += piece.bytes;
    bulk.source = text.shared("source", region, 128);
    bulk.target = text.shared("target", region, 128);
    bulk.barrier = text.shared("barrier", 8, 8);
    text("@{} mbarrier.init.shared::cta.b64 [{}], 1;", thread_is(text, 0), bulk.barrier);
    text("fence.mbarrier_init.release.cluster;");
    fill_shared(text, bulk.source, region, 0, threads);
    fill_shared(text, bulk.target, region, region, threads);
    text("fence.proxy.async;");
    cluster_barrier(text);
    text("@!{} bra WAIT;", thread_is(text, 0));
}

// Every CTA waits for what it gets and writes its destination out.
Kernel end_at_barrier(Bulk& bulk)
{
    Text& text = bulk.text;
    text.lines("WAIT:\n");
    wait_parity(text, bulk.barrier, "0");
    text("bar.sync 0;");
    dump_shared(text, bulk.target, region, scaled(text, "%c", region, status_bytes), threads);
    cluster_barrier(text);
    bulk.kernel.output = untouched(status_bytes + bulk.ranks * region);
    bulk.kernel.ptx = text.finish();
    return bulk.kernel;
}

Kernel load(Random& random, bool multicast)
{
    Bulk bulk;
    begin(bulk, random, multicast ? random.pick<uint32_t>({2, 4}) : 1, 'i');
    Text& text = bulk.text;
    // The whole cluster gets what rank 0 multicasts, each piece those of its mask.
    std::vector<uint32_t> masks;
    for (size_t i = 0; i < bulk.pieces.size(); ++i)
        masks.push_back(1 + random.below((1u << bulk.ranks) - 1));
    const std::string expected = text.word(), mine = text.predicate();
    text("mov.u32 {}, 0;", expected);
    for (uint32_t rank = 0; rank < bulk.ranks; ++rank) {
        uint32_t bytes = 0;
        for (size_t i = 0; i < bulk.pieces.size(); ++i)
            bytes += !multicast || masks[i] >> rank & 1 ? bulk.pieces[i].bytes : 0;
        text("setp.eq.u32 {}, %c, {};", mine, rank);
        text("@{} mov.u32 {}, {};", mine, expected, bytes);
    }
    text("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", bulk.barrier, expected);
    text("setp.ne.u32 {}, %c, 0;", mine);
    text("@{} bra WAIT;", mine);
    for (size_t i = 0; i < bulk.pieces.size(); ++i) {
        const Piece& piece = bulk.pieces[i];
        const std::string mask = text.half();
        text("mov.u16 {}, {};", mask, masks[i]);
        text("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{} [{} + {}], [%in + {}], "
             "{}, "
             "[{}]{};",
             multicast ? ".multicast::cluster" : "", bulk.target, piece.to, piece.from, piece.bytes,
             bulk.barrier, multicast ? ", " + mask : "");
    }
    return end_at_barrier(bulk);
}

// Each CTA sends to the next one of the cluster, with a reduction or without.
Kernel send(Random& random, const Reduction* reduction)
{
    Bulk bulk;
    begin(bulk, random, random.pick<uint32_t>({2, 4}), reduction ? reduction->letter : 'i');
    Text& text = bulk.text;
    const std::string next = text.word(), target = text.word(), barrier = text.word();
    text("add.u32 {}, %c, 1;", next);
    text("and.b32 {}, {}, {};", next, next, bulk.ranks - 1);
    text("mapa.shared::cluster.u32 {}, {}, {};", target, bulk.target, next);
    text("mapa.shared::cluster.u32 {}, {}, {};", barrier, bulk.barrier, next);
    text("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", bulk.barrier, bulk.total);
    const std::string opcode = reduction ? "cp.reduce" : "cp";
    const std::string operation = reduction ? std::string(".") + reduction->name : "";
    for (const Piece& piece : bulk.pieces)
        text("{}.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{} [{} + {}], [{} + "
             "{}], "
             "{}, [{}];",
             opcode, operation, target, piece.to, bulk.source, piece.from, piece.bytes, barrier);
    return end_at_barrier(bulk);
}

Kernel store(Random& random, const Reduction* reduction)
{
    Bulk bulk;
    const char letter = reduction ? reduction->letter : 'i';
    begin(bulk, random, 1, letter);
    Text& text = bulk.text;
    const std::string opcode = reduction ? "cp.reduce" : "cp";
    const std::string operation = reduction ? std::string(".") + reduction->name : "";
    for (const Piece& piece : bulk.pieces)
        text("{}.async.bulk.global.shared::cta.bulk_group{} [%out + {}], [{} + {}], {};", opcode, operation,
             status_bytes + piece.to, bulk.source, piece.from, piece.bytes);
    text("cp.async.bulk.commit_group;");
    text("cp.async.bulk.wait_group 0;");
    text.lines("WAIT:\n");
    bulk.kernel.output = untouched(status_bytes);
    append(bulk.kernel.output, draw_bytes(random, letter, region));
    bulk.kernel.ptx = text.finish();
    return bulk.kernel;
}

}  // namespace

Kernel make_bulk(Random& random, uint32_t seed)
{
    constexpr uint32_t globals = std::size(to_global), clusters = std::size(to_cluster);
    if (seed < globals)
        return store(random, &to_global[seed]);
    if (seed < globals + clusters)
        return send(random, &to_cluster[seed - globals]);
    switch (seed % 4) {
    case 0: return load(random, false);
    case 1: return load(random, true);
    case 2: return send(random, nullptr);
    default: return store(random, nullptr);
    }
}

}  // namespace emu::silicon
