// Floating-point arithmetic (ISA 9.7.3 to 9.7.5). Everything is correctly rounded; the .approx forms are
// too, from the host's libm, where the hardware may differ in the last bits.
#include "numerics/floats.hpp"
#include "ops/arithmetic.hpp"

#include <bit>
#include <cfenv>
#include <cmath>

namespace emu {
namespace {

// One result from up to three values, exact or rounded to odd.
using Function = double (*)(const double*);

bool below(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

double lesser(double a, double b) { return std::isnan(a) ? b : std::isnan(b) || below(a, b) ? a : b; }

double greater(double a, double b) { return std::isnan(a) ? b : std::isnan(b) || below(b, a) ? a : b; }

struct Named {
    const char* opcode;
    int operands;
    Function of;      // for formats narrower than double
    Function native;  // for .f64, in the rounding mode of the moment; null: there is no such form
};

constexpr Named functions[] = {
    {"add", 2, [](const double* v) { return add_odd(v[0], v[1]); },
     [](const double* v) { return v[0] + v[1]; }},
    {"sub", 2, [](const double* v) { return add_odd(v[0], -v[1]); },
     [](const double* v) { return v[0] - v[1]; }},
    {"mul", 2, [](const double* v) { return v[0] * v[1]; }, [](const double* v) { return v[0] * v[1]; }},
    {"fma", 3, [](const double* v) { return add_odd(v[0] * v[1], v[2]); },
     [](const double* v) { return std::fma(v[0], v[1], v[2]); }},
    {"mad", 3, [](const double* v) { return add_odd(v[0] * v[1], v[2]); },
     [](const double* v) { return std::fma(v[0], v[1], v[2]); }},
    {"div", 2, [](const double* v) { return divide_odd(v[0], v[1]); },
     [](const double* v) { return v[0] / v[1]; }},
    {"min", 2, [](const double* v) { return lesser(v[0], v[1]); },
     [](const double* v) { return lesser(v[0], v[1]); }},
    {"max", 2, [](const double* v) { return greater(v[0], v[1]); },
     [](const double* v) { return greater(v[0], v[1]); }},
    {"abs", 1, [](const double* v) { return std::fabs(v[0]); },
     [](const double* v) { return std::fabs(v[0]); }},
    {"neg", 1, [](const double* v) { return -v[0]; }, [](const double* v) { return -v[0]; }},
    {"sqrt", 1, [](const double* v) { return square_root_odd(v[0]); },
     [](const double* v) { return std::sqrt(v[0]); }},
    {"rcp", 1, [](const double* v) { return divide_odd(1, v[0]); },
     [](const double* v) { return 1 / v[0]; }},
    {"rsqrt", 1, [](const double* v) { return 1 / std::sqrt(v[0]); },
     [](const double* v) { return 1 / std::sqrt(v[0]); }},
    {"sin", 1, [](const double* v) { return std::sin(v[0]); }, nullptr},
    {"cos", 1, [](const double* v) { return std::cos(v[0]); }, nullptr},
    {"lg2", 1, [](const double* v) { return std::log2(v[0]); }, nullptr},
    {"ex2", 1, [](const double* v) { return std::exp2(v[0]); }, nullptr},
    {"tanh", 1, [](const double* v) { return std::tanh(v[0]); }, nullptr},
    {"copysign", 2, [](const double* v) { return std::copysign(v[1], v[0]); },
     [](const double* v) { return std::copysign(v[1], v[0]); }},
};

enum FloatFlag {
    float_ftz = 1,
    float_sat = 2,
    float_relu = 4,
    float_nan_wins = 8,
    float_xorsign = 16,
    float_magnitude = 32,
    float_sums = 64,
    float_oob = 128
};

// Op::imm of a float operation.
enum FloatSlot {
    float_function,
    float_rounding,
    float_flags,
    float_format,
    float_source_format,
    float_count
};

bool is_extremum(const Named& f)
{
    const std::string_view name = f.opcode;
    return name == "min" || name == "max";
}

// The value before it is rounded into the result's format.
double compute(const Named& f, int flags, double* v, int count)
{
    if (is_extremum(f)) {
        bool nan = false, negative = false;
        for (int i = 0; i < count; ++i) {
            nan |= std::isnan(v[i]);
            negative ^= std::signbit(v[i]);
            if (flags & float_magnitude)
                v[i] = std::fabs(v[i]);
        }
        double result = v[0];
        for (int i = 1; i < count; ++i) {
            const double pair[2] = {result, v[i]};
            result = f.of(pair);
        }
        if (nan && (flags & float_nan_wins))
            return std::nan("");
        return flags & float_xorsign ? std::copysign(result, negative ? -1.0 : 1.0) : result;
    }
    return f.of(v);
}

// A sum of zero that is rounded downwards is negative unless both addends are positive zeros.
double downward_zero(const Named& f, const double* v)
{
    const double left = f.operands == 3 ? v[0] * v[1] : v[0];
    const double right = f.operands == 3 ? v[2] : f.opcode[0] == 's' ? -v[1] : v[1];
    return std::signbit(left) || std::signbit(right) ? -0.0 : 0.0;
}

uint64_t finish(FormatId id, double value, Rounding rounding, int flags)
{
    if ((flags & float_sat) && !(value > 0))
        return 0;  // NaN too
    if (flags & float_sat)
        value = std::fmin(value, 1.0);
    if ((flags & float_relu) && !std::isnan(value) && !(value > 0))
        return 0;
    // A half that rounding would make normal was subnormal before, and is flushed.
    if ((flags & float_ftz) && id == FormatId::F16 && std::fabs(value) < 0x1p-14)
        value = std::copysign(0.0, value);
    const uint64_t bits = from_double(id, value, rounding);
    return flags & float_ftz ? flush(id, bits) : bits;
}

int element_bits(FormatId id) { return id == FormatId::F32 ? 32 : id == FormatId::F64 ? 64 : 16; }

uint64_t element(uint64_t word, FormatId id, int index)
{
    const int bits = element_bits(id);
    return word >> (index * bits) & (~uint64_t{0} >> (64 - bits));
}

// Any narrow format, any rounding, packed or not. The last operand has the result's format, the others may
// have one of their own (add.f32.bf16).
void narrow(Exec& x)
{
    const auto& imm = x.op.imm;
    const Named& f = functions[imm[float_function]];
    const auto rounding = static_cast<Rounding>(imm[float_rounding]);
    const auto id = static_cast<FormatId>(imm[float_format]),
               source = static_cast<FormatId>(imm[float_source_format]);
    const int sources = static_cast<int>(x.op.args.size()) - 1, flags = imm[float_flags];
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        uint64_t out = 0;
        for (int i = 0; i < imm[float_count]; ++i) {
            double v[3] = {};
            bool zero_out = false;
            for (int k = 0; k < sources; ++k) {
                const FormatId from = k + 1 < sources ? source : id;
                uint64_t bits = element(lane_value(x, x.op.args[k + 1], lane), from, i);
                zero_out |=
                    (flags & float_oob) && k < 2 && bits == 0xffff;  // the NaN that fma.oob treats as zero
                v[k] = to_double(from, flags & float_ftz ? flush(from, bits) : bits);
            }
            double value = zero_out ? 0.0 : compute(f, flags, v, sources);
            if (value == 0 && rounding == Rounding::Down && (flags & float_sums))
                value = downward_zero(f, v);
            out |= finish(id, value, rounding, flags) << (i * element_bits(id));
        }
        set_lane(x, x.op.args[0], lane, out);
    }
}

// The NaN that a double-precision result hands on, as an H200 does: the second operand's before the third's
// before the first's, quieted, and with its sign even from abs, neg and sub. -1: none.
int nan_operand(const Named& f, const double* v)
{
    if (is_extremum(f) && !(std::isnan(v[0]) && std::isnan(v[1])))
        return -1;
    for (const int k : {1, 2, 0})
        if (k < f.operands && std::isnan(v[k]))
            return k;
    return -1;
}

double quiet(double nan) { return std::bit_cast<double>(std::bit_cast<uint64_t>(nan) | quiet_bit); }

void native(Exec& x)
{
    static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    const Named& f = functions[x.op.imm[float_function]];
    // copysign looks at no NaN, and div is a routine of its own: the first operand's NaN comes first.
    const std::string_view name = f.opcode;
    const bool hands_on = name != "copysign" && name != "div";
    std::fesetround(modes[x.op.imm[float_rounding]]);
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(x.lanes >> lane & 1))
            continue;
        double v[3];
        for (int k = 0; k < f.operands; ++k)
            v[k] = std::bit_cast<double>(lane_value(x, x.op.args[k + 1], lane));
        const int nan = hands_on ? nan_operand(f, v) : -1;
        const double value = nan < 0 ? f.native(v) : quiet(v[nan]);
        set_lane(x, x.op.args[0], lane, std::bit_cast<uint64_t>(value));
    }
    std::fesetround(FE_TONEAREST);
}

