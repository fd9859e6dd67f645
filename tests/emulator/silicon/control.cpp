// Control flow: random nests of branches, loops, tables and calls; named barriers and register pools.
#include "makers.hpp"
#include "text.hpp"

namespace emu::silicon {
namespace {

// ---- Divergence -------------------------------------------------------------------------------------
// Threads carry two words that every statement changes; conditions depend on them.
struct Program {
    Text& text;
    Random& random;
    std::string x, y;
    int statements = 0;
};

void block(Program& p, int depth);

void change(Program& p)
{
    p.text("mad.lo.u32 {}, {}, {:#x}, {};", p.x, p.x, p.random.below(0xffffff) | 1, p.y);
    p.text("shf.l.wrap.b32 {}, {}, {}, {};", p.y, p.y, p.x, p.random.below(32));
}

// A predicate that holds for some of the threads.
std::string condition(Program& p)
{
    const std::string bits = p.text.word(), result = p.text.predicate();
    p.text("and.b32 {}, {}, {:#x};", bits, p.random.chance(50) ? p.x : p.y, 1u << p.random.below(32) | 64);
    p.text("setp.ne.u32 {}, {}, 0;", result, bits);
    return result;
}

void branch(Program& p, int depth)
{
    const std::string otherwise = p.text.label(), end = p.text.label();
    p.text("@{}{} bra {};", p.random.chance(50) ? "!" : "", condition(p), otherwise);
    block(p, depth - 1);
    p.text("bra {};", end);
    p.text.lines(otherwise + ":\n");
    if (p.random.chance(70))
        block(p, depth - 1);
    p.text.lines(end + ":\n");
}

// At most seven turns; some threads leave in the middle.
void loop(Program& p, int depth)
{
    const std::string top = p.text.label(), end = p.text.label(), left = p.text.word(),
                      go = p.text.predicate();
    p.text("and.b32 {}, {}, 7;", left, p.y);
    p.text.lines(top + ":\n");
    p.text("setp.eq.u32 {}, {}, 0;", go, left);
    p.text("@{} bra {};", go, end);
    p.text("sub.u32 {}, {}, 1;", left, left);
    block(p, depth - 1);
    if (p.random.chance(40))
        p.text("@{} bra {};", condition(p), end);
    p.text("bra {};", top);
    p.text.lines(end + ":\n");
}

void table(Program& p, int depth)
{
    const int count = p.random.between(2, 5);
    const std::string name = p.text.label(), end = p.text.label(), index = p.text.word();
    std::vector<std::string> targets;
    for (int i = 0; i < count; ++i)
        targets.push_back(p.text.label());
    p.text("rem.u32 {}, {}, {};", index, p.x, count);
    p.text.lines(fmt::format("{}: .branchtargets {};\n", name, fmt::join(targets, ", ")));
    p.text("brx.idx {}, {};", index, name);
    for (int i = 0; i < count; ++i) {
        p.text.lines(targets[i] + ":\n");
        block(p, depth - 1);
        if (p.random.chance(80))
            p.text("bra {};", end);
    }
    p.text.lines(end + ":\n");
}

void call(Program& p)
{
    const std::string result = p.text.word();
    p.text("{{ .param .b32 a; .param .b32 b; .param .b32 r;");
    p.text("st.param.b32 [a], {}; st.param.b32 [b], {};", p.x, p.y);
    p.text("call.uni (r), mix, (a, b);");
    p.text("ld.param.b32 {}, [r]; }}", result);
    p.text("xor.b32 {}, {}, {};", p.y, p.y, result);
}

void statement(Program& p, int depth)
{
    change(p);
    if (depth == 0 || ++p.statements > 60)
        return;
    switch (p.random.below(6)) {
    case 0:
    case 1: return branch(p, depth);
    case 2: return loop(p, depth);
    case 3: return table(p, depth);
    case 4: return call(p);
    default: return p.text("@{} xor.b32 {}, {}, {};", condition(p), p.x, p.x, p.y);
    }
}

void block(Program& p, int depth)
{
    for (int i = p.random.between(1, 3); i > 0; --i)
        statement(p, depth);
}

// A function with a branch and an early return.
const char* const mix = R"(.func (.param .b32 r) mix(.param .b32 a, .param .b32 b)
{
    .reg .b32 %x, %y, %z;
    .reg .pred %p;
    ld.param.b32 %x, [a];
    ld.param.b32 %y, [b];
    setp.lt.s32 %p, %x, %y;
    @%p bra LESS;
    sub.u32 %z, %x, %y;
    st.param.b32 [r], %z;
    ret;
LESS:
    mad.lo.u32 %z, %x, 77, %y;
    st.param.b32 [r], %z;
    ret;
}
)";

void store_words(Text& text, const std::string& out, uint32_t from, const std::vector<std::string>& words)
{
    for (size_t i = 0; i < words.size(); ++i)
        text("st.global.b32 [{} + {}], {};", out, from + 4 * i, words[i]);
}

// ---- Named barriers ---------------------------------------------------------------------------------
constexpr uint32_t warpgroup = 128;

// Half of the threads write and arrive, the other half waits and reads; several rounds on two barriers.
void hand_over(Text& text, Random& random, const std::string& memory, const std::string& value,
               const std::string& result, uint32_t threads)
{
    const std::string writer = text.predicate(), read = text.label(), end = text.label();
    const std::string own = sum(text, memory, scaled(text, "%t", 4)), word = text.word();
    const uint32_t half = threads / 2, rounds = 4;
    text("setp.lt.u32 {}, %t, {};", writer, half);
    text("@!{} bra {};", writer, read);
    for (uint32_t round = 0; round < rounds; ++round) {
        if (round > 0)
            text("barrier.cta.sync.aligned 2, {};", threads);
        text("mad.lo.u32 {}, {}, 5, {};", value, value, round);
        text("st.shared.b32 [{}], {};", own, value);
        text("bar.arrive 1, {};", threads);
    }
    text("bra {};", end);
    text.lines(read + ":\n");
    for (uint32_t round = 0; round < rounds; ++round) {
        text("bar.sync 1, {};", threads);
        const uint32_t turn = 32 * random.below(half / 32);
        text("xor.b32 {}, %t, {};", word, turn);
        text("and.b32 {}, {}, {};", word, word, half - 1);
        const std::string from = sum(text, memory, scaled(text, word, 4));
        text("ld.shared.b32 {}, [{}];", word, from);
        text("mad.lo.u32 {}, {}, 3, {};", result, result, word);
        if (round + 1 < rounds)
            text("barrier.cta.arrive.aligned 2, {};", threads);
    }
    text.lines(end + ":\n");
}

void reductions(Text& text, const std::string& value, const std::vector<std::string>& results,
                uint32_t threads)
{
    const std::string odd = text.predicate(), truth = text.predicate(), bit = text.word();
    text("and.b32 {}, {}, 1;", bit, value);
    text("setp.ne.u32 {}, {}, 0;", odd, bit);
    text("bar.red.popc.u32 {}, 3, {}, {};", results[0], threads, odd);
    text("barrier.cta.red.popc.aligned.u32 {}, 4, {}, !{};", results[1], threads, odd);
    text("bar.red.and.pred {}, 5, {}, {};", truth, threads, odd);
    text("selp.u32 {}, 1, 0, {};", results[2], truth);
    text("bar.red.or.pred {}, 0, {};", truth, odd);
    text("selp.u32 {}, 1, 0, {};", results[3], truth);
}

}  // namespace

