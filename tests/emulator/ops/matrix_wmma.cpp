// wmma (ISA 9.7.14.4): matrices between memory and registers, and their product. Which elements a lane
// holds is not specified; here it is what mma holds. f16 operands have 8 registers in every shape, and
// repeat themselves where fewer would do.
#include "core/values.hpp"
#include "ops/async.hpp"
#include "ops/matrix_form.hpp"
#include "ops/memory.hpp"

#include <cstring>

namespace emu {

namespace {

// A matrix as a fragment of `rows`, in memory as lines along or across its rows.
struct Stored {
    int rows = 0, depth = 0;
    int bits = 0;       // of an element
    bool along = true;  // lines are rows
    bool accumulator = false;
    int lines() const { return along ? rows : depth; }
    int length() const { return along ? depth : rows; }
};

// Op::imm behind the memory slots.
enum WmmaSlot { wmma_rows = memory_first_free, wmma_depth, wmma_flags };
enum WmmaFlag { flag_along = 1, flag_accumulator = 2, flag_stride = 4 };

Stored stored_of(const Op& op)
{
    Stored s;
    s.rows = op.imm[wmma_rows], s.depth = op.imm[wmma_depth];
    s.along = op.imm[wmma_flags] & flag_along;
    s.accumulator = op.imm[wmma_flags] & flag_accumulator;
    s.bits = static_cast<int>(op.wide);
    return s;
}

// One line of the matrix in memory, checked; lines of less than a byte's multiple do not exist.
Location line_at(Exec& x, const Stored& s, int line, Access kind)
{
    const bool given = x.op.imm[wmma_flags] & flag_stride;
    const uint64_t stride = given ? static_cast<uint32_t>(lane_value(x, x.op.args.back(), 0)) : s.length();
    const uint64_t address = address_of(x, x.op.address, 0) + line * stride * s.bits / 8;
    const int bytes = s.length() * s.bits / 8;
    const Location at = resolve(x, static_cast<ptx::Space>(x.op.imm[memory_space]), address, bytes,
                                std::max(1, s.bits / 8), 0);
    if (at.cta)
        x.machine.checker.access(&x, *at.cta, at.offset, bytes, kind, generic_actor(x, -1));
    return at;
}

uint64_t get_bits(const uint8_t* from, int index, int bits)
{
    if (bits < 8)
        return from[index * bits / 8] >> (index * bits % 8) & ((1 << bits) - 1);
    uint64_t value = 0;
    std::memcpy(&value, from + index * bits / 8, bits / 8);
    return value;
}

void run_wmma_load(Exec& x)
{
    x.require_convergence();
    const Stored s = stored_of(x.op);
    std::vector<uint64_t> values(s.rows * s.depth);
    for (int line = 0; line < s.lines(); line++) {
        const Location at = line_at(x, s, line, Access::Read);
        for (int i = 0; i < s.length(); i++)
            values[s.along ? line * s.depth + i : i * s.depth + line] = get_bits(at.bytes, i, s.bits);
    }
    const int registers = static_cast<int>(x.op.args.size()) - (x.op.imm[wmma_flags] & flag_stride ? 1 : 0);
    const int per_register = std::max(1, 32 / s.bits);
    const int needed = std::max(1, s.rows * s.depth / warp_lanes / per_register);
    for (int reg = 0; reg < registers; reg++)
        for (int lane = 0; lane < warp_lanes; lane++) {
            uint64_t word = 0;
            for (int i = 0; i < per_register; i++) {
                const ElementPlace place =
                    s.accumulator ? accumulator_place(s.rows, lane, reg * per_register + i)
                                  : fragment_place(s.rows, per_register, lane, reg % needed, i);
                word |= values[place.row * s.depth + place.column] << i * s.bits;
            }
            set_lane(x, x.op.args[reg], lane, word);
        }
}

void run_wmma_store(Exec& x)
{
    x.require_convergence();
    const Stored s = stored_of(x.op);
    const int per_register = std::max(1, 32 / s.bits);
    std::vector<uint64_t> values(s.rows * s.depth);
    for (int i = 0; i < s.rows * s.depth / warp_lanes; i++)
        for (int lane = 0; lane < warp_lanes; lane++) {
            const ElementPlace place = accumulator_place(s.rows, lane, i);
            values[place.row * s.depth + place.column] =
                lane_value(x, x.op.args[i / per_register], lane) >> i % per_register * s.bits;
        }
    for (int line = 0; line < s.lines(); line++) {
        const Location at = line_at(x, s, line, Access::Write);
        for (int i = 0; i < s.length(); i++)
            std::memcpy(at.bytes + i * s.bits / 8,
                        &values[s.along ? line * s.depth + i : i * s.depth + line], s.bits / 8);
    }
}

bool shape_exists(const MatrixForm& f, const MatrixElement& element)
{
    const int m = f.m, n = f.n;
    const bool wide = (m == 16 && n == 16) || (m == 8 && n == 32) || (m == 32 && n == 8);
    if (element.kind == ElementKind::Double)
        return m == 8 && n == 8 && f.k == 4;
    if (element.bits < 8)
        return m == 8 && n == 8 && f.k * element.bits == 128;
    if (element.bits == 32)
        return m == 16 && n == 16 && f.k == 8;
    return wide && f.k == 16;
}

// The shape, the layout and the type of a load or store; `part` is a, b, c or d.
Stored take_stored(const ptx::Instruction& i, const Program& program, Modifiers& m, char part,
                   MatrixElement& element)
{
    MatrixForm form;
    Stored s;
    std::string type;
    Accumulator accumulator;
    for (const std::string& word : i.modifiers)
        if (parse_shape(word, form)) {
            m.take(word);
        } else if (parse_matrix_element(word, true, element) || parse_accumulator(word, accumulator)) {
            type = word;
            m.take(word);
        }
    const int layout = m.take_one({"row", "col"});
    s.accumulator = part == 'c' || part == 'd';
    s.rows = part == 'b' ? form.n : form.m;
    s.depth = s.accumulator ? form.n : form.k;
    s.along = (layout == 0) != (part == 'b');
    if (layout < 0 || type.empty() || form.m == 0)
        refuse(i, program, "a layout, a shape and a type are expected");
    if (s.accumulator && !parse_accumulator(type, accumulator))
        refuse(i, program, "no accumulators of this type");
    s.bits = !s.accumulator                    ? element.bits
             : accumulator == Accumulator::F16 ? 16
             : accumulator == Accumulator::F64 ? 64
                                               : 32;
    const bool odd_line = s.bits < 8 && !s.along;
    if (odd_line || (!s.accumulator && (!shape_exists(form, element) || type == "f32" || type == "s32")))
        refuse(i, program, "no such shape with this type");
    return s;
}

int register_count(const Stored& s, const MatrixElement& element)
{
    if (!s.accumulator && element.kind == ElementKind::Float && element.format == FormatId::F16)
        return 8;
    return std::max(1, s.rows * s.depth * std::min(s.bits, 32) / (warp_lanes * 32));
}

void decode_memory(const ptx::Instruction& i, Program& program, Op& op)
{
    const bool store = i.modifiers[0] == "store";
    Modifiers m(i, program);
    m.take(i.modifiers[0]);
    const int part = store ? (m.take("d") ? 3 : -1) : m.take_one({"a", "b", "c"});
    if (part < 0 || !m.take("sync"))
        refuse(i, program, "wmma.load takes .a, .b or .c, wmma.store .d, and both .sync");
    m.take("aligned");
    take_space(m, op);
    MatrixElement element;
    const Stored s = take_stored(i, program, m, "abcd"[part], element);
    m.done();
    expect_operands(i, program, 2, 3);
    op.address = decode_address(i.operands[store ? 0 : 1], program);
    add_vector(i, program, op, i.operands[store ? 1 : 0], register_count(s, element), std::max(32, s.bits));
    op.imm[wmma_rows] = s.rows, op.imm[wmma_depth] = s.depth;
    op.imm[wmma_flags] = (s.along ? flag_along : 0) | (s.accumulator ? flag_accumulator : 0);
    op.wide = s.bits;
    if (i.operands.size() == 3) {
        op.imm[wmma_flags] |= flag_stride;
        op.args.push_back(decode_arg(i.operands[2], program, i, {ptx::Kind::Bits, 32, 1}));
    }
    op.run = store ? run_wmma_store : run_wmma_load;
}

// ---- wmma.mma ---------------------------------------------------------------------------------------
void run_wmma(Exec& x)
{
    x.require_convergence();
    const MatrixForm& form = matrix_form(x.op);
    const Arg *d = x.op.args.data(), *a = d + form.accumulator_registers(form.d),
              *b = a + form.a_registers(), *c = b + form.b_registers();
    warp_product(x, form, d, a, b, c, {});
}

MatrixForm wmma_form(const ptx::Instruction& i, const Program& program)
{
    Modifiers m(i, program);
    MatrixForm form;
    m.take("mma");
    if (!m.take("sync") || m.take_one({"row", "col"}) < 0 || m.take_one({"row", "col"}) < 0)
        refuse(i, program, "wmma.mma takes .sync and two layouts");
    m.take("aligned");
    const int combine = m.take_one({"xor", "and"});
    form.combine = combine == 0   ? IntegerShape::Xor
                   : combine == 1 ? IntegerShape::And
                                  : IntegerShape::Multiply;
    if ((combine >= 0) != m.take("popc") || (combine >= 0) != i.has("b1"))
        refuse(i, program, "single bits take .xor.popc or .and.popc");
    form.saturate = m.take("satfinite");
    std::vector<std::string> types;
    for (const std::string& word : i.modifiers) {
        MatrixElement element;
        Accumulator accumulator;
        const bool type = parse_matrix_element(word, true, element) || parse_accumulator(word, accumulator);
        if (type)
            types.push_back(word);
        if (type || parse_shape(word, form))
            m.take(word);
    }
    m.take("rn");
    m.done();
    if (types.size() == 2)
        types.insert(types.begin() + 1, {"f16", "f16"});
    if (types.size() != 4 || !parse_accumulator(types[0], form.d) || !parse_accumulator(types[3], form.c) ||
        !parse_matrix_element(types[1], true, form.a) || !parse_matrix_element(types[2], true, form.b))
        refuse(i, program, "two or four types are expected");
    check_form(i, program, form);
    if (!shape_exists(form, form.a))
        refuse(i, program, "no such shape with these types");
    return form;
}

// The first `used` of a fragment's registers; the rest repeat them.
void add_fragment(const ptx::Instruction& i, const Program& program, Op& op, const ptx::Operand& operand,
                  const MatrixElement& element, int used)
{
    const bool repeats = element.kind == ElementKind::Float && element.format == FormatId::F16;
    add_vector(i, program, op, operand, repeats ? 8 : used, std::max<int>(32, element.bits));
    op.args.resize(op.args.size() - (repeats ? 8 - used : 0));
}

void decode_wmma(const ptx::Instruction& i, Program& program, Op& op)
{
    const MatrixForm form = wmma_form(i, program);
    expect_operands(i, program, 4, 4);
    const int word = form.c == Accumulator::F64 ? 64 : 32;
    add_vector(i, program, op, i.operands[0], form.accumulator_registers(form.d), word);
    add_fragment(i, program, op, i.operands[1], form.a, form.a_registers());
    add_fragment(i, program, op, i.operands[2], form.b, form.b_registers());
    add_vector(i, program, op, i.operands[3], form.accumulator_registers(form.c), word);
    op.imm[0] = remember_form(form);
    op.run = run_wmma;
}

}  // namespace

void add_wmma(DecoderTable& table)
{
    table.by_opcode["wmma.load"] = table.by_opcode["wmma.store"] = decode_memory;
    table.by_opcode["wmma.mma"] = decode_wmma;
}

}  // namespace emu