// The common case: single precision, to nearest, subnormals kept.
struct AddF {
    static float of(float a, float b) { return canonical(a + b); }
};
struct SubF {
    static float of(float a, float b) { return canonical(a - b); }
};
struct MulF {
    static float of(float a, float b) { return canonical(a * b); }
};
struct FmaF {
    static float of(float a, float b, float c) { return canonical(std::fma(a, b, c)); }
};
// Bits alone: the sign of a, the rest of b, whatever they are.
struct CopySignF {
    static uint32_t of(uint32_t a, uint32_t b) { return (a & 0x80000000) | (b & 0x7fffffff); }
};

Handler fast(const std::string& opcode, const ptx::Type& t, int rounding, int flags)
{
    if (t.bits != 32 || t.packed != 1 || rounding != 0 || flags)
        return nullptr;
    if (opcode == "add")
        return binary<AddF, float>;
    if (opcode == "sub")
        return binary<SubF, float>;
    if (opcode == "mul")
        return binary<MulF, float>;
    if (opcode == "copysign")
        return binary<CopySignF, uint32_t>;
    return opcode == "fma" || opcode == "mad" ? ternary<FmaF, float> : nullptr;
}

int take_flags(Modifiers& m)
{
    int flags = 0;
    const std::pair<const char*, int> names[] = {
        {"ftz", float_ftz},       {"sat", float_sat},         {"relu", float_relu}, {"NaN", float_nan_wins},
        {"abs", float_magnitude}, {"xorsign", float_xorsign}, {"oob", float_oob}};
    for (const auto& [name, flag] : names)
        if (m.take(name))
            flags |= flag;
    return flags;
}