Kernel make_control(Random& random, uint32_t)
{
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.input = draw_bytes(random, 'i', threads * 8);
    text.before(mix);
    const std::string offset = scaled(text, "%t", 8);
    const std::string in = global_address(text, "%in", offset), out = global_address(text, "%out", offset);
    Program program{text, random, text.word(), text.word()};
    text("ld.global.v2.b32 {{{}, {}}}, [{}];", program.x, program.y, in);
    constexpr int parts = 3;
    for (int part = 0; part < parts; ++part) {
        block(program, 3);
        // All threads meet again.
        const std::string ballot = text.word();
        text("bar.warp.sync -1;");
        text("vote.sync.ballot.b32 {}, {}, -1;", ballot, condition(program));
        text("xor.b32 {}, {}, {};", program.x, program.x, ballot);
        store_words(text, out, status_bytes + part * threads * 8, {program.x, program.y});
    }
    kernel.output = untouched(status_bytes + parts * threads * 8);
    kernel.ptx = text.finish();
    return kernel;
}

Kernel make_named_barriers(Random& random, uint32_t seed)
{
    // Register pools as large kernels use them: 168 a thread at launch, 40 and 232 later.
    const bool pools = seed % 2;
    const uint32_t threads = pools ? 3 * warpgroup : random.pick<uint32_t>({64, 128, 256, 512});
    const uint32_t sharing = pools ? 2 * warpgroup : threads;
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.input = draw_bytes(random, 'i', threads * 4);
    const std::string memory = text.shared("memory", threads * 4, 16), offset = scaled(text, "%t", 4);
    const std::string in = global_address(text, "%in", offset);
    const std::string out = global_address(text, "%out", scaled(text, "%t", 24));
    const std::vector<std::string> results = text.words(4);
    const std::string value = text.word(), result = text.word(), producer = text.predicate();
    text("ld.global.b32 {}, [{}];", value, in);
    text("mov.u32 {}, %t;", result);
    if (pools) {
        text("setp.ge.u32 {}, %t, {};", producer, sharing);
        text("@{} bra PRODUCER;", producer);
        text("setmaxnreg.inc.sync.aligned.u32 232;");
    }
    hand_over(text, random, memory, value, result, sharing);
    if (pools) {
        text("bra JOIN;");
        text.lines("PRODUCER:\n");
        text("setmaxnreg.dec.sync.aligned.u32 40;");
        text("mul.lo.u32 {}, {}, {};", result, result, value);
        text.lines("JOIN:\n");
    }
    reductions(text, value, results, threads);
    store_words(text, out, status_bytes, {value, result, results[0], results[1], results[2], results[3]});
    kernel.output = untouched(status_bytes + threads * 24);
    kernel.ptx = text.finish(0, pools ? ".maxntid 384, 1, 1\n.minnctapersm 1\n" : "");
    return kernel;
}

}  // namespace emu::silicon
