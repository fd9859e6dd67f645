// The numbers that are multiplied, and where they lie.
#pragma once

#include "memory.hpp"
#include "number.hpp"
#include "product.hpp"

#include <vector>

namespace hg::bench {

// Normal random numbers of one type, repeated through every operand. Element i of an operand with phase f
// is number (f + i) modulo `period`, so that a reference can be computed without keeping the operands.
class Numbers {
public:
    static constexpr int64_t period = 1048573;  // prime: the lines of a matrix start at different numbers

    explicit Numbers(hgemm_type_t type);
    const float* values() const { return values_.data(); }
    void fill(test::Memory& memory, void* to, int64_t count, int64_t phase) const;

private:
    std::vector<uint16_t> bits_;
    std::vector<float> values_;
};

// A, B and D of one call, D between two pads. Sets of different index hold different numbers.
struct Operands {
    static constexpr int64_t pad = 4096;  // elements

    Operands(test::Memory& memory, const Numbers& numbers, const Product& product, int64_t index);
    uint16_t* d_ptr() const { return d.get<uint16_t>() + pad; }

    int64_t phase_a, phase_b;
    test::Block a, b, d;
};

}  // namespace hg::bench
