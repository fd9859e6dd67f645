#include "ops/matrix_form.hpp"

#include "ops/lanes.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <deque>

namespace emu {

namespace {

std::deque<MatrixForm>& forms()
{
    static auto* const all = new std::deque<MatrixForm>;
    return *all;
}

// A fragment as rows of elements, each in the low bits.
std::vector<uint32_t> take_rows(Exec& x, const Arg* registers, int rows, int depth,
                                const MatrixElement& element)
{
    std::vector<uint32_t> out(rows * depth);
    const int per_register = 32 / element.bits,
              count = MatrixForm::fragment_registers(rows, depth, element.bits);
    Lanes<uint32_t> words;
    for (int reg = 0; reg < count; reg++) {
        load_lanes(x, registers[reg], words);
        const ElementPlace first = fragment_place(rows, per_register, 0, reg, 0);
        for (int lane = 0; lane < warp_lanes; lane++)
            unpack_register(element, words[lane],
                            &out[(first.row + lane / 4) * depth + first.column + lane % 4 * per_register]);
    }
    return out;
}

std::vector<double> take_doubles(Exec& x, const Arg* registers, int rows, int depth)
{
    std::vector<double> out(rows * depth);
    for (int reg = 0; reg < rows * depth / warp_lanes; reg++)
        for (int lane = 0; lane < warp_lanes; lane++) {
            const ElementPlace place = fragment_place(rows, 1, lane, reg, 0);
            out[place.row * depth + place.column] =
                std::bit_cast<double>(lane_value(x, registers[reg], lane));
        }
    return out;
}

// ISA 9.7.14.5.14: each step is a fused multiply-add.
void double_product(Exec& x, const MatrixForm& form, const Arg* d, const Arg* a, const Arg* b, const Arg* c)
{
    const std::vector<double> left = take_doubles(x, a, form.m, form.k),
                              right = take_doubles(x, b, form.n, form.k);
    for (int i = 0; i < form.accumulator_registers(Accumulator::F64); i++)
        for (int lane = 0; lane < warp_lanes; lane++) {
            const ElementPlace place = accumulator_place(form.m, lane, i);
            double sum = std::bit_cast<double>(lane_value(x, c[i], lane));
            for (int k = 0; k < form.k; k++)
                sum = std::fma(left[place.row * form.k + k], right[place.column * form.k + k], sum);
            set_lane(x, d[i], lane, std::bit_cast<uint64_t>(sum));
        }
}

// An f16 accumulator stays what it is where the result is f16 too, and becomes a float otherwise.
std::vector<uint32_t> take_accumulators(Exec& x, const MatrixForm& form, const Arg* c)
{
    std::vector<uint32_t> out(form.m * form.n);
    const bool packed = form.c == Accumulator::F16, widen = packed && form.d != Accumulator::F16;
    Lanes<uint32_t> words;
    for (int i = 0; i < form.m * form.n / warp_lanes; i++) {
        load_lanes(x, c[packed ? i / 2 : i], words);
        const ElementPlace first = accumulator_place(form.m, 0, i);
        for (int lane = 0; lane < warp_lanes; lane++) {
            uint32_t bits = words[lane];
            if (packed)
                bits = bits >> 16 * (i % 2) & 0xffff;
            if (widen)
                bits = std::bit_cast<uint32_t>(half_to_float(static_cast<uint16_t>(bits), FormatId::F16));
            out[(first.row + lane / 4) * form.n + first.column + 2 * (lane % 4)] = bits;
        }
    }
    return out;
}

void put_accumulators(Exec& x, const MatrixForm& form, const Arg* d, const std::vector<uint32_t>& values)
{
    const bool packed = form.d == Accumulator::F16;
    for (int reg = 0; reg < form.accumulator_registers(form.d); reg++) {
        const ElementPlace first = accumulator_place(form.m, 0, packed ? 2 * reg : reg);
        for (int lane = 0; lane < warp_lanes; lane++) {
            const uint32_t* at = &values[(first.row + lane / 4) * form.n + first.column + 2 * (lane % 4)];
            set_lane(x, d[reg], lane, packed ? at[0] | at[1] << 16 : at[0]);
        }
    }
}

}  // namespace

bool parse_accumulator(std::string_view name, Accumulator& accumulator)
{
    constexpr std::string_view names[] = {"f32", "f16", "s32", "f64"};
    for (int i = 0; i < 4; i++)
        if (names[i] == name) {
            accumulator = static_cast<Accumulator>(i);
            return true;
        }
    return false;
}

int remember_form(const MatrixForm& form)
{
    forms().push_back(form);
    return static_cast<int>(forms().size()) - 1;
}

const MatrixForm& matrix_form(const Op& op) { return forms()[op.imm[0]]; }

bool parse_shape(const std::string& text, MatrixForm& form)
{
    int used = 0;
    return std::sscanf(text.c_str(), "m%dn%dk%d%n", &form.m, &form.n, &form.k, &used) == 3 &&
           used == static_cast<int>(text.size());
}

void check_form(const ptx::Instruction& i, const Program& program, const MatrixForm& form)
{
    const auto kind = form.a.kind;
    const bool half = form.c == Accumulator::F16 || form.d == Accumulator::F16;
    const bool floats = kind == ElementKind::Float && form.c != Accumulator::S32 &&
                        form.c != Accumulator::F64 && form.d != Accumulator::S32 &&
                        form.d != Accumulator::F64;
    const bool good = form.d == form.c || (floats && form.d == Accumulator::F32);
    const bool matches = kind == ElementKind::Double  ? form.c == Accumulator::F64
                         : kind == ElementKind::Float ? floats
                                                      : form.c == Accumulator::S32;
    const bool may_be_half = form.a.format != FormatId::Bf16 && form.a.format != FormatId::Tf32;
    const bool mixed = form.a.bits == 8 || form.a.bits == 4;
    if (!good || !matches || form.b.kind != kind || form.a.bits != form.b.bits || (half && !may_be_half) ||
        (!mixed && form.a.format != form.b.format))
        refuse(i, program, "these types do not go together");
    if (form.saturate && kind != ElementKind::Integer)
        refuse(i, program, ".satfinite is for integers");
}

void add_vector(const ptx::Instruction& i, const Program& program, Op& op, const ptx::Operand& operand,
                int count, int bits)
{
    const bool vector = operand.form == ptx::Operand::Form::Vector;
    if (static_cast<int>(vector ? operand.parts.size() : 1) != count)
        refuse(i, program, "a vector of " + std::to_string(count) + " is expected");
    for (int part = 0; part < count; part++)
        op.args.push_back(decode_arg(vector ? operand.parts[part] : operand, program, i,
                                     {ptx::Kind::Bits, static_cast<uint8_t>(bits), 1}));
}

void warp_product(Exec& x, const MatrixForm& form, const Arg* d, const Arg* a, const Arg* b, const Arg* c,
                  const MatrixScales& scales)
{
    x.machine.statistics.mma_flops += 2ull * form.m * form.n * form.k;
    if (form.a.kind == ElementKind::Double)
        return double_product(x, form, d, a, b, c);
    const std::vector<uint32_t> left = take_rows(x, a, form.m, form.k, form.a),
                                right = take_rows(x, b, form.n, form.k, form.b);
    std::vector<uint32_t> sums = take_accumulators(x, form, c);
    const Config& config = x.machine.config;
    if (form.scale_vector > 1) {
        const ScaledShape shape{form.m, form.n, form.k, form.k / form.scale_vector, form.ue4m3};
        multiply_accumulate(shape, left.data(), right.data(), scales.a.data(), scales.b.data(),
                            sums.data());
    } else if (form.scale_vector == 1) {
        const MatrixShape shape{form.m,        form.n, form.k,          form.a.format,
                                form.b.format, false,  scales.a.data(), scales.b.data()};
        multiply_accumulate(tensor_core(config, MatrixUnit::Mma, form.a.format), shape, left.data(),
                            right.data(), sums.data());
    } else {
        const ElementProduct product{form.m,        form.n,      form.k,
                                     form.a,        form.b,      form.d == Accumulator::F16,
                                     form.saturate, form.combine};
        multiply_accumulate(config, MatrixUnit::Mma, product, left.data(), right.data(), sums.data());
    }
    put_accumulators(x, form, d, sums);
}

}  // namespace emu
