// Types that host and device share.
#pragma once

#include <cstdint>

namespace hg {

enum class Type : int32_t { F16 = 1, BF16 = 2, F32 = 3 };                 // hgemm_type_t's values
enum class Activation : int32_t { None, Relu, GeluTanh, GeluErf, Silu };  // hgemm_activation_t's values
enum class BiasAlong : int32_t { None, Rows, Columns };  // Rows: element i belongs to row i of D

// The contiguous dimension of an operand in memory: K, or the other one (M of A, N of B).
enum class Major : int32_t { K, MN };

// Which rows of A and D belong to which problem of a batch, read on the device when the kernel runs. One is
// set:
//   offsets  problem z has rows offsets[z] ... offsets[z + 1] - 1 of one A and one D
//   counts   problem z has the first counts[z] rows of its own
struct Groups {
    const int64_t* offsets;
    const int64_t* counts;

    bool operator==(const Groups&) const = default;
};

}  // namespace hg
