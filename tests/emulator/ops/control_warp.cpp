// Exchange between the lanes of a warp (ISA 9.7.9.6, 9.7.13.9-14).
#include "numerics/floats.hpp"
#include "ops/control.hpp"
#include "ops/lanes.hpp"

#include <bit>
#include <cmath>

namespace emu {
namespace {

// Those of some lanes whose member mask, the last operand, is that of the lowest of them.
Mask group_of(Exec& x, Mask lanes, Mask& members)
{
    const Arg& arg = x.op.args.back();
    members = static_cast<Mask>(lane_value(x, arg, std::countr_zero(lanes)));
    Mask group = 0;
    for (int lane = 0; lane < warp_lanes; ++lane)
        if (lanes >> lane & 1 && lane_value(x, arg, lane) == members)
            group |= Mask{1} << lane;
    return group;
}

// An exchange for each group of lanes with one member mask. All members of all groups must come before
// anything is done.
template <void (*Exchange)(Exec&)>
void for_each_group(Exec& x)
{
    const Mask lanes = x.lanes;
    Mask members;
    for (Mask left = lanes; left; left &= ~x.lanes) {
        x.lanes = group_of(x, left, members);
        x.require_lanes(members);
        if (x.lanes & ~members)
            x.hazard("member-mask", "executed by lanes that are not in the member mask",
                     x.lanes & ~members);
    }
    for (Mask left = lanes; left; left &= ~x.lanes) {
        x.lanes = group_of(x, left, members);
        Exchange(x);
    }
    x.lanes = lanes;
}

enum Shuffle { shuffle_up, shuffle_down, shuffle_butterfly, shuffle_index };

// args: d, p, a, b, c, members.
void shuffle(Exec& x)
{
    Lanes<uint32_t> a, b, c, d;
    load_lanes(x, x.op.args[2], a);
    load_lanes(x, x.op.args[3], b);
    load_lanes(x, x.op.args[4], c);
    Mask inside = 0, lost = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const int by = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
        const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
        int from;
        bool p;
        switch (x.op.imm[0]) {
        case shuffle_up: from = lane - by, p = from >= most; break;
        case shuffle_down: from = lane + by, p = from <= most; break;
        case shuffle_butterfly: from = lane ^ by, p = from <= most; break;
        default: from = least | (by & ~segment), p = from <= most;
        }
        if (!p)
            from = lane;
        inside |= Mask{p} << lane;
        d[lane] = a[from & 31];
        if (!(x.lanes >> (from & 31) & 1))
            lost |= Mask{1} << lane;
    }
    if (lost & x.lanes)
        x.hazard("shuffle-inactive", "reads a lane that does not take part", lost & x.lanes);
    store_lanes(x, x.op.args[0], d);
    store_mask(x, x.op.args[1], inside);
}

void decode_shuffle(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool sync = m.take("sync");
    op.imm[0] = m.take_one({"up", "down", "bfly", "idx"});
    const ptx::Type t = m.type();
    m.done();
    const size_t count = instruction.operands.size();
    if (!sync || op.imm[0] < 0 || t.bits != 32 || t.kind != ptx::Kind::Bits)
        refuse(instruction, program, "no such form");
    expect_operands(instruction, program, 5, 6);
    op.args.push_back(decode_arg(instruction.operands[0], program, instruction, t));
    op.args.push_back(count == 6 ? decode_arg(instruction.operands[1], program, instruction, predicate_type)
                                 : Arg{});
    for (size_t i = count - 4; i < count; ++i)
        op.args.push_back(decode_arg(instruction.operands[i], program, instruction, t));
    op.run = for_each_group<shuffle>;
}

enum Vote { vote_all, vote_any, vote_uniform, vote_ballot };

void vote(Exec& x)
{
    const Mask members = x.lanes;
    const Mask given = load_mask(x, x.op.args[1]) & members;
    const bool all = given == members, any = given != 0;
    if (x.op.imm[0] == vote_ballot) {
        Lanes<uint32_t> d;
        for (int lane = 0; lane < warp_lanes; ++lane)
            d[lane] = given;
        return store_lanes(x, x.op.args[0], d);
    }
    const bool truth = x.op.imm[0] == vote_all ? all : x.op.imm[0] == vote_any ? any : all || !any;
    store_mask(x, x.op.args[0], truth ? all_lanes : 0);
}

void decode_vote(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool sync = m.take("sync");
    op.imm[0] = m.take_one({"all", "any", "uni", "ballot"});
    const ptx::Type t = m.type();
    m.done();
    if (!sync || op.imm[0] < 0 || (op.imm[0] == vote_ballot ? t.bits != 32 : t.bits != 1))
        refuse(instruction, program, "no such form");
    decode_values(instruction, program, op, {t, predicate_type, bits_type(32)});
    op.run = for_each_group<vote>;
}

// args: d, p, a, members. imm: all (else any).
void match(Exec& x)
{
    const Mask members = x.lanes;
    uint64_t value[warp_lanes];
    for (int lane = 0; lane < warp_lanes; ++lane)
        value[lane] = members >> lane & 1 ? lane_value(x, x.op.args[2], lane) : 0;
    Mask everyone = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(members >> lane & 1))
            continue;
        Mask equal = 0;
        for (int other = 0; other < warp_lanes; ++other)
            if (members >> other & 1 && value[other] == value[lane])
                equal |= Mask{1} << other;
        if (equal == members)
            everyone = all_lanes;
        const bool all = x.op.imm[0];
        set_lane(x, x.op.args[0], lane, !all ? equal : equal == members ? members : 0);
    }
    store_mask(x, x.op.args[1], everyone);
}

