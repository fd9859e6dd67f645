// A warp's worth of values: from operands into arrays, through a function, into registers.
#pragma once

#include "core/modifiers.hpp"
#include "core/state.hpp"
#include "core/values.hpp"

#include <cstring>
#include <type_traits>

namespace emu {

template <class T>
struct Lanes {
    alignas(64) T v[warp_lanes];
    T& operator[](int lane) { return v[lane]; }
    const T& operator[](int lane) const { return v[lane]; }
};

template <class T>
using Raw = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
void load_lanes(Exec& x, const Arg& arg, Lanes<T>& out)
{
    using U = Raw<T>;
    U* raw = reinterpret_cast<U*>(out.v);
    if (arg.form == Arg::Form::Register && arg.width == sizeof(T)) {
        std::memcpy(raw, x.warp.registers.data() + arg.reg, sizeof out.v);
    } else if (arg.form == Arg::Form::Register && arg.width == 4 && sizeof(T) < 4) {
        const uint32_t* row = x.row32(arg.reg);
        for (int lane = 0; lane < warp_lanes; ++lane)
            raw[lane] = static_cast<U>(row[lane]);
    } else if (arg.form == Arg::Form::Constant) {
        for (int lane = 0; lane < warp_lanes; ++lane)
            raw[lane] = static_cast<U>(arg.constant);
    } else {
        for (int lane = 0; lane < warp_lanes; ++lane)
            raw[lane] = static_cast<U>(lane_value(x, arg, lane));
    }
}

template <class T>
void store_lanes(Exec& x, const Arg& arg, const Lanes<T>& values)
{
    using U = Raw<T>;
    const U* raw = reinterpret_cast<const U*>(values.v);
    if (arg.form != Arg::Form::Register)
        return;
    if (arg.width != std::max<size_t>(4, sizeof(T)) || arg.bits < 8 * sizeof(T)) {
        for (int lane = 0; lane < warp_lanes; ++lane)
            if (x.lanes >> lane & 1)
                set_lane(x, arg, lane, raw[lane]);
        return;
    }
    using Row = std::conditional_t<(sizeof(T) < 4), uint32_t, U>;
    Row* row = reinterpret_cast<Row*>(x.warp.registers.data() + arg.reg);
    if (x.lanes == all_lanes) {
        for (int lane = 0; lane < warp_lanes; ++lane)
            row[lane] = raw[lane];
        return;
    }
    for (int lane = 0; lane < warp_lanes; ++lane)
        row[lane] = x.lanes >> lane & 1 ? raw[lane] : row[lane];
}

// A predicate operand as a mask: constants and negation included.
inline Mask load_mask(Exec& x, const Arg& arg)
{
    if (arg.form == Arg::Form::Register && arg.width == 0)
        return arg.negated ? ~x.predicate(arg.reg) : x.predicate(arg.reg);
    Mask mask = 0;
    for (int lane = 0; lane < warp_lanes; ++lane)
        mask |= Mask{lane_value(x, arg, lane) != 0} << lane;
    return mask;
}

inline void store_mask(Exec& x, const Arg& arg, Mask values)
{
    if (arg.form == Arg::Form::Register)
        x.predicate(arg.reg) = (x.predicate(arg.reg) & ~x.lanes) | (values & x.lanes);
}

// Handlers: F::of on every lane, of operands 1 ... into operand 0. R is the result's type.
template <class F, class T, class R = T>
void unary(Exec& x)
{
    Lanes<T> a;
    Lanes<R> d;
    load_lanes(x, x.op.args[1], a);
    for (int lane = 0; lane < warp_lanes; ++lane)
        d[lane] = F::of(a[lane]);
    store_lanes(x, x.op.args[0], d);
}

template <class F, class T, class R = T>
void binary(Exec& x)
{
    Lanes<T> a, b;
    Lanes<R> d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    for (int lane = 0; lane < warp_lanes; ++lane)
        d[lane] = F::of(a[lane], b[lane]);
    store_lanes(x, x.op.args[0], d);
}

template <class F, class T, class R = T>
void ternary(Exec& x)
{
    Lanes<T> a, b;
    Lanes<R> c, d;
    load_lanes(x, x.op.args[1], a);
    load_lanes(x, x.op.args[2], b);
    load_lanes(x, x.op.args[3], c);
    for (int lane = 0; lane < warp_lanes; ++lane)
        d[lane] = F::of(a[lane], b[lane], c[lane]);
    store_lanes(x, x.op.args[0], d);
}

// Operands as values of these types, one each.
inline void decode_values(const ptx::Instruction& instruction, Program& program, Op& op,
                          std::initializer_list<ptx::Type> types)
{
    expect_operands(instruction, program, types.size(), types.size());
    size_t i = 0;
    for (const ptx::Type& type : types)
        op.args.push_back(decode_arg(instruction.operands[i++], program, instruction, type));
}

constexpr ptx::Type predicate_type{ptx::Kind::Predicate, 1, 1};
constexpr ptx::Type bits_type(int bits) { return {ptx::Kind::Bits, static_cast<uint8_t>(bits), 1}; }

inline bool is_integer(const ptx::Type& type)
{
    return type.kind == ptx::Kind::Bits || type.kind == ptx::Kind::Unsigned ||
           type.kind == ptx::Kind::Signed;
}

inline bool is_floating(const ptx::Type& type)
{
    return type.kind == ptx::Kind::Float || type.kind == ptx::Kind::Bfloat;
}

}  // namespace emu
