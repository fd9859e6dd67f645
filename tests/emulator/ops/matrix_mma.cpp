// mma.sync (ISA 9.7.14.5.14), dense, with and without scales of blocks.
#include "core/values.hpp"
#include "ops/matrix_form.hpp"

#include <algorithm>

namespace emu {

namespace {

// Threads of each quad that give the scales, and which byte of theirs: Op::args from here on.
struct ScaleOperands {
    Arg data, byte, thread;
};

// ISA 9.7.14.3: row g of A has its scales in lanes 4 g + 2 thread (rows 0-7) and the lane after (8-15),
// column g of B in lane 4 g + thread.
std::vector<uint8_t> take_scales(Exec& x, const ScaleOperands& from, int rows, int count, bool pairs)
{
    std::vector<uint8_t> scales;
    const auto byte = static_cast<int>(lane_value(x, from.byte, 0)),
               thread = static_cast<int>(lane_value(x, from.thread, 0));
    if (byte + count > 4 || byte % count || thread > (pairs ? 1 : 3))
        x.fault("mma-scale", "byte-id " + std::to_string(byte) + ", thread-id " + std::to_string(thread) +
                                 " do not select scales");
    for (int row = 0; row < rows; row++) {
        const int lane = row % 8 * 4 + (pairs ? 2 * thread + row / 8 : thread);
        const auto word = static_cast<uint32_t>(lane_value(x, from.data, lane));
        for (int i = 0; i < count; i++)
            scales.push_back(static_cast<uint8_t>(word >> 8 * (byte + i)));
    }
    return scales;
}

void run_mma(Exec& x)
{
    x.require_convergence();
    const MatrixForm& form = matrix_form(x.op);
    const Arg *d = x.op.args.data(), *a = d + form.accumulator_registers(form.d),
              *b = a + form.a_registers(), *c = b + form.b_registers();
    MatrixScales scales;
    if (form.scale_vector) {
        const Arg* s = c + form.accumulator_registers(form.c);
        scales.a = take_scales(x, {s[0], s[1], s[2]}, form.m, form.scale_vector, true);
        scales.b = take_scales(x, {s[3], s[4], s[5]}, form.n, form.scale_vector, false);
    }
    warp_product(x, form, d, a, b, c, scales);
}

bool shape_exists(const MatrixForm& f)
{
    const int bits = f.a.bits;
    if (f.n != 8 || (f.m != 16 && f.m != 8))
        return false;
    switch (f.a.kind) {
    case ElementKind::Double: return f.k == 4 || (f.m == 16 && (f.k == 8 || f.k == 16));
    case ElementKind::Float: return f.m == 16 && (f.k * bits == 256 || f.k * bits == 128);
    default: return f.k * bits == 128 || (f.m == 16 && f.k * bits == 256);
    }
}

// .kind::mx... with its scales.
void take_scaling(const ptx::Instruction& i, const Program& program, Modifiers& m, MatrixForm& form)
{
    const int kind = m.take_one({"kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
    const int vector = m.take_one({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"});
    const bool scaled = m.take("block_scale");
    if (scaled != (kind >= 0) || (vector >= 0 && !scaled))
        refuse(i, program, ".block_scale needs a kind with scales, and the reverse");
    if (!scaled)
        return;
    form.scale_vector = vector >= 0 ? 1 << vector : kind == 0 ? 1 : kind == 1 ? 2 : 0;
    form.ue4m3 = m.take("ue4m3");
    if (!form.ue4m3 && !m.take("ue8m0"))
        refuse(i, program, "the type of the scales is missing");
    const bool good = kind == 0   ? form.scale_vector == 1 && !form.ue4m3
                      : kind == 1 ? form.scale_vector == 2 && !form.ue4m3
                                  : form.scale_vector == 4 || (form.scale_vector == 2 && !form.ue4m3);
    if (!good)
        refuse(i, program, "no such scales for this kind");
}

MatrixForm take_form(const ptx::Instruction& i, const Program& program)
{
    Modifiers m(i, program);
    MatrixForm form;
    if (!m.take("sync") || !m.take("aligned") || !m.take("row") || !m.take("col"))
        refuse(i, program, "only mma.sync.aligned with .row.col is emulated");
    const bool packed = i.has("kind::mxf4") || i.has("kind::mxf4nvf4");
    take_scaling(i, program, m, form);
    m.take("kind::f8f6f4");
    form.saturate = m.take("satfinite");
    const int combine = m.take_one({"xor", "and"});
    if ((combine >= 0) != m.take("popc") || (combine >= 0) != i.has("b1"))
        refuse(i, program, "single bits take .xor.popc or .and.popc");
    form.combine = combine == 0   ? IntegerShape::Xor
                   : combine == 1 ? IntegerShape::And
                                  : IntegerShape::Multiply;
    std::vector<std::string> types;
    for (const std::string& word : i.modifiers) {
        MatrixElement element;
        Accumulator accumulator;
        if (parse_matrix_element(word, packed, element) || parse_accumulator(word, accumulator)) {
            types.push_back(word);
            m.take(word);
        } else if (parse_shape(word, form)) {
            m.take(word);
        }
    }
    if (types.size() == 4 && types[0] == "f64")
        m.take("rn");
    m.done();
    if (types.size() != 4 || !parse_accumulator(types[0], form.d) || !parse_accumulator(types[3], form.c) ||
        !parse_matrix_element(types[1], packed, form.a) || !parse_matrix_element(types[2], packed, form.b))
        refuse(i, program, "four types are expected");
    check_form(i, program, form);
    if (!shape_exists(form) || form.d != form.c)
        refuse(i, program, "no such shape with these types");
    return form;
}

void add_scale(const ptx::Instruction& i, const Program& program, Op& op, const ptx::Operand& data,
               const ptx::Operand& selector)
{
    add_vector(i, program, op, data, 1, 32);
    if (selector.form != ptx::Operand::Form::Vector || selector.parts.size() != 2)
        refuse(i, program, "{byte-id, thread-id} are expected");
    for (const ptx::Operand& part : selector.parts)
        op.args.push_back(decode_arg(part, program, i, {ptx::Kind::Unsigned, 16, 1}));
}

void decode_mma(const ptx::Instruction& i, Program& program, Op& op)
{
    const MatrixForm form = take_form(i, program);
    expect_operands(i, program, form.scale_vector ? 8 : 4, form.scale_vector ? 8 : 4);
    const int word = form.a.kind == ElementKind::Double ? 64 : 32;
    add_vector(i, program, op, i.operands[0], form.accumulator_registers(form.d), word);
    add_vector(i, program, op, i.operands[1], form.a_registers(), word);
    add_vector(i, program, op, i.operands[2], form.b_registers(), word);
    add_vector(i, program, op, i.operands[3], form.accumulator_registers(form.c), word);
    if (form.scale_vector) {
        add_scale(i, program, op, i.operands[4], i.operands[5]);
        add_scale(i, program, op, i.operands[6], i.operands[7]);
    }
    op.imm[0] = remember_form(form);
    op.run = run_mma;
}

}  // namespace

void add_mma(DecoderTable& table) { table.by_opcode["mma"] = decode_mma; }

}  // namespace emu
