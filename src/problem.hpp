// Problem: what is asked. Every public routine becomes one of these.
//
// One view for all of them: D, C and aux are row-major (columns contiguous), A has m rows, B has n rows
// and both are summed over k:
//
//     D[i][j] = activation(alpha * sum_p A[i][p] * B[j][p] + beta * C[i][j] + bias)
//
// Column-major calls get here by transposing the equation, which swaps A with B and m with n; transposes
// of A and B are a choice of strides. A matrix-vector product has n = 1.
#pragma once

#include "arch/common/types.hpp"

#include <cstddef>
#include <cstdint>

namespace hg {

enum class Mode : int32_t { Default, BatchInvariant };

constexpr int64_t bytes_of(Type t) { return t == Type::F32 ? 4 : 2; }
const char* name_of(Type t);

// Element (row r, k index p) of problem z is at base(z) + r * row_stride + p * k_stride, in elements.
// base(z) is array[z] where array is set, else ptr + z * batch_stride.
struct Operand {
    const void* ptr;
    const void* const* array;
    int64_t row_stride, k_stride, batch_stride;

    bool operator==(const Operand&) const = default;
};

// Element (i, j) of problem z is at base(z) + i * ld + j. ptr and array are both null when unused.
struct Matrix {
    void* ptr;
    void* const* array;
    int64_t ld, batch_stride;
    Type type;

    bool operator==(const Matrix&) const = default;
};

struct Bias {
    const void* ptr;
    int64_t batch_stride;
    Type type;
    BiasAlong along;

    bool operator==(const Bias&) const = default;
};

struct Problem {
    int64_t m, n, k, batch;  // all >= 1, except that k = 0 means "read neither A nor B"
    Type type_ab;            // F16 or BF16
    Operand a, b;
    Matrix c, d, aux;  // c is unused when beta is the value 0
    Bias bias;
    Activation activation;
    float alpha, beta;                        // unless read on the device:
    const float *alpha_device, *beta_device;  // null or where the value lies
    Groups groups;  // m counts the rows of all, or those that each has room for; or nothing is set

    // Neither A nor B is read; beta is set. A sum of 0 times this alpha is a zero that changes no sign when
    // beta * C is added to it.
    void multiply_nothing()
    {
        k = 0;
        alpha = !beta_device && beta != 0.0f ? -0.0f : 0.0f;
        alpha_device = nullptr;
    }

    // D is C as it is.
    bool changes_nothing() const
    {
        return k == 0 && !beta_device && beta == 1.0f && c == d && bias.along == BiasAlong::None &&
               activation == Activation::None && !aux.ptr;
    }

    bool is_grouped() const { return groups.offsets || groups.counts; }

    // The same product as kernels like it best. A contiguous column of D is a row of its transpose, which
    // vectors can be stored to. Groups keep their rows, and A its lines along k.
    void simplify();

    bool operator==(const Problem&) const = default;

    // One line, cut to `length` bytes with the NUL: the equation's sizes, types and strides.
    void print(char* text, size_t length) const;

private:
    // A stride along a dimension of size 1 leads nowhere, nor does that of a batch of pointer arrays; make
    // it one that vectors can have.
    void align_unused_strides();
};

// Device: what is available.
struct Device {
    int ordinal;         // CUDA ordinal, or HGEMM_DEVICE_HOST
    int cc;              // compute capability, 90 for 9.0; 0 on the host
    int sm_count;        // multiprocessors; threads on the host
    int smem_per_block;  // opt-in shared memory limit, bytes
    int64_t l2_bytes;
    int64_t memory_bandwidth;  // bytes a second, by clock and bus; 0 where the driver does not say
    char name[64];
};

}  // namespace hg
