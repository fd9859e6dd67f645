// Types that host and device share.
#pragma once

#include <cstdint>

namespace hg {

enum class Type : int32_t { F16 = 1, BF16 = 2, F32 = 3 };                 // hgemm_type_t's values
enum class Activation : int32_t { None, Relu, GeluTanh, GeluErf, Silu };  // hgemm_activation_t's values
enum class BiasAlong : int32_t { None, Rows, Columns };  // Rows: element i belongs to row i of D

// The contiguous dimension of an operand in memory: K, or the other one (M of A, N of B).
enum class Major : int32_t { K, MN };

// What the numbers of Groups are:
//   Offsets  problem z has rows sizes[z] ... sizes[z + 1] - 1 of one A and one D
//   Ends     the same without the first number, which is 0
//   Counts   problem z has the first sizes[z] rows of its own
enum class GroupsBy : int32_t { Offsets, Ends, Counts };

// Which rows of A and D belong to which problem of a batch, or which K of A and B, read on the device when
// the kernel runs.
struct Groups {
    const void* sizes;  // of type int64_t; null: there are no groups
    GroupsBy by;
    int32_t narrow;  // other than 0: `sizes` are of type int32_t
    int32_t of_k;    // other than 0: `sizes` are of K, which all problems' A and B share
    // Rows of the groups that lie before A and D: sizes count from there. What lies before or behind the
    // rows of A and D is not computed.
    int32_t origin;

    constexpr bool contiguous() const { return sizes && by != GroupsBy::Counts && !of_k; }
    constexpr bool masked() const { return sizes && by == GroupsBy::Counts; }
    bool operator==(const Groups&) const = default;
};

// hgemm_gate_t: of the columns of a product, `block` are gates of the next `block`, and so on. D has half
// as many.
struct Gate {
    int64_t block;  // 0: no gates
    float limit;    // infinity: none
    float slope;    // of Silu
    float offset;   // -0: none

    bool operator==(const Gate&) const = default;
};

namespace sm90 {

// How a persistent kernel stores a tile:
//   Plain    alpha times the accumulators, by TMA
//   Fused    also adds C, a bias and an activation to the accumulators, and stores aux; all by TMA
//   General  everything else: matrices that TMA cannot address, other types, GELU by erf
enum class Epilogue : uint8_t { Plain, Fused, General };

}  // namespace sm90

}  // namespace hg
