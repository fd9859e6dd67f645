// Comparison and selection (ISA 9.7.6, 9.7.7) and testp.
#include "numerics/floats.hpp"
#include "ops/arithmetic.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace emu {
namespace {

enum Comparison { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::array<std::string_view, 18> comparison_names = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                                               "equ", "neu", "ltu", "leu", "gtu", "geu",
                                                               "num", "nan", "lo",  "ls",  "hi",  "hs"};
constexpr Comparison unsigned_names[] = {lt, le, gt, ge};

template <class T, class F>
Mask each(const Lanes<T>& a, const Lanes<T>& b, F holds)
{
    uint8_t truth[warp_lanes];
    for (int lane = 0; lane < warp_lanes; ++lane)
        truth[lane] = holds(a[lane], b[lane]);
    Mask mask = 0;
    for (int lane = 0; lane < warp_lanes; ++lane)
        mask |= Mask{truth[lane]} << lane;
    return mask;
}

// In the ordered comparisons a NaN makes everything false but ne, whose C++ meaning would be true.
template <class T>
Mask compare(int how, const Lanes<T>& a, const Lanes<T>& b)
{
    const auto ordered = [](T x, T y) { return x == x && y == y; };
    switch (how) {
    case eq: return each(a, b, [](T x, T y) { return x == y; });
    case ne: return each(a, b, [&](T x, T y) { return x != y && ordered(x, y); });
    case lt: return each(a, b, [](T x, T y) { return x < y; });
    case le: return each(a, b, [](T x, T y) { return x <= y; });
    case gt: return each(a, b, [](T x, T y) { return x > y; });
    case ge: return each(a, b, [](T x, T y) { return x >= y; });
    case equ: return each(a, b, [&](T x, T y) { return x == y || !ordered(x, y); });
    case neu: return each(a, b, [](T x, T y) { return x != y; });
    case ltu: return each(a, b, [](T x, T y) { return !(x >= y); });
    case leu: return each(a, b, [](T x, T y) { return !(x > y); });
    case gtu: return each(a, b, [](T x, T y) { return !(x <= y); });
    case geu: return each(a, b, [](T x, T y) { return !(x < y); });
    case num: return each(a, b, [&](T x, T y) { return ordered(x, y); });
    default: return each(a, b, [&](T x, T y) { return !ordered(x, y); });
    }
}

// Op::imm of setp and set.
enum CompareSlot { compare_relation, compare_boolean, compare_ftz, compare_format, compare_result };
enum Boolean { none, boolean_and, boolean_or, boolean_xor };

template <class T>
Mask compare_operands(Exec& x)
{
    Lanes<T> a, b;
    load_lanes(x, x.op.args[2], a);
    load_lanes(x, x.op.args[3], b);
    if constexpr (std::is_same_v<T, float>)
        if (x.op.imm[compare_ftz])
            for (int lane = 0; lane < warp_lanes; ++lane) {
                a[lane] = std::fpclassify(a[lane]) == FP_SUBNORMAL ? 0 : a[lane];
                b[lane] = std::fpclassify(b[lane]) == FP_SUBNORMAL ? 0 : b[lane];
            }
    return compare(x.op.imm[compare_relation], a, b);
}

// The half at `shift` of f16, bf16 or a pair of them.
Mask compare_halves(Exec& x, int shift)
{
    const auto id = static_cast<FormatId>(x.op.imm[compare_format]);
    Lanes<float> values[2];
    for (int operand = 0; operand < 2; ++operand)
        for (int lane = 0; lane < warp_lanes; ++lane) {
            const uint64_t bits = lane_value(x, x.op.args[2 + operand], lane) >> shift & 0xffff;
            values[operand][lane] =
                static_cast<float>(to_double(id, x.op.imm[compare_ftz] ? flush(id, bits) : bits));
        }
    return compare(x.op.imm[compare_relation], values[0], values[1]);
}

Mask combine(Exec& x, Mask truth)
{
    if (x.op.imm[compare_boolean] == none)
        return truth;
    const Mask c = load_mask(x, x.op.args[4]);
    return x.op.imm[compare_boolean] == boolean_and  ? truth & c
           : x.op.imm[compare_boolean] == boolean_or ? truth | c
                                                     : truth ^ c;
}

// p|q: q is the opposite comparison, combined likewise.
template <Mask (*Compare)(Exec&)>
void set_predicate(Exec& x)
{
    const Mask truth = Compare(x);
    const Mask p = combine(x, truth), q = combine(x, ~truth);
    store_mask(x, x.op.args[0], p);
    store_mask(x, x.op.args[1], q);
}

Mask compare_half(Exec& x) { return compare_halves(x, 0); }

// Pairs: p of the low halves, q of the high ones.
void set_predicates_of_pairs(Exec& x)
{
    const Mask low = compare_halves(x, 0), high = compare_halves(x, 16);
    const Mask p = combine(x, low), q = combine(x, high);
    store_mask(x, x.op.args[0], p);
    store_mask(x, x.op.args[1], q);
}

// set: all ones or 1.0, by the result's type: imm 0 integer, 1 f32, 2 + format of halves.
template <Mask (*Compare)(Exec&)>
void set_value(Exec& x)
{
    const Mask truth = combine(x, Compare(x));
    for (int lane = 0; lane < warp_lanes; ++lane)
        if (x.lanes >> lane & 1)
            set_lane(x, x.op.args[0], lane,
                     truth >> lane & 1 ? static_cast<uint32_t>(x.op.imm[compare_result]) : 0);
}

void set_value_of_pairs(Exec& x)
{
    const Mask low = combine(x, compare_halves(x, 0)), high = combine(x, compare_halves(x, 16));
    const auto one = static_cast<uint32_t>(x.op.imm[compare_result]) & 0xffff;
    for (int lane = 0; lane < warp_lanes; ++lane)
        if (x.lanes >> lane & 1)
            set_lane(x, x.op.args[0], lane,
                     (low >> lane & 1 ? one : 0) | (high >> lane & 1 ? one << 16 : 0));
}

struct Handlers {
    Handler predicate, value;
};

template <class T>
Handlers handlers_for()
{
    return {set_predicate<compare_operands<T>>, set_value<compare_operands<T>>};
}

Handlers handlers_of(const ptx::Type& t)
{
    if (is_floating(t) && t.bits == 16) {
        if (t.packed == 2)
            return {set_predicates_of_pairs, set_value_of_pairs};
        return {set_predicate<compare_half>, set_value<compare_half>};
    }
    if (t.packed > 1)
        return {nullptr, nullptr};
    if (is_floating(t))
        return t.bits == 32 ? handlers_for<float>() : handlers_for<double>();
    const bool is_signed = t.kind == ptx::Kind::Signed;
    switch (t.bits) {
    case 16: return is_signed ? handlers_for<int16_t>() : handlers_for<uint16_t>();
    case 32: return is_signed ? handlers_for<int32_t>() : handlers_for<uint32_t>();
    case 64: return is_signed ? handlers_for<int64_t>() : handlers_for<uint64_t>();
    default: return {nullptr, nullptr};
    }
}

void take_comparison(Modifiers& m, const ptx::Instruction& instruction, const Program& program, Op& op)
{
    int how = -1;
    for (size_t i = 0; i < comparison_names.size() && how < 0; ++i)
        if (m.take(comparison_names[i]))
            how = static_cast<int>(i);
    if (how < 0)
        refuse(instruction, program, "no comparison");
    op.imm[compare_relation] = how > nan ? unsigned_names[how - nan - 1] : how;
    op.imm[compare_boolean] = 1 + m.take_one({"and", "or", "xor"});
    op.imm[compare_ftz] = m.take("ftz");
}

void check_comparison(const ptx::Instruction& instruction, const Program& program, const Op& op,
                      const ptx::Type& t)
{
    const int how = op.imm[compare_relation];
    if ((!is_floating(t) && how >= equ) || t.kind == ptx::Kind::Predicate ||
        (t.kind == ptx::Kind::Bits && how != eq && how != ne))
        refuse(instruction, program, "this comparison has no such type");
}

void decode_setp(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    take_comparison(m, instruction, program, op);
    const ptx::Type t = m.type();
    m.done();
    check_comparison(instruction, program, op, t);
    op.imm[compare_format] = static_cast<int32_t>(format_of(t));
    const size_t inputs = op.imm[compare_boolean] ? 3 : 2;
    const size_t count = instruction.operands.size();
    if (count != inputs + 1 && count != inputs + 2)
        refuse(instruction, program, "wrong number of operands");
    const bool second = count == inputs + 2;
    op.args.push_back(decode_arg(instruction.operands[0], program, instruction, predicate_type));
    op.args.push_back(second ? decode_arg(instruction.operands[1], program, instruction, predicate_type)
                             : Arg{});
    for (size_t i = 0; i < inputs; ++i)
        op.args.push_back(decode_arg(instruction.operands[count - inputs + i], program, instruction,
                                     i == 2 ? predicate_type : t));
    op.run = handlers_of(t).predicate;
}

void decode_set(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    take_comparison(m, instruction, program, op);
    const ptx::Type result = m.type(), t = m.type();
    m.done();
    check_comparison(instruction, program, op, t);
    op.imm[compare_format] = static_cast<int32_t>(format_of(t));
    const bool floating = is_floating(result);
    const bool pairs = t.packed == 2 && (result.packed == 2 || (!floating && result.bits == 32));
    if (result.bits > 32 || (t.packed > 1 || result.packed > 1) != pairs)
        refuse(instruction, program, "no such form");
    const uint64_t one = !floating ? 0xffffffff : from_double(format_of(result), 1, Rounding::Nearest);
    op.imm[compare_result] = static_cast<int32_t>(one);
    expect_operands(instruction, program, op.imm[compare_boolean] ? 4 : 3, op.imm[compare_boolean] ? 4 : 3);
    op.args.push_back(decode_arg(instruction.operands[0], program, instruction, result));
    op.args.push_back({});
    for (size_t i = 1; i < instruction.operands.size(); ++i)
        op.args.push_back(
            decode_arg(instruction.operands[i], program, instruction, i == 3 ? predicate_type : t));
    op.run = handlers_of(t).value;
}

template <class T>
void select_lanes(Exec& x)
{
    Lanes<T> a, b;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    const Mask p = load_mask(x, x.op.args[3]);
    for (int lane = 0; lane < warp_lanes; ++lane)
        a[lane] = p >> lane & 1 ? a[lane] : b[lane];
    store_lanes(x, x.op.args[0], a);
}

Handler select_handler(const ptx::Type& t)
{
    switch (t.bits * t.packed) {
    case 16: return select_lanes<uint16_t>;
    case 32: return select_lanes<uint32_t>;
    case 64: return select_lanes<uint64_t>;
    default: return nullptr;
    }
}

void decode_selp(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const ptx::Type t = m.type();
    m.done();
    op.run = select_handler(t);
    decode_values(instruction, program, op, {t, t, t, predicate_type});
}

template <class T>
void select_by_sign(Exec& x)
{
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        const auto bits = static_cast<uint32_t>(lane_value(x, x.op.args[3], lane));
        bool first;
        if constexpr (std::is_same_v<T, float>)
            first = (x.op.imm[compare_ftz]
                         ? std::bit_cast<float>(static_cast<uint32_t>(flush(FormatId::F32, bits)))
                         : std::bit_cast<float>(bits)) >= 0;
        else
            first = static_cast<int32_t>(bits) >= 0;
        set_lane(x, x.op.args[0], lane, lane_value(x, x.op.args[first ? 1 : 2], lane));
    }
}

