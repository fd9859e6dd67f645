// Runs one instruction on many operand values.
#pragma once

#include "test/run_ptx.hpp"

#include <random>

namespace emu {

// Values of one operand, or results, one a thread.
using Values = std::vector<uint64_t>;

// "add.s32 d, a, b;" with registers d, a, b, c, e of these widths (1 for predicates) and two predicates p,
// q that are true in odd threads and in every third. The results in d.
Values evaluate(const std::string& text, const std::vector<int>& widths,
                const std::vector<Values>& operands, int cc = 100);

// Corner cases of a width and random values after them.
Values interesting(int bits, size_t count, uint64_t seed);
Values interesting_floats(int bits, size_t count, uint64_t seed);  // of f16, bf16 (-16), f32, f64

// "test.ptx:7: " if `text` starts in line 7 of the module.
std::string place_of(const std::string& module, const std::string& text);

// All pairs of two lists.
void cross(const Values& a, const Values& b, Values& all_a, Values& all_b);

}  // namespace emu