void decode_match(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool sync = m.take("sync");
    const int mode = m.take_one({"any", "all"});
    const ptx::Type t = m.type();
    m.done();
    const size_t count = instruction.operands.size();
    if (!sync || mode < 0 || t.kind != ptx::Kind::Bits || (t.bits != 32 && t.bits != 64) || t.packed > 1)
        refuse(instruction, program, "no such form");
    expect_operands(instruction, program, 3, mode ? 4 : 3);
    op.imm[0] = mode;
    op.args.push_back(decode_arg(instruction.operands[0], program, instruction, bits_type(32)));
    op.args.push_back(count == 4 ? decode_arg(instruction.operands[1], program, instruction, predicate_type)
                                 : Arg{});
    op.args.push_back(decode_arg(instruction.operands[count - 2], program, instruction, t));
    op.args.push_back(decode_arg(instruction.operands[count - 1], program, instruction, bits_type(32)));
    op.run = for_each_group<match>;
}

enum Reduce { reduce_add, reduce_min, reduce_max, reduce_and, reduce_or, reduce_xor };

uint32_t reduce_integers(int how, bool is_signed, uint32_t a, uint32_t b)
{
    const bool less = is_signed ? static_cast<int32_t>(b) < static_cast<int32_t>(a) : b < a;
    switch (how) {
    case reduce_add: return a + b;
    case reduce_min: return less ? b : a;
    case reduce_max: return less ? a : b;
    case reduce_and: return a & b;
    case reduce_or: return a | b;
    default: return a ^ b;
    }
}

// imm: operation, signed, float, .abs, .NaN.
uint32_t reduce_floats(const Op& op, uint32_t a, uint32_t b)
{
    const auto value = [&](uint32_t bits) {
        return std::bit_cast<float>(op.imm[3] ? bits & 0x7fffffff : bits);
    };
    const float x = value(a), y = value(b);
    if (std::isnan(x) && std::isnan(y))
        return nan32;
    if (std::isnan(x) || std::isnan(y))
        return op.imm[4] ? nan32 : std::bit_cast<uint32_t>(std::isnan(x) ? y : x);
    const bool less = y < x || (y == x && std::signbit(y) && !std::signbit(x));
    return std::bit_cast<uint32_t>((op.imm[0] == reduce_min) == less ? y : x);
}

void reduce(Exec& x)
{
    Lanes<uint32_t> a, d;
    load_lanes(x, x.op.args[1], a);
    int lane = std::countr_zero(x.lanes);
    uint32_t sum = x.op.imm[3] ? a[lane] & 0x7fffffff : a[lane];
    for (++lane; lane < warp_lanes; ++lane)
        if (x.lanes >> lane & 1)
            sum = x.op.imm[2] ? reduce_floats(x.op, sum, a[lane])
                              : reduce_integers(x.op.imm[0], x.op.imm[1], sum, a[lane]);
    for (int i = 0; i < warp_lanes; ++i)
        d[i] = sum;
    store_lanes(x, x.op.args[0], d);
}

void decode_reduce(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool sync = m.take("sync");
    op.imm[0] = m.take_one({"add", "min", "max", "and", "or", "xor"});
    op.imm[3] = m.take("abs");
    op.imm[4] = m.take("NaN");
    const ptx::Type t = m.type();
    m.done();
    op.imm[1] = t.kind == ptx::Kind::Signed;
    op.imm[2] = is_floating(t);
    const bool bitwise = op.imm[0] >= reduce_and;
    if (!sync || op.imm[0] < 0 || t.bits != 32 || t.packed > 1 || bitwise != (t.kind == ptx::Kind::Bits) ||
        (op.imm[2] && op.imm[0] == reduce_add) || ((op.imm[3] || op.imm[4]) && !op.imm[2]))
        refuse(instruction, program, "no such form");
    decode_values(instruction, program, op, {t, t, bits_type(32)});
    op.run = for_each_group<reduce>;
}

// The lowest member leads.
void elect(Exec& x)
{
    const int leader = std::countr_zero(x.lanes);
    Lanes<uint32_t> d;
    for (int lane = 0; lane < warp_lanes; ++lane)
        d[lane] = leader;
    store_lanes(x, x.op.args[0], d);
    store_mask(x, x.op.args[1], Mask{1} << leader);
}

void decode_elect(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    if (!m.take("sync"))
        refuse(instruction, program, "no such form");
    m.done();
    decode_values(instruction, program, op, {bits_type(32), predicate_type, bits_type(32)});
    op.run = for_each_group<elect>;
}

void decode_active(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    if (t.bits != 32)
        refuse(instruction, program, "no such form");
    decode_values(instruction, program, op, {t});
    op.run = [](Exec& x) {
        Lanes<uint32_t> d;
        for (int lane = 0; lane < warp_lanes; ++lane)
            d[lane] = x.lanes;
        store_lanes(x, x.op.args[0], d);
    };
}

}  // namespace

void add_warp_exchange(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["shfl"] = decode_shuffle;
    t["vote"] = decode_vote;
    t["match"] = decode_match;
    t["redux"] = decode_reduce;
    t["elect"] = decode_elect;
    t["activemask"] = decode_active;
}

}  // namespace emu
