// Values of operands, lane by lane: in a header, because interpreting consists of them.
#pragma once

#include "core/special.hpp"
#include "core/state.hpp"

namespace emu {

// Value of an argument in a lane, zero-extended; for floating immediates the bits of the type in use.
inline uint64_t lane_value(Exec& x, const Arg& arg, int lane)
{
    switch (arg.form) {
    case Arg::Form::Constant: return arg.constant;
    case Arg::Form::Special: return special_value(x, arg, lane);
    case Arg::Form::None: return 0;
    case Arg::Form::Register: break;
    }
    switch (arg.width) {
    case 0: return ((x.predicate(arg.reg) >> lane & 1) != 0) != arg.negated;
    case 4: return x.row32(arg.reg)[lane];
    case 8: return x.row64(arg.reg)[lane];
    default: return x.row64(arg.reg)[2 * lane];
    }
}

// Write a lane's value (masked to the register's width).
inline void set_lane(Exec& x, const Arg& arg, int lane, uint64_t value)
{
    if (arg.form != Arg::Form::Register)
        return;
    switch (arg.width) {
    case 0: {
        const Mask bit = Mask{1} << lane;
        x.predicate(arg.reg) = value ? x.predicate(arg.reg) | bit : x.predicate(arg.reg) & ~bit;
        break;
    }
    case 4:
        x.row32(arg.reg)[lane] =
            static_cast<uint32_t>(arg.bits >= 32 ? value : value & ((uint64_t{1} << arg.bits) - 1));
        break;
    case 8: x.row64(arg.reg)[lane] = value; break;
    default: x.row64(arg.reg)[2 * lane] = value, x.row64(arg.reg)[2 * lane + 1] = 0;
    }
}

// 32-bit bases wrap around.
inline uint64_t address_of(Exec& x, const AddressArg& address, int lane)
{
    const uint64_t sum = lane_value(x, address.base, lane) + address.offset;
    return address.base.form == Arg::Form::Register && address.base.width == 4 ? static_cast<uint32_t>(sum)
                                                                               : sum;
}

}  // namespace emu
