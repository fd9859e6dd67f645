// Matrix fragments in registers: ldmatrix, stmatrix, movmatrix and mma.sync on 16-bit elements.
#include "numerics/tensor_core.hpp"
#include "ops/async.hpp"
#include "ops/bank_passes.hpp"

#include <bit>

namespace emu {

namespace {

// Fragment of an 8 x 8 matrix: lane l holds elements (l / 4, 2 (l % 4)) and its right neighbour.
using Tile = uint16_t[8][8];

void put_fragment(Exec& x, const Arg& to, const Tile& tile, bool transposed)
{
    for (int lane = 0; lane < warp_lanes; lane++) {
        int row = lane / 4, column = 2 * (lane % 4);
        uint32_t low = transposed ? tile[column][row] : tile[row][column];
        uint32_t high = transposed ? tile[column + 1][row] : tile[row][column + 1];
        set_lane(x, to, lane, low | high << 16);
    }
}

void take_fragment(Exec& x, const Arg& from, Tile& tile, bool transposed)
{
    for (int lane = 0; lane < warp_lanes; lane++) {
        int row = lane / 4, column = 2 * (lane % 4);
        auto pair = static_cast<uint32_t>(lane_value(x, from, lane));
        (transposed ? tile[column][row] : tile[row][column]) = static_cast<uint16_t>(pair);
        (transposed ? tile[column + 1][row] : tile[row][column + 1]) = static_cast<uint16_t>(pair >> 16);
    }
}

// ---- ldmatrix, stmatrix -----------------------------------------------------------------------------
enum Slot { slot_count, slot_transposed, slot_space };

Location matrix_row(Exec& x, int lane)
{
    auto space = static_cast<ptx::Space>(x.op.imm[slot_space]);
    return shared_location(x, space, address_of(x, x.op.address, lane), 16, 16, lane);
}

// The rows that the lanes name. All work together: their accesses are those of the warp as a whole.
void touch_rows(Exec& x, Location (&rows)[warp_lanes], Access kind)
{
    const int count = x.op.imm[slot_count] * 8;
    for (int i = 0; i < count; i++) {
        rows[i] = matrix_row(x, i);
        check_alive(x, *rows[i].cta);
        x.machine.checker.access(&x, *rows[i].cta, rows[i].offset, 16, kind, generic_actor(x, -1));
    }
    count_passes(x, all_lanes >> (warp_lanes - count), rows, 16);
}

void run_ldmatrix(Exec& x)
{
    x.require_convergence();
    Tile tiles[4];
    Location rows[warp_lanes];
    touch_rows(x, rows, Access::Read);
    for (int i = 0; i < x.op.imm[slot_count] * 8; i++)
        std::memcpy(tiles[i / 8][i % 8], rows[i].bytes, 16);
    for (int i = 0; i < x.op.imm[slot_count]; i++)
        put_fragment(x, x.op.args[i], tiles[i], x.op.imm[slot_transposed]);
}

void run_stmatrix(Exec& x)
{
    x.require_convergence();
    Tile tiles[4];
    for (int i = 0; i < x.op.imm[slot_count]; i++)
        take_fragment(x, x.op.args[i], tiles[i], x.op.imm[slot_transposed]);
    Location rows[warp_lanes];
    touch_rows(x, rows, Access::Write);
    for (int i = 0; i < x.op.imm[slot_count] * 8; i++)
        std::memcpy(rows[i].bytes, tiles[i / 8][i % 8], 16);
}

void decode_shared_matrix(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta", "b16"});
    if (!i.has("sync") || !i.has("aligned") || !i.has("m8n8") || !i.has("b16"))
        refuse(i, program, i.opcode + " needs .sync.aligned.m8n8 and .b16");
    expect_operands(i, program, 2, 2);
    bool load = i.opcode == "ldmatrix";
    const ptx::Operand& registers = i.operands[load ? 0 : 1];
    op.imm[slot_count] = i.has("x4") ? 4 : i.has("x2") ? 2 : 1;
    op.imm[slot_transposed] = i.has("trans");
    op.imm[slot_space] = static_cast<int>(space_of(i));
    op.address = decode_address(i.operands[load ? 1 : 0], program);
    bool vector = registers.form == ptx::Operand::Form::Vector;
    size_t count = vector ? registers.parts.size() : 1;
    if (static_cast<int>(count) != op.imm[slot_count] || i.has("x1") + i.has("x2") + i.has("x4") != 1)
        refuse(i, program, "the number of registers does not match .x1, .x2 or .x4");
    for (size_t part = 0; part < count; part++)
        op.args.push_back(
            decode_arg(vector ? registers.parts[part] : registers, program, i, {ptx::Kind::Bits, 32, 1}));
    op.run = load ? run_ldmatrix : run_stmatrix;
}

void run_movmatrix(Exec& x)
{
    x.require_convergence();
    Tile tile;
    take_fragment(x, x.op.args[1], tile, false);
    put_fragment(x, x.op.args[0], tile, true);
}

void decode_movmatrix(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program, {"sync", "aligned", "m8n8", "trans", "b16"});
    expect_operands(i, program, 2, 2);
    if (i.modifiers.size() != 5)
        refuse(i, program, "movmatrix takes .sync.aligned.m8n8.trans.b16");
    op.args = {decode_arg(i.operands[0], program, i, {ptx::Kind::Bits, 32, 1}),
               decode_arg(i.operands[1], program, i, {ptx::Kind::Bits, 32, 1})};
    op.run = run_movmatrix;
}

// ---- mma.sync ---------------------------------------------------------------------------------------
enum MmaSlot { slot_depth, slot_bf16, slot_half_result };
constexpr int rows = 16, columns = 8;

struct Fragments {
    uint16_t a[rows * 16], b[columns * 16];
    uint32_t d[rows * columns];
};

void load_operands(Exec& x, const Arg* a, const Arg* b, int depth, Fragments& f)
{
    for (int lane = 0; lane < warp_lanes; lane++) {
        int g = lane / 4, t = 2 * (lane % 4);
        for (int i = 0; i < depth / 4; i++) {
            auto pair = static_cast<uint32_t>(lane_value(x, a[i], lane));
            uint16_t* to = f.a + (g + 8 * (i & 1)) * depth + t + 8 * (i >> 1);
            to[0] = static_cast<uint16_t>(pair), to[1] = static_cast<uint16_t>(pair >> 16);
        }
        for (int i = 0; i < depth / 8; i++) {
            auto pair = static_cast<uint32_t>(lane_value(x, b[i], lane));
            uint16_t* to = f.b + g * depth + t + 8 * i;
            to[0] = static_cast<uint16_t>(pair), to[1] = static_cast<uint16_t>(pair >> 16);
        }
    }
}

uint32_t* accumulator(Fragments& f, int lane, int row_half)
{
    return f.d + (lane / 4 + 8 * row_half) * columns + 2 * (lane % 4);
}

void run_mma(Exec& x)
{
    x.require_convergence();
    int depth = x.op.imm[slot_depth];
    bool half_result = x.op.imm[slot_half_result];
    int accumulators = half_result ? 2 : 4;
    const Arg *d = x.op.args.data(), *a = d + accumulators, *b = a + depth / 4, *c = b + depth / 8;
    Fragments f;
    load_operands(x, a, b, depth, f);
    for (int lane = 0; lane < warp_lanes; lane++) {
        for (int i = 0; i < accumulators; i++) {
            auto bits = static_cast<uint32_t>(lane_value(x, c[i], lane));
            uint32_t* to = accumulator(f, lane, half_result ? i : i >> 1);
            if (half_result)
                to[0] = bits & 0xffff, to[1] = bits >> 16;
            else
                to[i & 1] = bits;
        }
    }
    MatrixShape shape;
    shape.m = rows, shape.n = columns, shape.k = depth;
    shape.a = shape.b = x.op.imm[slot_bf16] ? Half::Bf16 : Half::F16;
    shape.half_result = half_result;
    multiply_accumulate(tensor_core(x.machine.config), shape, f.a, f.b, f.d);
    for (int lane = 0; lane < warp_lanes; lane++) {
        for (int i = 0; i < accumulators; i++) {
            const uint32_t* from = accumulator(f, lane, half_result ? i : i >> 1);
            set_lane(x, d[i], lane, half_result ? from[0] | from[1] << 16 : from[i & 1]);
        }
    }
    x.machine.statistics.mma_flops += 2ull * rows * columns * depth;
}

void add_vector(const ptx::Instruction& i, const Program& program, Op& op, const ptx::Operand& operand,
                int count)
{
    // A single register needs no braces.
    bool vector = operand.form == ptx::Operand::Form::Vector;
    if (static_cast<int>(vector ? operand.parts.size() : 1) != count)
        refuse(i, program, "a vector of " + std::to_string(count) + " is expected");
    for (int part = 0; part < count; part++)
        op.args.push_back(decode_arg(vector ? operand.parts[part] : operand, program));
}

void decode_mma(const ptx::Instruction& i, Program& program, Op& op)
{
    expect_operands(i, program, 4, 4);
    const auto& m = i.modifiers;
    if (m.size() != 9 || m[0] != "sync" || m[1] != "aligned" || m[3] != "row" || m[4] != "col")
        refuse(i, program, "only mma.sync.aligned.SHAPE.row.col with four types is emulated");
    bool k16 = m[2] == "m16n8k16", bf16 = m[6] == "bf16";
    if (!k16 && m[2] != "m16n8k8")
        refuse(i, program, "shape ." + m[2] + " is not emulated");
    bool f32 = m[5] == "f32" && m[8] == "f32", f16 = m[5] == "f16" && m[8] == "f16" && !bf16;
    if (m[6] != m[7] || !(bf16 || m[6] == "f16") || !(f32 || f16))
        refuse(i, program, "types ." + m[5] + "." + m[6] + "." + m[7] + "." + m[8] + " are not emulated");
    op.imm[slot_depth] = k16 ? 16 : 8;
    op.imm[slot_bf16] = bf16;
    op.imm[slot_half_result] = f16;
    int accumulators = f16 ? 2 : 4;
    add_vector(i, program, op, i.operands[0], accumulators);
    add_vector(i, program, op, i.operands[1], op.imm[slot_depth] / 4);
    add_vector(i, program, op, i.operands[2], op.imm[slot_depth] / 8);
    add_vector(i, program, op, i.operands[3], accumulators);
    op.run = run_mma;
}

}  // namespace

void add_matrix(DecoderTable& table)
{
    table.by_opcode["ldmatrix"] = decode_shared_matrix;
    table.by_opcode["stmatrix"] = decode_shared_matrix;
    table.by_opcode["movmatrix"] = decode_movmatrix;
    table.by_opcode["mma"] = decode_mma;
}

}  // namespace emu
