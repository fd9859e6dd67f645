// atom, red (ISA 9.7.13.5-6). Lanes take their turn in order.
#include "numerics/floats.hpp"
#include "numerics/reduction.hpp"
#include "ops/lanes.hpp"
#include "ops/memory.hpp"

#include <array>
#include <bit>

namespace emu {
namespace {

enum Operation { op_add, op_min, op_max, op_inc, op_dec, op_cas, op_exch, op_and, op_or, op_xor };

enum AtomicSlot { atomic_operation = memory_first_free, atomic_type, atomic_vector };

// A type in one number.
int type_code(const ptx::Type& t) { return static_cast<int>(t.kind) << 16 | t.bits << 4 | t.packed; }

ptx::Type coded_type(int code)
{
    return {static_cast<ptx::Kind>(code >> 16), static_cast<uint8_t>(code >> 4),
            static_cast<uint8_t>(code & 15)};
}

template <class T>
uint64_t extremum(Operation operation, uint64_t a, uint64_t b)
{
    const T x = static_cast<T>(a), y = static_cast<T>(b);
    return static_cast<std::make_unsigned_t<T>>((operation == op_min) == (y < x) ? y : x);
}

uint64_t combine_integers(Operation operation, const ptx::Type& t, uint64_t old, uint64_t b, uint64_t c)
{
    const bool is_signed = t.kind == ptx::Kind::Signed;
    switch (operation) {
    case op_add: return old + b;
    case op_inc: return old >= b ? 0 : old + 1;
    case op_dec: return old == 0 || old > b ? b : old - 1;
    case op_cas: return old == b ? c : old;
    case op_exch: return b;
    case op_and: return old & b;
    case op_or: return old | b;
    case op_xor: return old ^ b;
    default: break;
    }
    if (t.bits == 32)
        return is_signed ? extremum<int32_t>(operation, old, b) : extremum<uint32_t>(operation, old, b);
    return is_signed ? extremum<int64_t>(operation, old, b) : extremum<uint64_t>(operation, old, b);
}

// Global single-precision sums flush subnormals; the others do not. On shared memory a double is added by
// the core, in a loop that swaps, which makes a NaN quiet.
uint64_t combine_floats(Operation operation, const ptx::Type& t, uint64_t old, uint64_t b, bool global)
{
    if (t.bits == 64 && !global)
        return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    const bool flushes = t.bits == 32 && global;
    if (flushes)
        old = flush(FormatId::F32, old), b = flush(FormatId::F32, b);
    const Reduction reduction = operation == op_add   ? Reduction::Add
                                : operation == op_min ? Reduction::Min
                                                      : Reduction::Max;
    const Element element = t.bits == 64                  ? Element::F64
                            : t.bits == 32                ? Element::F32
                            : t.kind == ptx::Kind::Bfloat ? Element::Bf16
                                                          : Element::F16;
    reduce(reduction, element, &old, &b, 1);
    return flushes ? flush(FormatId::F32, old) : old;
}

uint64_t combine_element(Operation operation, const ptx::Type& t, uint64_t old, uint64_t b, uint64_t c,
                         bool global)
{
    if (!is_floating(t) || operation == op_exch || operation == op_cas)
        return combine_integers(operation, t, old, b, c);
    return combine_floats(operation, t, old, b, global);
}

uint64_t combine(Operation operation, const ptx::Type& t, uint64_t old, uint64_t b, uint64_t c, bool global)
{
    if (t.packed == 1)
        return combine_element(operation, t, old, b, c, global);
    uint64_t out = 0;
    for (int i = 0; i < t.packed; ++i) {
        const auto part = [&](uint64_t word) {
            return word >> (i * t.bits) & ((uint64_t{1} << t.bits) - 1);
        };
        out |= combine_element(operation, t, part(old), part(b), part(c), global) << (i * t.bits);
    }
    return out;
}

// args: destinations, then b, then c of cas.
void atomic(Exec& x)
{
    const auto operation = static_cast<Operation>(x.op.imm[atomic_operation]);
    const ptx::Type t = coded_type(x.op.imm[atomic_type]);
    const int count = x.op.imm[atomic_vector], bytes = t.bytes(), total = count * bytes;
    const auto order = static_cast<Order>(x.op.imm[memory_order]);
    Location at[warp_lanes];
    locate_all(x, at, total, total, Access::Atomic);
    const uint64_t progress = x.machine.progress;
    bool changed = false;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        if (at[lane].space != ptx::Space::Global && at[lane].space != ptx::Space::Shared)
            x.fault("invalid-address", "atomic operation on local or parameter memory");
        const bool global = at[lane].space == ptx::Space::Global;
        after_load(x, order, at[lane], lane);
        before_store(x, order, at[lane], lane);
        for (int i = 0; i < count; ++i) {
            uint64_t old = 0;
            std::memcpy(&old, at[lane].bytes + i * bytes, bytes);
            const uint64_t b = lane_value(x, x.op.args[count + i], lane);
            const uint64_t c = operation == op_cas ? lane_value(x, x.op.args[2], lane) : 0;
            const uint64_t next = combine(operation, t, old, b, c, global);
            changed |= std::memcmp(&next, &old, bytes) != 0;
            std::memcpy(at[lane].bytes + i * bytes, &next, bytes);
            set_lane(x, x.op.args[i], lane, old);
        }
    }
    // A failing compare-and-swap in a loop is no progress.
    if (!changed)
        x.machine.progress = progress;
}

void atomic_wide(Exec& x)
{
    const auto order = static_cast<Order>(x.op.imm[memory_order]);
    const bool swap = x.op.imm[atomic_operation] == op_cas;
    Location at[warp_lanes];
    locate_all(x, at, 16, 16, Access::Atomic);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        after_load(x, order, at[lane], lane);
        before_store(x, order, at[lane], lane);
        uint64_t old[2];
        std::memcpy(old, at[lane].bytes, 16);
        const uint64_t* b = &x.row64(x.op.args[1].reg)[2 * lane];
        const bool equal = old[0] == b[0] && old[1] == b[1];
        if (!swap || equal)
            std::memcpy(at[lane].bytes, swap ? &x.row64(x.op.args[2].reg)[2 * lane] : b, 16);
        if (x.op.args[0].form == Arg::Form::Register)
            std::memcpy(&x.row64(x.op.args[0].reg)[2 * lane], old, 16);
    }
}

