// mbarriers: random operations by one thread, with every answer recorded; and arrivals from all over a
// cluster, alone, with st.async and with red.async.
#include "makers.hpp"
#include "text.hpp"

namespace emu::silicon {
namespace {

// ---- One thread -------------------------------------------------------------------------------------
// What the barrier must be like, so that only defined operations are made.
struct Model {
    uint32_t expected, pending, phase = 0;
    int tx = 0;

    void settle()
    {
        if (pending == 0 && tx == 0)
            ++phase, pending = expected;
    }
};

struct Sequence {
    Text& text;
    Random& random;
    Model model;
    std::string barrier, state;
    uint32_t state_phase = 0, results = 0;
    bool has_state = false;

    void record(const std::string& word)
    {
        text("st.global.b32 [%out + {}], {};", status_bytes + 4 * results++, word);
    }
    void record_predicate(const std::string& predicate)
    {
        const std::string word = text.word();
        text("selp.u32 {}, 1, 0, {};", word, predicate);
        record(word);
    }
};

void arrive(Sequence& s)
{
    Model& m = s.model;
    const bool drops = m.expected > 1 && s.random.chance(20);
    uint32_t count = 1 + s.random.below(s.random.chance(50) ? 1 : m.pending);
    if (drops)
        count = std::min(count, m.expected - 1);
    const bool stays = count < m.pending && s.random.chance(25);
    s.text("mbarrier.arrive{}{}.shared::cta.b64 {}, [{}], {};", drops ? "_drop" : "",
           stays ? ".noComplete.release.cta" : "", s.state, s.barrier, count);
    s.state_phase = m.phase;
    s.has_state = true;
    m.pending -= count;
    m.expected -= drops ? count : 0;
    m.settle();
    const std::string pending = s.text.word();
    s.text("mbarrier.pending_count.b64 {}, {};", pending, s.state);
    s.record(pending);
}

void arrive_and_expect(Sequence& s)
{
    const int bytes = s.random.between(0, 5000);
    s.text("mbarrier.arrive.expect_tx.shared::cta.b64 {}, [{}], {};", s.state, s.barrier, bytes);
    s.state_phase = s.model.phase;
    s.has_state = true;
    s.model.tx += bytes;
    --s.model.pending;
    s.model.settle();
    const std::string pending = s.text.word();
    s.text("mbarrier.pending_count.b64 {}, {};", pending, s.state);
    s.record(pending);
}

void transfer(Sequence& s)
{
    Model& m = s.model;
    const bool expects = m.tx == 0 || s.random.chance(40);
    const int bytes = expects               ? s.random.between(1, 70000)
                      : s.random.chance(60) ? m.tx
                                            : s.random.between(1, m.tx);
    if (expects && m.tx + bytes > 1000000)
        return;
    s.text("mbarrier.{}.relaxed.cta.shared::cta.b64 [{}], {};", expects ? "expect_tx" : "complete_tx",
           s.barrier, bytes);
    m.tx += expects ? bytes : -bytes;
    m.settle();
}

void test(Sequence& s)
{
    const std::string done = s.text.predicate();
    if (s.has_state && s.model.phase - s.state_phase <= 1 && s.random.chance(50)) {
        s.text("mbarrier.test_wait.shared::cta.b64 {}, [{}], {};", done, s.barrier, s.state);
        s.record_predicate(done);
    }
    for (int parity = 0; parity < 2; ++parity) {
        s.text("mbarrier.test_wait.parity.shared::cta.b64 {}, [{}], {};", done, s.barrier, parity);
        s.record_predicate(done);
    }
}

void step(Sequence& s)
{
    if (s.model.pending > 0 && s.random.chance(60))
        s.random.chance(75) ? arrive(s) : arrive_and_expect(s);
    else
        transfer(s);
    test(s);
}

// ---- A cluster --------------------------------------------------------------------------------------
constexpr uint32_t barrier_cell = 16;

// Whom a thread sends to.
uint32_t receiver(uint32_t rank, uint32_t thread, uint32_t ranks, uint32_t seed)
{
    return (rank * 3 + thread * 5 + (thread >> 2) + seed) & (ranks - 1);
}

std::string receiver(Text& text, uint32_t ranks, uint32_t seed)
{
    const std::string to = text.word(), part = text.word();
    text("mad.lo.u32 {}, %c, 3, {};", to, seed);
    text("mad.lo.u32 {}, %t, 5, {};", to, to);
    text("shr.u32 {}, %t, 2;", part);
    text("add.u32 {}, {}, {};", to, to, part);
    text("and.b32 {}, {}, {};", to, to, ranks - 1);
    return to;
}

enum Way { plain_arrival, store_async, reduce_async };

// What each rank's barrier waits for in a round: arrivals, or bytes.
std::string expectation(Text& text, uint32_t ranks, uint32_t seed, uint32_t each, bool varies)
{
    const std::string expected = text.word(), mine = text.predicate();
    text("mov.u32 {}, 0;", expected);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
        uint32_t total = 0;
        for (uint32_t from = 0; from < ranks; ++from)
            for (uint32_t thread = 0; thread < threads; ++thread)
                if (receiver(from, thread, ranks, seed) == rank)
                    total += varies ? 1 + (thread & 3) : each;
        text("setp.eq.u32 {}, %c, {};", mine, rank);
        text("@{} mov.u32 {}, {};", mine, expected, total);
    }
    return expected;
}

struct BarrierReduction {
    const char* name;
    int bytes;
};
const BarrierReduction barrier_reductions[] = {
    {"inc.u32", 4}, {"dec.u32", 4}, {"min.u32", 4}, {"max.u32", 4}, {"min.s32", 4}, {"max.s32", 4},
    {"and.b32", 4}, {"or.b32", 4},  {"xor.b32", 4}, {"add.u32", 4}, {"add.s32", 4}, {"add.u64", 8}};

// The bytes that one thread sends.
uint32_t send(Text& text, Random& random, Way way, const std::string& to, const std::string& barrier,
              const std::vector<std::string>& words, bool emit)
{
    if (way == reduce_async) {
        const BarrierReduction& reduction = barrier_reductions[random.below(std::size(barrier_reductions))];
        const std::string wide = text.wide();
        text("mov.b64 {}, {{{}, {}}};", wide, words[0], words[1]);
        if (emit)
            text(
                "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{} [{}], {}, [{}];",
                reduction.name, to, reduction.bytes == 8 ? wide : words[0], barrier);
        return reduction.bytes;
    }
    const int count = random.pick({1, 2, 4});
    if (emit)
        text("st.async.shared::cluster.mbarrier::complete_tx::bytes{}.b32 [{}], {}, [{}];",
             count == 1 ? "" : fmt::format(".v{}", count), to,
             count == 1 ? words[0] : Text::list({words.begin(), words.begin() + count}), barrier);
    return 4 * count;
}

}  // namespace

