// ld, ldu, st (ISA 9.7.9.8-11).
#include "ops/memory.hpp"
#include "ops/lanes.hpp"

#include <cstring>

namespace emu {
namespace {

enum AccessSlot { access_bytes = memory_first_free, access_signed, access_alignment };

Access access_kind(Order order, bool store)
{
    if (order == Order::Weak)
        return store ? Access::Write : Access::Read;
    return store ? Access::StrongWrite : Access::StrongRead;
}

template <class T>
uint64_t read_as(const uint8_t* from)
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// At most 8 of them; never byte by byte, which a processor cannot forward to the whole.
uint64_t read_bytes(const uint8_t* from, int bytes)
{
    switch (bytes) {
    case 1: return *from;
    case 2: return read_as<uint16_t>(from);
    case 4: return read_as<uint32_t>(from);
    default: return read_as<uint64_t>(from);
    }
}

void write_bytes(uint8_t* to, uint64_t value, int bytes)
{
    switch (bytes) {
    case 1: *to = static_cast<uint8_t>(value); break;
    case 2: std::memcpy(to, &value, 2); break;
    case 4: std::memcpy(to, &value, 4); break;
    default: std::memcpy(to, &value, 8);
    }
}

void put_element(Exec& x, const Arg& arg, int lane, const uint8_t* from)
{
    const int bytes = x.op.imm[access_bytes];
    uint64_t value = read_bytes(from, bytes);
    if (x.op.imm[access_signed] && bytes < 8 && value >> (8 * bytes - 1) & 1)
        value |= ~uint64_t{0} << (8 * bytes);
    set_lane(x, arg, lane, value);
    if (bytes == 16 && arg.form == Arg::Form::Register)
        std::memcpy(&x.row64(arg.reg)[2 * lane + 1], from + 8, 8);
}

void run_load(Exec& x)
{
    const int bytes = x.op.imm[access_bytes], total = bytes * static_cast<int>(x.op.args.size());
    const auto order = static_cast<Order>(x.op.imm[memory_order]);
    Location at[warp_lanes];
    locate_all(x, at, total, x.op.imm[access_alignment], access_kind(order, false));
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        for (size_t i = 0; i < x.op.args.size(); ++i)
            put_element(x, x.op.args[i], lane, at[lane].bytes + i * bytes);
        after_load(x, order, at[lane], lane);
    }
}

void run_store(Exec& x)
{
    const int bytes = x.op.imm[access_bytes], total = bytes * static_cast<int>(x.op.args.size());
    const auto order = static_cast<Order>(x.op.imm[memory_order]);
    Location at[warp_lanes];
    locate_all(x, at, total, x.op.imm[access_alignment], access_kind(order, true));
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        before_store(x, order, at[lane], lane);
        for (size_t i = 0; i < x.op.args.size(); ++i) {
            const Arg& arg = x.op.args[i];
            const uint64_t value = lane_value(x, arg, lane);
            write_bytes(at[lane].bytes + i * bytes, value, bytes);
            if (bytes == 16)
                std::memcpy(at[lane].bytes + i * bytes + 8, &x.row64(arg.reg)[2 * lane + 1], 8);
        }
    }
}

// Registers may be wider than the type.
void decode_elements(const ptx::Instruction& instruction, Program& program, Op& op,
                     const ptx::Operand& operand, const ptx::Type& t, int count, bool destination)
{
    const bool vector = operand.form == ptx::Operand::Form::Vector;
    if ((vector ? operand.parts.size() : 1) != static_cast<size_t>(count))
        refuse(instruction, program, "the vector needs " + std::to_string(count) + " elements");
    for (int i = 0; i < count; ++i) {
        const ptx::Operand& part = vector ? operand.parts[i] : operand;
        const int bits = t.bits * t.packed;
        const bool fixed = part.form != ptx::Operand::Form::Register || is_floating(t) || bits > 64;
        const Arg arg = fixed ? decode_arg(part, program, instruction, t) : decode_arg(part, program);
        if (arg.form == Arg::Form::Register &&
            (arg.bits < bits || arg.width == 0 || (bits < 128 && arg.width == 16)))
            refuse(instruction, program,
                   "register of " + std::to_string(arg.bits) + " bits where at least " +
                       std::to_string(bits) + " are needed");
        if ((destination && arg.form != Arg::Form::Register && arg.form != Arg::Form::None) ||
            (!destination &&
             (arg.form == Arg::Form::None || (bits == 128 && arg.form != Arg::Form::Register))))
            refuse(instruction, program, "an operand of this form has no place here");
        op.args.push_back(arg);
    }
}

// Elements at either end that the pragma says are unused are not read at all: they may lie outside the
// object, or be written meanwhile.
void drop_unused(const ptx::Instruction& instruction, Op& op)
{
    const int bytes = op.imm[access_bytes];
    const auto is_used = [&](size_t element) {
        return (instruction.used_bytes >> (element * bytes) & ((uint64_t{1} << bytes) - 1)) != 0;
    };
    while (op.args.size() > 1 && !is_used(op.args.size() - 1))
        op.args.pop_back();
    size_t first = 0;
    while (first + 1 < op.args.size() && !is_used(first))
        ++first;
    op.args.erase(op.args.begin(), op.args.begin() + static_cast<std::ptrdiff_t>(first));
    op.address.offset += static_cast<int64_t>(first) * bytes;
    if (first)
        op.imm[access_alignment] = bytes;
}

void decode_access(const ptx::Instruction& instruction, Program& program, Op& op)
{
    Modifiers m(instruction, program);
    const bool stores = instruction.opcode == "st";
    take_space(m, op);
    const bool cached = m.take("L2::cache_hint");
    const Order order = take_order(m, op);
    ignore_cache_hints(m);
    const bool constant = m.take("nc");
    const int vector = m.take_one({"v2", "v4", "v8"});
    const ptx::Type t = m.type();
    m.done();
    const int count = vector < 0 ? 1 : 2 << vector, bytes = t.bytes();
    const bool wrong_order = stores ? order == Order::Acquire : order == Order::Release;
    if (wrong_order || order == Order::AcquireRelease || bytes == 0 || t.packed > 1 || count * bytes > 32 ||
        (t.bits == 16 && is_floating(t)) || (stores && constant))
        refuse(instruction, program, "no such form");
    expect_operands(instruction, program, 2, cached ? 3 : 2);
    op.imm[memory_order] = static_cast<int32_t>(order);
    op.imm[access_bytes] = bytes;
    op.imm[access_signed] = t.kind == ptx::Kind::Signed;
    const ptx::Operand& address = instruction.operands[stores ? 0 : 1];
    if (address.form != ptx::Operand::Form::Address)
        refuse(instruction, program, "an address is needed");
    op.address = decode_address(address, program);
    fix_space(address, op);
    const auto space = static_cast<ptx::Space>(op.imm[memory_space]);
    if (stores && (space == ptx::Space::Const || space == ptx::Space::Param))
        refuse(instruction, program, "this space cannot be written");
    decode_elements(instruction, program, op, instruction.operands[stores ? 1 : 0], t, count, !stores);
    op.imm[access_alignment] = count * bytes;
    if (!stores)
        drop_unused(instruction, op);
    op.run = stores ? run_store : run_load;
}

}  // namespace

void add_memory(DecoderTable& table)
{
    auto& t = table.by_opcode;
    t["ld"] = t["ldu"] = t["st"] = decode_access;
    add_atomic(table);
    add_address(table);
}

}  // namespace emu
