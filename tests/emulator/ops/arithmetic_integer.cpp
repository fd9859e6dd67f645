// Integer sums, quotients and extrema (ISA 9.7.1). Everything wraps; division by zero gives all ones, as
// the hardware does.
#include "ops/arithmetic.hpp"
#include "ops/integers.hpp"

namespace emu {
namespace {

struct AddSat {
    template <class T>
    static T of(T a, T b)
    {
        return saturate<T>(Int128{a} + b);
    }
};
struct SubSat {
    template <class T>
    static T of(T a, T b)
    {
        return saturate<T>(Int128{a} - b);
    }
};
struct Div {
    template <class T>
    static T of(T a, T b)
    {
        if (b == 0)
            return static_cast<T>(~Wrap<T>{0});
        if constexpr (std::is_signed_v<T>)
            if (b == -1)
                return Sub::of(T{0}, a);
        return static_cast<T>(a / b);
    }
};
struct Rem {
    template <class T>
    static T of(T a, T b)
    {
        if (b == 0)
            return a;
        if constexpr (std::is_signed_v<T>)
            if (b == -1)
                return 0;
        return static_cast<T>(a % b);
    }
};
struct Min {
    template <class T>
    static T of(T a, T b)
    {
        return a < b ? a : b;
    }
};
struct Max {
    template <class T>
    static T of(T a, T b)
    {
        return a < b ? b : a;
    }
};
struct MinRelu {
    template <class T>
    static T of(T a, T b)
    {
        return Max::of(Min::of(a, b), T{0});
    }
};
struct MaxRelu {
    template <class T>
    static T of(T a, T b)
    {
        return Max::of(Max::of(a, b), T{0});
    }
};
struct Abs {
    template <class T>
    static T of(T a)
    {
        return a < 0 ? Sub::of(T{0}, a) : a;
    }
};
struct Neg {
    template <class T>
    static T of(T a)
    {
        return Sub::of(T{0}, a);
    }
};

template <class F>
Handler unary_signed(const ptx::Type& t)
{
    switch (t.bits) {
    case 16: return unary<F, int16_t>;
    case 32: return unary<F, int32_t>;
    case 64: return unary<F, int64_t>;
    default: return nullptr;
    }
}

Handler two_operand_handler(const std::string& name, const ptx::Type& t, bool sat, bool relu)
{
    if (name == "add")
        return sat ? binary<AddSat, int32_t> : binary_of<Add>(t);
    if (name == "sub")
        return sat ? binary<SubSat, int32_t> : binary_of<Sub>(t);
    if (name == "min")
        return relu ? binary_of<MinRelu>(t) : binary_of<Min>(t);
    if (name == "max")
        return relu ? binary_of<MaxRelu>(t) : binary_of<Max>(t);
    if (name == "div")
        return binary_of<Div>(t);
    return binary_of<Rem>(t);
}

}  // namespace

void decode_integer(const ptx::Instruction& instruction, Program& program, Op& op)
{
    const std::string& name = instruction.opcode;
    if (name == "mul" || name == "mad")
        return decode_product(instruction, program, op);
    Modifiers m(instruction, program);
    const bool sat = m.take("sat"), relu = m.take("relu");
    const ptx::Type t = m.type();
    m.done();
    const bool is_signed = t.kind == ptx::Kind::Signed;
    const bool pairs = name == "add" || name == "sub" || name == "min" || name == "max" || name == "neg";
    if ((sat && !(is_signed && t.bits == 32 && t.packed == 1 && (name == "add" || name == "sub"))) ||
        (relu && !(is_signed && (name == "min" || name == "max"))) || !is_integer(t) ||
        t.kind == ptx::Kind::Bits || t.packed > 2 || (t.packed == 2 && !pairs))
        refuse(instruction, program, "no such form");
    if (name == "abs" || name == "neg") {
        op.run = !is_signed || t.packed > 1 ? nullptr
                 : name == "abs"            ? unary_signed<Abs>(t)
                                            : unary_signed<Neg>(t);
        return decode_values(instruction, program, op, {t, t});
    }
    op.run = two_operand_handler(name, t, sat, relu);
    decode_values(instruction, program, op, {t, t, t});
}

void add_integer(DecoderTable& table) { table.by_opcode["rem"] = decode_integer; }

}  // namespace emu