Kernel make_mbarrier(Random& random, uint32_t seed)
{
    constexpr uint32_t steps = 60;
    Text text;
    Kernel kernel;
    kernel.block.x = 32;
    const std::string barrier = text.shared("barrier", 8, 8);
    text("@!{} bra END;", thread_is(text, 0));
    const uint32_t expected = seed % 4 == 3 ? 1000 + random.below(1000000) : 1 + random.below(9);
    text("mbarrier.init.shared::cta.b64 [{}], {};", barrier, expected);
    Sequence sequence{text, random, {expected, expected}, barrier, text.wide()};
    for (uint32_t i = 0; i < steps; ++i)
        step(sequence);
    text("mbarrier.inval.shared::cta.b64 [{}];", barrier);
    text.lines("END:\n");
    kernel.output = untouched(status_bytes + 4 * sequence.results);
    kernel.ptx = text.finish();
    return kernel;
}

Kernel make_remote_barrier(Random& random, uint32_t seed)
{
    const auto way = static_cast<Way>(seed % 3);
    const uint32_t ranks = random.pick<uint32_t>({2, 4, 8}), bytes = ranks * threads * barrier_cell;
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.grid.x = kernel.cluster.x = ranks;
    kernel.input = draw_bytes(random, 'i', bytes + ranks * threads * 16);
    const std::string base = text.shared("memory", bytes, 16), barrier = text.shared("barrier", 8, 8);
    const std::string own = scaled(text, sum(text, scaled(text, "%c", threads), "%t"), barrier_cell);
    const std::string in = global_address(text, "%in", own);
    const std::vector<std::string> words = text.words(4);
    text("ld.global.v4.b32 {}, [{} + {}];", Text::list(words), in, bytes);
    const std::string to = receiver(text, ranks, seed), cell_there = text.word(),
                      barrier_there = text.word();
    text("mapa.shared::cluster.u32 {}, {}, {};", cell_there, sum(text, base, own), to);
    text("mapa.shared::cluster.u32 {}, {}, {};", barrier_there, barrier, to);
    const std::string first = thread_is(text, 0), one = text.word(), count = text.word();
    // Every thread's arrival counts 1 to 4; with bytes, only the owner arrives.
    Random same = random;
    const uint32_t each = way == plain_arrival ? 1 : send(text, same, way, "", "", words, false);
    const std::string expected = expectation(text, ranks, seed, each, way == plain_arrival);
    text("mov.u32 {}, {};", one, way == plain_arrival ? expected : "1");
    text("@{} mbarrier.init.shared::cta.b64 [{}], {};", first, barrier, one);
    text("fence.mbarrier_init.release.cluster;");
    fill_shared(text, base, bytes, 0, threads);
    for (int round = 0; round < 2; ++round) {
        cluster_barrier(text);
        if (way != plain_arrival)
            text("@{} mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", first, barrier, expected);
        if (way == plain_arrival) {
            text("and.b32 {}, %t, 3;", count);
            text("add.u32 {}, {}, 1;", count, count);
            text("st.shared::cluster.v2.b32 [{} + {}], {{{}, {}}};", cell_there, 8 * round, words[round],
                 words[2]);
            text("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{}], {};", barrier_there, count);
        } else {
            Random turn = random;
            send(text, turn, way, cell_there, barrier_there, words, true);
        }
        wait_parity(text, barrier, std::to_string(round));
    }
    text("bar.sync 0;");
    dump_shared(text, base, bytes, scaled(text, "%c", bytes, status_bytes), threads);
    cluster_barrier(text);
    kernel.output = untouched(status_bytes + ranks * bytes);
    kernel.ptx = text.finish();
    return kernel;
}

}  // namespace emu::silicon
