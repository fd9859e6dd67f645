// tcgen05.ld and tcgen05.st: a warp's registers and its quarter of tensor memory.
#include "core/values.hpp"
#include "ops/tcgen05.hpp"

#include <algorithm>
#include <bit>

namespace emu {

namespace {

enum class Shape { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

// What the decoder remembers in Op::imm.
enum { imm_shape, imm_num, imm_packed, imm_half_offset };

struct Cell {
    uint32_t lane, column;
};

// Where register i of a thread lies, from the address on.
Cell cell_of(Shape shape, uint32_t thread, uint32_t i, uint32_t half_offset)
{
    switch (shape) {
    case Shape::s32x32b: return {thread, i};
    case Shape::s16x64b: return {thread / 4 + 8 * (thread & 1), (thread >> 1 & 1) + 2 * i};
    case Shape::s16x128b: return {thread / 4 + 8 * (i & 1), thread % 4 + 4 * (i >> 1)};
    case Shape::s16x256b: return {thread / 4 + 8 * (i >> 1 & 1), 2 * (thread % 4) + (i & 1) + 8 * (i >> 2)};
    case Shape::s16x32bx2: return {thread % 16, thread / 16 * half_offset + i};
    }
    return {};
}

uint32_t registers_per_num(Shape shape)
{
    return shape == Shape::s16x128b ? 2 : shape == Shape::s16x256b ? 4 : 1;
}

// Columns of one access of `num`, without the second half of 16x32bx2.
uint32_t columns_of(Shape shape, uint32_t num)
{
    switch (shape) {
    case Shape::s16x64b: return 2 * num;
    case Shape::s16x128b: return 4 * num;
    case Shape::s16x256b: return 8 * num;
    default: return num;
    }
}

// The block of tensor memory that an instruction reaches.
struct Window {
    Shape shape;
    uint32_t lane, column, columns, half_offset;  // of the first half, when there are two
    bool packed;

