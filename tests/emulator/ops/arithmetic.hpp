// Parts of the arithmetic family that meet in one opcode.
#pragma once

#include "ops/lanes.hpp"

namespace emu {

// add, sub, mul, ... of one kind of type.
void decode_integer(const ptx::Instruction&, Program&, Op&);
void decode_carry(const ptx::Instruction&, Program&, Op&);    // with .cc, addc, subc, madc
void decode_product(const ptx::Instruction&, Program&, Op&);  // mul, mad of integers
void decode_float(const ptx::Instruction&, Program&, Op&);
// cvt with packed fp8, fp6, fp4 or ue8m0, and cvt.pack; false: another cvt.
bool decode_small_conversion(const ptx::Instruction&, Program&, Op&);

void add_integer(DecoderTable&);     // arithmetic_integer.cpp: rem
void add_product(DecoderTable&);     // arithmetic_product.cpp: mul24, mad24, sad, dp4a, dp2a
void add_carry(DecoderTable&);       // arithmetic_carry.cpp
void add_logic(DecoderTable&);       // arithmetic_logic.cpp: and ... lop3, shifts
void add_bits(DecoderTable&);        // arithmetic_bits.cpp: bit fields, counts, prmt
void add_float(DecoderTable&);       // arithmetic_float.cpp
void add_compare(DecoderTable&);     // arithmetic_compare.cpp: setp, set, selp, slct, testp
void add_move(DecoderTable&);        // arithmetic_move.cpp: mov
void add_conversion(DecoderTable&);  // arithmetic_convert.cpp: cvt

}  // namespace emu
