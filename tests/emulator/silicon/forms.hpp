// Kernels of plain instructions: every thread applies every form to operands of its own and stores the
// results.
#pragma once

#include "kernel.hpp"

#include <string>

namespace emu::silicon {

// Instructions with $d0 ... for results, $a0 ... for operands, $h0 $r0 $w0 $p0 ... for further registers of
// 16, 32, 64 bits and predicates. Results and operands are letters of random.hpp.
struct Form {
    std::string text, results, operands;
};

// "opcode d, a, b;" with a tail before the semicolon, as ", 0x96".
Form plain(const std::string& opcode, const std::string& results, const std::string& operands,
           const std::string& tail = "");

// The slice of a list of forms that belongs to a seed; slices of all seeds cover the list evenly.
Kernel form_kernel(Random& random, const std::vector<Form>& forms, uint32_t seed, uint32_t seeds);

constexpr uint32_t forms_a_kernel = 12;
uint32_t kernels_for(const std::vector<Form>& forms);

const std::vector<Form>& integer_forms();
const std::vector<Form>& bit_forms();
const std::vector<Form>& integer_conversion_forms();
const std::vector<Form>& float_conversion_forms();
const std::vector<Form>& single_forms();
const std::vector<Form>& double_forms();
const std::vector<Form>& half_forms();
const std::vector<Form>& compare_forms();
const std::vector<Form>& warp_forms();

}  // namespace emu::silicon
