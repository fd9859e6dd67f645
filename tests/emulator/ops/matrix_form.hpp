// What mma and wmma share: the types of a product, its fragments in registers, and the product itself.
#pragma once

#include "core/modifiers.hpp"
#include "core/state.hpp"
#include "ops/matrix_element.hpp"

#include <vector>

namespace emu {

enum class Accumulator : uint8_t { F32, F16, S32, F64 };
bool parse_accumulator(std::string_view name, Accumulator& accumulator);

struct MatrixForm {
    int m = 0, n = 0, k = 0;
    MatrixElement a, b;
    Accumulator c = Accumulator::F32, d = Accumulator::F32;
    bool saturate = false;
    IntegerShape::Combine combine = IntegerShape::Multiply;  // of single bits
    int scale_vector = 0;                                    // scales a row of A has; 0: none
    bool ue4m3 = false;                                      // type of the scales; else ue8m0

    int a_registers() const { return fragment_registers(m, k, a.bits); }
    int b_registers() const { return fragment_registers(n, k, b.bits); }
    int accumulator_registers(Accumulator type) const
    {
        return m * n / warp_lanes / (type == Accumulator::F16 ? 2 : 1);
    }
    static int fragment_registers(int rows, int depth, int bits)
    {
        return rows * depth * bits / (warp_lanes * std::max(32, bits));
    }
};

// Forms are kept for ever; Op::imm[0] is the number of one.
int remember_form(const MatrixForm& form);
const MatrixForm& matrix_form(const Op& op);

// "m16n8k16"
bool parse_shape(const std::string& text, MatrixForm& form);
// The accumulators and elements must go together; the product exists then.
void check_form(const ptx::Instruction& i, const Program& program, const MatrixForm& form);

// Appends the registers of a vector to Op::args; one register needs no braces.
void add_vector(const ptx::Instruction& i, const Program& program, Op& op, const ptx::Operand& operand,
                int count, int bits);

// Where element `index` of register `reg` of a lane stands in a fragment of `rows`: 8 rows and 4 lanes a
// register.
struct ElementPlace {
    int row, column;
};
inline ElementPlace fragment_place(int rows, int per_register, int lane, int reg, int index)
{
    const int row_blocks = rows / 8;
    return {lane / 4 + 8 * (reg % row_blocks), (lane % 4 + 4 * (reg / row_blocks)) * per_register + index};
}
// The same for accumulator `index`: pairs along a row.
inline ElementPlace accumulator_place(int rows, int lane, int index)
{
    const int pair = index / 2, row_blocks = rows / 8;
    return {lane / 4 + 8 * (pair % row_blocks), 2 * (lane % 4) + index % 2 + 8 * (pair / row_blocks)};
}

// Scales of rows of A and columns of B, scale_vector each.
struct MatrixScales {
    std::vector<uint8_t> a, b;
};
// d = a b + c for a warp, from and to registers.
void warp_product(Exec& x, const MatrixForm& form, const Arg* d, const Arg* a, const Arg* b, const Arg* c,
                  const MatrixScales& scales);

void add_mma(DecoderTable&);   // matrix_mma.cpp
void add_wmma(DecoderTable&);  // matrix_wmma.cpp

}  // namespace emu
