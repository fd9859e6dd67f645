// Matrix fragments between shared memory and registers: ldmatrix, stmatrix and movmatrix.
#include "core/values.hpp"
#include "ops/async.hpp"
#include "ops/bank_passes.hpp"
#include "ops/matrix_form.hpp"

#include <bit>

namespace emu {

namespace {

// Fragment of an 8 x 8 matrix: lane l holds elements (l / 4, 2 (l % 4)) and its right neighbour.
using Matrix8x8 = uint16_t[8][8];

void put_fragment(Exec& x, const Arg& to, const Matrix8x8& tile, bool transposed)
{
    for (int lane = 0; lane < warp_lanes; lane++) {
        int row = lane / 4, column = 2 * (lane % 4);
        uint32_t low = transposed ? tile[column][row] : tile[row][column];
        uint32_t high = transposed ? tile[column + 1][row] : tile[row][column + 1];
        set_lane(x, to, lane, low | high << 16);
    }
}

void take_fragment(Exec& x, const Arg& from, Matrix8x8& tile, bool transposed)
{
    for (int lane = 0; lane < warp_lanes; lane++) {
        int row = lane / 4, column = 2 * (lane % 4);
        auto pair = static_cast<uint32_t>(lane_value(x, from, lane));
        (transposed ? tile[column][row] : tile[row][column]) = static_cast<uint16_t>(pair);
        (transposed ? tile[column + 1][row] : tile[row][column + 1]) = static_cast<uint16_t>(pair >> 16);
    }
}

// ---- ldmatrix, stmatrix -----------------------------------------------------------------------------
enum LdmatrixSlot { ldmatrix_count, ldmatrix_transposed, ldmatrix_space, ldmatrix_width };

Location matrix_row(Exec& x, int lane)
{
    auto space = static_cast<ptx::Space>(x.op.imm[ldmatrix_space]);
    return shared_location(x, space, address_of(x, x.op.address, lane), 16, 16, lane);
}

// The rows that the lanes name. All work together: their accesses are those of the warp as a whole.
void touch_rows(Exec& x, Location (&rows)[warp_lanes], Access kind)
{
    const int count = x.op.imm[ldmatrix_count] * 8;
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
    Matrix8x8 tiles[4];
    Location rows[warp_lanes];
    touch_rows(x, rows, Access::Read);
    for (int i = 0; i < x.op.imm[ldmatrix_count] * 8; i++)
        std::memcpy(tiles[i / 8][i % 8], rows[i].bytes, 16);
    for (int i = 0; i < x.op.imm[ldmatrix_count]; i++)
        put_fragment(x, x.op.args[i], tiles[i], x.op.imm[ldmatrix_transposed]);
}

// Rows of 16 elements of 4 or 6 bits, without gaps, become bytes; a lane has four of a row.
void run_ldmatrix_unpacking(Exec& x)
{
    x.require_convergence();
    MatrixElement element;
    element.width = static_cast<uint8_t>(x.op.imm[ldmatrix_width]);
    element.dense = true;
    Location rows[warp_lanes];
    touch_rows(x, rows, Access::Read);
    for (int i = 0; i < x.op.imm[ldmatrix_count]; i++)
        for (int row = 0; row < 8; row++) {
            uint32_t codes[16];
            unpack(element, rows[8 * i + row].bytes, 16, codes);
            for (int lane = 0; lane < 4; lane++) {
                const uint32_t* four = codes + 4 * lane;
                set_lane(x, x.op.args[i], 4 * row + lane,
                         four[0] | four[1] << 8 | four[2] << 16 | four[3] << 24);
            }
        }
}

void run_stmatrix(Exec& x)
{
    x.require_convergence();
    Matrix8x8 tiles[4];
    for (int i = 0; i < x.op.imm[ldmatrix_count]; i++)
        take_fragment(x, x.op.args[i], tiles[i], x.op.imm[ldmatrix_transposed]);
    Location rows[warp_lanes];
    touch_rows(x, rows, Access::Write);
    for (int i = 0; i < x.op.imm[ldmatrix_count] * 8; i++)
        std::memcpy(rows[i].bytes, tiles[i / 8][i % 8], 16);
}

void decode_shared_matrix(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"sync", "aligned", "m8n8", "m8n16", "x1", "x2", "x4", "trans", "shared", "shared::cta",
                     "b16", "b8x16", "b4x16_p64", "b6x16_p32"});
    bool load = i.opcode == "ldmatrix";
    bool halves = i.has("m8n8") && i.has("b16") && !i.has("b8x16");
    bool packed = load && i.has("m8n16") && i.has("b8x16") && i.has("b4x16_p64") != i.has("b6x16_p32") &&
                  !i.has("trans");
    if (!i.has("sync") || !i.has("aligned") || halves == packed)
        refuse(i, program, i.opcode + " needs .sync.aligned, and .m8n8.b16 or .m8n16 that unpacks");
    expect_operands(i, program, 2, 2);
    op.imm[ldmatrix_width] = i.has("b4x16_p64") ? 4 : 6;
    const ptx::Operand& registers = i.operands[load ? 0 : 1];
    op.imm[ldmatrix_count] = i.has("x4") ? 4 : i.has("x2") ? 2 : 1;
    op.imm[ldmatrix_transposed] = i.has("trans");
    op.imm[ldmatrix_space] = static_cast<int>(space_of(i));
    op.address = decode_address(i.operands[load ? 1 : 0], program);
    bool vector = registers.form == ptx::Operand::Form::Vector;
    size_t count = vector ? registers.parts.size() : 1;
    if (static_cast<int>(count) != op.imm[ldmatrix_count] || i.has("x1") + i.has("x2") + i.has("x4") != 1)
        refuse(i, program, "the number of registers does not match .x1, .x2 or .x4");
    for (size_t part = 0; part < count; part++)
        op.args.push_back(
            decode_arg(vector ? registers.parts[part] : registers, program, i, {ptx::Kind::Bits, 32, 1}));
    op.run = packed ? run_ldmatrix_unpacking : load ? run_ldmatrix : run_stmatrix;
}

void run_movmatrix(Exec& x)
{
    x.require_convergence();
    Matrix8x8 tile;
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

}  // namespace

void add_matrix(DecoderTable& table)
{
    table.by_opcode["ldmatrix"] = decode_shared_matrix;
    table.by_opcode["stmatrix"] = decode_shared_matrix;
    table.by_opcode["movmatrix"] = decode_movmatrix;
    add_mma(table);
    add_wmma(table);
}

}  // namespace emu
