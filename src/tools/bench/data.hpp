// The numbers that are multiplied, and where they lie.
#pragma once

#include "src/tools/bench/product.hpp"
#include "src/tools/support/memory.hpp"
#include "src/tools/support/number.hpp"

#include <vector>

namespace hg::bench {

// Normal random numbers of one type, to be repeated.
class Numbers {
public:
    static constexpr int64_t period = 1048573;  // prime: the lines of a matrix start at different numbers

    explicit Numbers(hgemm_type_t type);
    const uint16_t* bits() const { return bits_.data(); }
    const float* values() const { return values_.data(); }

private:
    std::vector<uint16_t> bits_;
    std::vector<float> values_;
};

// What one call reads and writes; null is what its output does without. Element i of an operand with phase
// f is number (f + i) modulo the period, so that a reference can be computed without reading it back.
struct Operands {
    static constexpr int64_t guard = 4096;  // elements before and behind D and aux that belong to nobody

    const uint16_t *a, *b, *bias;
    void *d, *aux;
    int64_t phase_a, phase_b, phase_bias;
};

// Memory for the operands of one product after the other. The inputs are intervals of one long run of
// numbers that is written once, so that a new product costs nothing.
class Arena {
public:
    Arena(test::Memory& memory, hgemm_type_t type) : memory_(memory), numbers_(type) {}

    const Numbers& numbers() const { return numbers_; }
    test::Memory& memory() { return memory_; }
    // `count` sets; what an earlier call returned is gone. A D that is read begins as zeros.
    std::vector<Operands> operands(const Product& product, int count);

private:
    void hold(int64_t inputs, size_t output_bytes);

    test::Memory& memory_;
    Numbers numbers_;
    test::Block inputs_, outputs_;
};

// So many sets that none is still in a cache of `l2_bytes` when its turn comes; at most `most`, and what
// fits into `free_bytes`.
int rotating_sets(const Product& product, int64_t l2_bytes, size_t free_bytes, int most);

}  // namespace hg::bench
