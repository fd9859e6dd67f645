// The sum of a tree's leaves: configuration and parameters. Host and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/params.hpp"

#include <cstdint>

namespace hg {

constexpr int tree_threads = 256;
constexpr int tree_ctas_per_sm = 4;
constexpr int max_log2_tree_members = 3;
// Leaves that a thread loads before it adds, and bits that count the blocks of so many leaves.
constexpr int tree_leaves_at_once = 8, tree_levels = 16;

// Dynamic shared memory: what members that share an element have added up.
using TreeShared = float[tree_threads];

// Element (i, j) of problem z has the sum of leaf l at sums[l * leaf_stride + z * problem_stride + i * ld +
// j]. A chunk is what a CTA finishes at a time: tree_threads >> log2_members elements that follow each
// other in a problem's rows. Of the leaves of an element each of 1 << log2_members threads adds up a part.
struct TreeSumParams {
    OutputParams output;
    const float* sums;
    int64_t leaf_stride, problem_stride, ld;
    int32_t leaves, log2_members;
    int32_t elements;  // of a problem
    int32_t chunks;    // of all problems
    Divisor chunks_of_problem, columns;
};

}  // namespace hg