bool form_exists(Operation operation, const ptx::Type& t, int count, bool noftz)
{
    const bool floating = is_floating(t), bits = t.kind == ptx::Kind::Bits;
    if (floating && (t.bits == 16) != noftz)
        return false;
    if (count > 1)
        return floating && t.bits <= 32 && (t.bits == 16 || operation == op_add) && operation <= op_max &&
               count * t.bytes() <= 16;
    switch (operation) {
    case op_add: return floating || (!bits && t.bits >= 32);
    case op_min:
    case op_max: return !floating && !bits && t.bits >= 32;
    case op_inc:
    case op_dec: return t.kind == ptx::Kind::Unsigned && t.bits == 32;
    case op_cas: return t.bits >= 16 && t.packed == 1;
    case op_exch: return t.bits >= 32 && t.packed == 1;
    default: return bits && (t.bits == 32 || t.bits == 64);
    }
}

void decode_values_of(const ptx::Instruction& instruction, Program& program, Op& op, const ptx::Type& t,
                      int count, const ptx::Operand& operand)
{
    const bool vector = operand.form == ptx::Operand::Form::Vector;
    if ((vector ? operand.parts.size() : 1) != static_cast<size_t>(count))
        refuse(instruction, program, "the vector needs " + std::to_string(count) + " elements");
    for (int i = 0; i < count; ++i)
        op.args.push_back(decode_arg(vector ? operand.parts[i] : operand, program, instruction, t));
}

void decode_atomic(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool returns = instruction.opcode == "atom";
    take_space(m, op);
    const Order order = take_order(m, op);
    const bool cached = m.take("L2::cache_hint"), noftz = m.take("noftz");
    const int operation =
        m.take_one({"add", "min", "max", "inc", "dec", "cas", "exch", "and", "or", "xor"});
    const int vector = m.take_one({"v2", "v4", "v8"});
    const ptx::Type t = m.type();
    m.done();
    const int count = vector < 0 ? 1 : 2 << vector;
    if (operation < 0 || !form_exists(static_cast<Operation>(operation), t, count, noftz) ||
        (!returns && (operation == op_cas || operation == op_exch || order == Order::Acquire)))
        refuse(instruction, program, "no such form");
    const size_t fixed = (returns ? 3 : 2) + (operation == op_cas);
    expect_operands(instruction, program, fixed, fixed + cached);
    op.imm[memory_order] = static_cast<int32_t>(order == Order::Weak ? Order::Relaxed : order);
    op.imm[atomic_operation] = operation;
    op.imm[atomic_type] = type_code(t);
    op.imm[atomic_vector] = count;
    const size_t at = returns ? 1 : 0;
    if (instruction.operands[at].form != ptx::Operand::Form::Address)
        refuse(instruction, program, "an address is needed");
    op.address = decode_address(instruction.operands[at], program);
    if (returns)
        decode_values_of(instruction, program, op, t, count, instruction.operands[0]);
    else
        op.args.resize(count);
    decode_values_of(instruction, program, op, t, count, instruction.operands[at + 1]);
    if (operation == op_cas)
        decode_values_of(instruction, program, op, t, 1, instruction.operands[at + 2]);
    op.run = t.bits == 128 ? atomic_wide : atomic;
}

}  // namespace

void add_atomic(DecoderTable& table)
{
    table.by_opcode["atom"] = decode_atomic;
    table.by_opcode["red"] = decode_atomic;
}

}  // namespace emu
