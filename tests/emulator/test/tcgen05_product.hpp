// Products of small integers whose operands lie as CuTe's canonical layouts put them, and where the PTX ISA
// says that their results go, written out once more.
#pragma once

#include "numerics/tensor_core.hpp"
#include "test/tcgen05_fixture.hpp"

#include <string>
#include <utility>
#include <vector>

namespace emu {

struct ProductCase {
    int group, m, n;
    bool weights = false;
    bool a_mn = false, b_mn = false;
    int a_width = 8, b_width = 8;
    FormatId a = FormatId::F16, b = FormatId::F16;
    bool half_result = false, negate_a = false, negate_b = false, accumulate = true;
    int scale = 0;
};

constexpr char mma_line[] = "tcgen05.mma.cta_group::GROUP.kind::f16 [%tmem], %a, %b, %idesc, %enable;";

struct ProductCell {
    int cta, lane, column;
};

// Where element (m, n) of the result is.
ProductCell place(const ProductCase& c, int m, int n);
uint16_t to_bits(int value, FormatId type);

// Random small integers in all operands.
struct IntegerProduct {
    ProductCase c;
    Probe probe;
    std::vector<int> a, b, d;

    explicit IntegerProduct(const ProductCase& shape);
    uint32_t expected(int m, int n) const;
    // All of tensor memory: the product where it belongs but for some lanes (of a CTA), everything else
    // untouched.
    void check(const std::vector<std::pair<int, int>>& untouched = {}) const;

private:
    void put(int cta, int element, uint16_t bits);
    void fill_accumulators();
    uint32_t result_bits(double value) const;
};

}  // namespace emu