void decode_slct(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    op.imm[compare_ftz] = m.take("ftz");
    const ptx::Type t = m.type(), c = m.type();
    m.done();
    if (c.bits != 32 || c.packed > 1 || (c.kind != ptx::Kind::Float && c.kind != ptx::Kind::Signed))
        refuse(instruction, program, "no such form");
    op.run = c.kind == ptx::Kind::Float ? select_by_sign<float> : select_by_sign<int32_t>;
    decode_values(instruction, program, op, {t, t, t, c});
}

// imm: property, format.
void test_property(Exec& x)
{
    const auto id = static_cast<FormatId>(x.op.imm[1]);
    Mask truth = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        const uint64_t bits = lane_value(x, x.op.args[1], lane);
        const int kind = id == FormatId::F32
                             ? std::fpclassify(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                             : std::fpclassify(std::bit_cast<double>(bits));
        const bool results[] = {
            kind != FP_NAN && kind != FP_INFINITE, kind == FP_INFINITE, kind != FP_NAN, kind == FP_NAN,
            kind == FP_NORMAL || kind == FP_ZERO,  kind == FP_SUBNORMAL};
        truth |= Mask{results[x.op.imm[0]]} << lane;
    }
    store_mask(x, x.op.args[0], truth);
}

void decode_testp(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    op.imm[0] = m.take_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    const ptx::Type t = m.type();
    m.done();
    if (op.imm[0] < 0 || t.kind != ptx::Kind::Float || t.bits < 32 || t.packed > 1)
        refuse(instruction, program, "no such form");
    op.imm[1] = static_cast<int32_t>(format_of(t));
    op.run = test_property;
    decode_values(instruction, program, op, {predicate_type, t});
}

}  // namespace

void add_compare(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["setp"] = decode_setp;
    t["set"] = decode_set;
    t["selp"] = decode_selp;
    t["slct"] = decode_slct;
    t["testp"] = decode_testp;
}

}  // namespace emu