    uint32_t lanes() const { return shape == Shape::s32x32b ? 32 : 16; }
};

// The quarter is the warp's, whatever the address says: addresses of quarter 0 are taken for offsets within
// it, others than the warp's own are complained about.
Window find_window(Exec& x)
{
    Window window;
    window.shape = static_cast<Shape>(x.op.imm[imm_shape]);
    window.packed = x.op.imm[imm_packed];
    window.half_offset = x.op.imm[imm_half_offset];
    window.columns = columns_of(window.shape, x.op.imm[imm_num]) * (window.packed ? 2 : 1);
    const uint32_t address = uniform_value(x, x.op.address.base, "the address") + x.op.address.offset;
    const uint32_t lane = address >> 16, quarter = x.warp.index % 4;
    if (lane / 32 != quarter && lane / 32 != 0)
        x.hazard("tmem-lane-window", "lane " + std::to_string(lane) + " in warp " +
                                         std::to_string(x.warp.index) + ", which reaches lanes " +
                                         std::to_string(quarter * 32) + ".." +
                                         std::to_string(quarter * 32 + 31));
    if (lane % window.lanes() != 0)
        x.fault("tmem-lane-alignment",
                "lane " + std::to_string(lane) + " is no multiple of " + std::to_string(window.lanes()));
    window.lane = quarter * 32 + lane % 32;
    window.column = address & 0xffff;
    require_allocated(x, x.cta, window.column, window.columns, x.op.source->modifiers[0].c_str());
    if (window.shape == Shape::s16x32bx2)
        require_allocated(x, x.cta, window.column + window.half_offset, window.columns, "second half");
    return window;
}

void note_access(Machine& machine, Cta& cta, const Window& window, Access kind, const Actor& actor)
{
    machine.checker.access_tmem(cta, window.column, window.columns, window.lane, window.lanes(), kind,
                                actor);
    if (window.shape == Shape::s16x32bx2 && window.half_offset)
        machine.checker.access_tmem(cta, window.column + window.half_offset, window.columns, window.lane,
                                    window.lanes(), kind, actor);
}

// The cells of a thread's register; with packing the first of two.
uint32_t* find_cell(TensorMemory& memory, const Window& window, uint32_t thread, uint32_t i)
{
    const Cell at = cell_of(window.shape, thread, i, 0);
    const uint32_t column = at.column * (window.packed ? 2 : 1);
    const uint32_t half = window.shape == Shape::s16x32bx2 && thread >= 16 ? window.half_offset : 0;
    return &memory.cell(window.lane + at.lane, window.column + half + column);
}

// ISA 9.7.16.6.4.5: registers that depend on a load get its values without a wait, so they have them at
// once. What the wait orders is the access to tensor memory.
void run_tcgen05_load(Exec& x)
{
    x.require_convergence();
    const Window window = find_window(x);
    TensorMemory& memory = tensor_memory(x.cta);
    Checker& checker = x.machine.checker;
    const int agent = checker.start_async(x.warp.agent);
    note_access(x.machine, x.cta, window, Access::Read, {agent, Proxy::Async, x.op.line, x.warp.index, -1});
    for (size_t i = 0; i < x.op.args.size(); ++i)
        for (Mask rest = x.lanes; rest; rest &= rest - 1) {
            const int thread = std::countr_zero(rest);
            const uint32_t* cell = find_cell(memory, window, thread, i);
            set_lane(x, x.op.args[i], thread, window.packed ? (cell[0] & 0xffff) | cell[1] << 16 : cell[0]);
        }
    checker.merge(tensor_warp(x.warp).loads, checker.tensor_clock(agent));
    checker.finish_async(agent);
}

void run_tcgen05_store(Exec& x)
{
    x.require_convergence();
    const Window window = find_window(x);
    auto values = std::make_shared<std::vector<uint32_t>>();
    for (const Arg& arg : x.op.args)
        for (int thread = 0; thread < warp_lanes; ++thread)
            values->push_back(static_cast<uint32_t>(lane_value(x, arg, thread)));
    auto deferred = std::make_shared<Deferred>(x, x.lanes);
    auto operation = std::make_shared<TensorOperation>();
    operation->clock = x.machine.checker.tensor_clock(deferred->agent);
    tensor_warp(x.warp).stores.push_back(operation);
    start(deferred, "tcgen05.st", [deferred, operation, window, values] {
        TensorMemory& memory = tensor_memory(deferred->cta);
        Exec later = deferred->exec();
        check_still_allocated(later, deferred->cta, window.column, window.columns);
        note_access(deferred->machine, deferred->cta, window, Access::Write, deferred->actor(Proxy::Async));
        for (size_t i = 0; i < values->size(); ++i) {
            uint32_t* cell = find_cell(memory, window, i % warp_lanes, i / warp_lanes);
            const uint32_t value = (*values)[i];
            cell[0] = window.packed ? value & 0xffff : value;
            if (window.packed)
                cell[1] = value >> 16;
        }
        operation->done = true;
        deferred->finished();
    });
}

void decode_registers(const ptx::Instruction& instruction, const ptx::Operand& operand, Program& program,
                      Op& op)
{
    const ptx::Type word{ptx::Kind::Bits, 32, 1};
    if (operand.form == ptx::Operand::Form::Vector)
        for (const ptx::Operand& part : operand.parts)
            op.args.push_back(decode_arg(part, program, instruction, word));
    else
        op.args.push_back(decode_arg(operand, program, instruction, word));
    const auto shape = static_cast<Shape>(op.imm[imm_shape]);
    if (op.args.size() != registers_per_num(shape) * op.imm[imm_num] || op.args.size() > 128)
        refuse(instruction, program, "wrong number of registers for this shape");
}

}  // namespace

void decode_tensor_access(const ptx::Instruction& instruction, Program& program, Op& op)
{
    const bool load = instruction.has("ld");
    constexpr std::string_view shapes[] = {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"};
    constexpr std::string_view nums[] = {"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"};
    allow_modifiers(instruction, program,
                    {load ? "ld" : "st", "sync", "aligned", "b32", load ? "pack::16b" : "unpack::16b",
                     shapes[0], shapes[1], shapes[2], shapes[3], shapes[4], nums[0], nums[1], nums[2],
                     nums[3], nums[4], nums[5], nums[6], nums[7]});
    op.imm[imm_shape] = op.imm[imm_num] = -1;
    for (int i = 0; i < 5; ++i)
        if (instruction.has(shapes[i]))
            op.imm[imm_shape] = i;
    for (int i = 0; i < 8; ++i)
        if (instruction.has(nums[i]))
            op.imm[imm_num] = 1 << i;
    if (op.imm[imm_shape] < 0 || op.imm[imm_num] < 0 || !instruction.has("sync") ||
        !instruction.has("aligned"))
        refuse(instruction, program, "needs .sync.aligned, a shape and a count");
    op.imm[imm_packed] = instruction.has("pack::16b") || instruction.has("unpack::16b");

    const bool halves = static_cast<Shape>(op.imm[imm_shape]) == Shape::s16x32bx2;
    const size_t operands = halves ? 3 : 2;
    expect_operands(instruction, program, operands, operands);
    const auto& list = instruction.operands;
    op.address = decode_address(list[load ? 1 : 0], program);
    if (halves)
        op.imm[imm_half_offset] = immediate(instruction, program, list[load ? 2 : 1]);
    decode_registers(instruction, list[load ? 0 : operands - 1], program, op);
    op.run = load ? run_tcgen05_load : run_tcgen05_store;
}

}  // namespace emu
