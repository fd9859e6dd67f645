// Problem: what the caller asks for. Every call that computes becomes one.
//
// One view of all calls: D, C and aux are row-major, A has m rows, B has n rows, and both are summed over
// k:
//
//     D[i][j] = activation(alpha * sum_p A[i][p] * B[j][p] + beta * C[i][j] + bias)
//
// A column-major call becomes this by transposing the equation, which swaps A with B and m with n. Whether
// A or B is transposed is only a choice of strides. A matrix-vector product has n = 1.
//
// Half of the columns may be gates of the others, the up elements. D then has half as many columns as the
// product, C, aux and the bias:
//
//     D[i][j] = activation(gate) * (up + offset)
//
// Where no kernel does so, src/run/gate.cpp computes the product in the workspace.
//
// Of a symmetric D only one half may be asked for, and the other one as its transpose. Where no kernel does
// so, src/run/triangle.cpp makes several products of such a one.
#pragma once

#include "arch/common/types.hpp"

#include <cstddef>
#include <cstdint>

namespace hg {

// hgemm_mode_t. A plan is of the first two: the products of which a tree is made are batch-invariant ones.
enum class Mode : int32_t { Default, BatchInvariant, Tree };

constexpr int64_t bytes_of(Type t) { return t == Type::F32 ? 4 : 2; }
const char* name_of(Type t);

// Element (row r, k index p) of problem z is at base(z) + r * row_stride + p * k_stride, in elements.
// base(z) is array[z] + offset where array is set, else ptr + z * batch_stride.
struct Operand {
    const void* ptr;
    const void* const* array;
    int64_t row_stride, k_stride, batch_stride;
    int64_t offset;

    bool operator==(const Operand&) const = default;

    // The operand that begins at problem `problem`, row `row` and K `k` of this one.
    Operand from(int64_t problem, int64_t row, int64_t k = 0) const;
};

// Element (i, j) of problem z is at base(z) + i * ld + j. ptr and array are both null when unused.
struct Matrix {
    void* ptr;
    void* const* array;
    int64_t ld, batch_stride;
    Type type;
    int64_t offset;

    bool operator==(const Matrix&) const = default;

    bool exists() const { return ptr || array; }
    // The matrix that begins at problem `problem`, row `row` and column `column` of this one.
    Matrix from(int64_t problem, int64_t row, int64_t column) const;
};

struct Bias {
    const void* ptr;
    int64_t batch_stride;
    Type type;
    BiasAlong along;

    bool operator==(const Bias&) const = default;

    // The bias of what begins at problem `problem`, row `row` and column `column`.
    Bias from(int64_t problem, int64_t row, int64_t column) const;
};

// What is computed of D: all, or what is on the diagonal and on one side of it.
enum class Triangle : int32_t { Whole, Upper, Lower };

struct Problem {
    int64_t m, n, k, batch;  // all >= 1, but k = 0 if neither A nor B is to be read
    Type type_ab;            // F16 or BF16
    Operand a, b;
    Matrix c, d, aux;  // c is unused when beta is the value 0
    Bias bias;
    Activation activation;
    Gate gate;
    float alpha, beta;                        // not used where the pointer below is set:
    const float *alpha_device, *beta_device;  // null, or the address of the value
    // Set: m counts the rows of all contiguous groups, or the room of each masked one; or k counts that of
    // all groups.
    Groups groups;
    Triangle triangle;  // not Whole: m = n, and there is no bias, activation, aux, gate or group
    bool mirrored;      // the other half of D becomes the triangle's transpose
    // Above 1: K is cut into so many parts of equal length, and a kernel adds their sums pairwise:
    // plan/tree.hpp. 1: a leaf, of which K is cut no more. Set in plan/tree.cpp and run/tree.cpp alone.
    int64_t leaves;

    // Makes this a problem that reads neither A nor B; beta must be set. The sum 0 times this alpha is a
    // zero that changes no sign when it is added to beta * C.
    void multiply_nothing()
    {
        k = 0;
        alpha = !beta_device && beta != 0.0f ? -0.0f : 0.0f;
        alpha_device = nullptr;
    }

    // Is D the same memory as C, and stays as it is?
    bool changes_nothing() const
    {
        return k == 0 && !beta_device && beta == 1.0f && c == d && bias.along == BiasAlong::None &&
               activation == Activation::None && gate.block == 0 && !aux.ptr && !mirrored;
    }

    bool is_grouped() const { return groups.sizes; }

    bool is_gated() const { return gate.block != 0; }

    constexpr bool has_arrays() const { return a.array || b.array || c.array || d.array; }

    // The product of which the gates are.
    Problem without_gates() const
    {
        Problem product = *this;
        product.gate = {};
        product.activation = Activation::None;
        return product;
    }

    // Of D.
    int64_t columns() const { return is_gated() ? n / 2 : n; }

    // Rewrites the problem to an equivalent one that kernels serve best: a contiguous column of D becomes a
    // row of the transposed problem, so that vectors can be stored to it. Groups are not transposed.
    void simplify();

    bool operator==(const Problem&) const = default;

    // One line, cut to `length` bytes with the NUL: the equation's sizes, types and strides.
    void print(char* text, size_t length) const;

private:
    // Strides along dimensions of size 1, and batch strides of pointer arrays, are not used: sets them to
    // values that allow vectors.
    void align_unused_strides();
};

struct Calibration;

// Device: the GPU, or the host, that a handle computes on.
struct Device {
    int ordinal;         // CUDA ordinal, or HGEMM_DEVICE_HOST
    int cc;              // compute capability, 90 for 9.0; 0 on the host
    int sm_count;        // SMs; threads on the host
    int smem_per_block;  // opt-in shared memory limit, bytes
    int64_t l2_bytes;
    int64_t memory_bandwidth;  // bytes a second, by clock and bus; 0 if the driver does not say
    char name[64];
    const Calibration* calibration;  // null: cost models count as they are
};

}  // namespace hg
