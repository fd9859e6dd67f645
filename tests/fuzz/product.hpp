// A product drawn from an input: arguments, one or two of them perhaps wrong, and memory behind the
// pointers.
#pragma once

#include "../library.hpp"
#include "block.hpp"
#include "input.hpp"

#include <memory>
#include <string>
#include <vector>

namespace hg::fuzz {

// What can be wrong. The order is that of hgemm_args_t.
enum class Field {
    Handle,
    Args,
    Size,
    Layout,
    TransA,
    TransB,
    TypeAb,
    TypeC,
    TypeD,
    M,
    N,
    K,
    Alpha,
    Beta,
    A,
    Lda,
    B,
    Ldb,
    C,
    Ldc,
    D,
    Ldd,
    Count,
    StrideA,
    StrideB,
    StrideC,
    StrideD,
    BiasMode,
    BiasType,
    Bias,
    StrideBias,
    Activation,
    Aux,
    Ldaux,
    StrideAux,
    Flags,
    Uplo,
    Entry,
    last,
    // Drawn behind all others.
    GateBlock = last,
    GateLimit,
    GateSlope,
    GateOffset
};

// No struct of the caller's is longer; what lies behind one.
constexpr size_t most_struct_bytes = 1024;
constexpr unsigned char foreign_byte = 0xa5;

struct Product {
    test::Form form = test::Form::General;
    hgemm_args_t g{};
    int tail = 0;             // bytes behind the members that this version knows
    bool dirty_tail = false;  // the last of them is not 0
    bool is_null = false;     // args itself

    Block a, b, c, d, aux, bias;
    bool separate_c = false;  // c and d are not the same memory
    std::unique_ptr<float[]> scalars = std::make_unique<float[]>(2);
    std::vector<const void*> a_list, b_list, c_list;
    std::vector<void*> d_list;
    bool special = false;    // infinities and NaN among the operands: k is at most 1
    bool has_memory = true;  // behind all pointers, as far as the arguments say

    bool is_array() const { return g.a_array || g.b_array || g.c_array || g.d_array; }
    bool is_gated() const { return g.gate.block != 0; }
    int64_t line() const { return g.layout == HGEMM_COL_MAJOR ? g.m : g.n; }  // of the product: its length
    bool is_empty() const { return g.m == 0 || g.n == 0 || g.batch_count == 0; }
    float alpha() const { return g.alpha_device ? *g.alpha_device : g.alpha; }
    float beta() const { return g.beta_device ? *g.beta_device : g.beta; }
    bool reads_ab() const { return !is_empty() && g.k > 0 && (g.alpha_device || g.alpha != 0); }
    bool reads_c() const { return !is_empty() && (g.beta_device || g.beta != 0); }

    // As stored, whatever the sizes.
    Extent extent_a() const;
    Extent extent_b() const;
    Extent extent_c() const;
    Extent extent_d() const;
    Extent extent_aux() const;
    Extent extent_product(int64_t ld, int64_t stride) const;

    // hgemm_args_t as the caller has it: followed by its tail, and nothing behind.
    std::vector<unsigned char> bytes() const;
    std::string describe() const;
};

Product draw_product(Input& input, test::Form form);
int64_t draw_odd_integer(Input& input);
// Gates along lines of a product that is there already, now and then wrong ones. False: none.
bool draw_gates(Input& input, Product& product);

}  // namespace hg::fuzz