void check_form(const ptx::Instruction& instruction, const Program& program, const Named& f,
                const ptx::Type& t, int flags, int rounding)
{
    const bool product = f.operands == 3;
    const bool arithmetic =
        product || std::string_view("add sub mul").find(f.opcode) != std::string_view::npos;
    if ((flags & (float_nan_wins | float_magnitude | float_xorsign) && !is_extremum(f)) ||
        (flags & (float_relu | float_oob) && !product) || (flags & float_sat && !arithmetic))
        refuse(instruction, program, "no such form");
    if (t.bits == 64 && (!f.native || flags & ~float_ftz))
        refuse(instruction, program, "no such form for .f64");
    if (t.bits == 16 && rounding > 0)
        refuse(instruction, program, "half precision rounds to nearest alone");
}

const Named& find(const ptx::Instruction& instruction, const Program& program)
{
    for (const Named& f : functions)
        if (instruction.opcode == f.opcode)
            return f;
    refuse(instruction, program, "no such form for floating types");
}

}  // namespace

void decode_float(const ptx::Instruction& instruction, Program& program, Op& op)
{
    const Named& f = find(instruction, program);
    Modifiers m(instruction, program);
    m.take("approx"), m.take("full");
    const int rounding = std::max(0, m.take_one({"rn", "rz", "rm", "rp"}));
    const bool sign_only = instruction.opcode == "abs";
    const int flags = sign_only ? m.take("ftz") ? float_ftz : 0 : take_flags(m);
    const ptx::Type t = m.type();
    ptx::Type source = t;
    m.take_type(source);
    m.done();
    if (!is_floating(t) || !is_floating(source))
        refuse(instruction, program, "no such form");
    check_form(instruction, program, f, t, flags, rounding);
    const bool mixed = source.kind != t.kind || source.bits != t.bits;
    const std::string& name = instruction.opcode;
    if (mixed && (t.bits != 32 || t.packed > 1 || source.bits != 16 || source.packed > 1 ||
                  !(name == "add" || name == "sub" || name == "fma")))
        refuse(instruction, program, "no such form");
    const int sources = is_extremum(f) && instruction.operands.size() == 4 ? 3 : f.operands;
    expect_operands(instruction, program, sources + 1, sources + 1);
    for (int i = 0; i <= sources; ++i)
        op.args.push_back(
            decode_arg(instruction.operands[i], program, instruction, i == 0 || i == sources ? t : source));
    op.imm[float_function] = static_cast<int32_t>(&f - functions);
    op.imm[float_rounding] = rounding;
    const bool adds = f.operands == 3 || name == "add" || name == "sub";
    op.imm[float_flags] = flags | (adds ? float_sums : 0);
    op.imm[float_format] = static_cast<int32_t>(format_of(t));
    op.imm[float_source_format] = static_cast<int32_t>(format_of(source));
    op.imm[float_count] = t.packed;
    op.run = mixed ? nullptr : fast(name, t, rounding, flags);
    if (!op.run)
        op.run = t.bits == 64 ? native : narrow;
}

void add_float(DecoderTable& table)
{
    for (const char* opcode :
         {"fma", "sqrt", "rcp", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "copysign"})
        table.by_opcode[opcode] = decode_float;
}

}  // namespace emu
