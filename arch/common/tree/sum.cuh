// Adds up the sums of a tree's leaves pairwise: ((l0 + l1) + (l2 + l3)) + ..., each rounded, and finishes
// the output. The number of leaves is a power of two. How many threads share an element changes no bits:
// each adds up a whole branch of the tree.
//
// Barriers: __syncthreads() before and after a thread reads a neighbour's sum, and before the next chunk.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/tree/config.hpp"

#include <cstdint>

namespace hg {

// The sum of `count` leaves, a power of two, up to tree_leaves_at_once.
__device__ inline float sum_few_leaves(const float* from, int64_t stride, int32_t count)
{
    float v[tree_leaves_at_once];
#pragma unroll
    for (int i = 0; i < tree_leaves_at_once; ++i)
        v[i] = i < count ? __ldcg(from + i * stride) : 0.0f;
#pragma unroll
    for (int step = 1; step < tree_leaves_at_once; step *= 2)
        if (step < count)
#pragma unroll
            for (int i = 0; i < tree_leaves_at_once; i += 2 * step)
                v[i] = __fadd_rn(v[i], v[i + step]);
    return v[0];
}

// The sum of a branch of any number of leaves. level[l] is a finished branch of 2^l blocks that waits for
// its right neighbour: where bit l of the number of a block is 1, there is one.
__device__ inline float sum_branch(const float* from, int64_t stride, int32_t count)
{
    if (count <= tree_leaves_at_once)
        return sum_few_leaves(from, stride, count);
    float level[tree_levels];
    float sum = 0.0f;
    const int32_t blocks = count / tree_leaves_at_once;
#pragma unroll 1
    for (int32_t block = 0; block < blocks; ++block) {
        sum = sum_few_leaves(from + block * (tree_leaves_at_once * stride), stride, tree_leaves_at_once);
        bool waits = false;
#pragma unroll
        for (int l = 0; l < tree_levels; ++l) {
            const bool has_left = (block >> l & 1) != 0;
            if (!waits && has_left)
                sum = __fadd_rn(level[l], sum);
            else if (!waits)
                level[l] = sum;
            waits = waits || !has_left;
        }
    }
    return sum;
}

// Adds up what the members have, which are tree_threads >> log2_members threads apart; the result is the
// first one's.
__device__ inline float sum_members(const TreeSumParams& p, TreeShared& shared, float sum)
{
    const int across = tree_threads >> p.log2_members;
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
    for (int step = across; step < tree_threads; step *= 2) {
        shared[thread] = sum;
        __syncthreads();
        if ((thread & (2 * step - 1)) < step)
            sum = __fadd_rn(sum, shared[thread + step]);
        __syncthreads();
    }
    return sum;
}

// The whole kernel: CTA i finishes chunks i, i + CTAs, ...
__device__ inline void sum_leaves(const TreeSumParams& p, TreeShared& shared)
{
    const int across = tree_threads >> p.log2_members;
    const int member = static_cast<int>(threadIdx.x) / across;
    const int32_t branch = p.leaves >> p.log2_members;
    const Scalars scalars = load_scalars(p.output);
#pragma unroll 1
    for (auto chunk = static_cast<int32_t>(blockIdx.x); chunk < p.chunks;
         chunk += static_cast<int32_t>(gridDim.x)) {
        const int32_t z = p.chunks_of_problem.quotient(chunk);
        const int32_t element =
            (chunk - z * p.chunks_of_problem.value) * across + static_cast<int32_t>(threadIdx.x) % across;
        const bool exists = element < p.elements;
        const int32_t i = p.columns.quotient(element), j = element - i * p.columns.value;
        const float* const from =
            p.sums + z * p.problem_stride + i * p.ld + j + int64_t{member} * branch * p.leaf_stride;
        const float sum = sum_members(p, shared, exists ? sum_branch(from, p.leaf_stride, branch) : 0.0f);
        if (exists && member == 0)
            finish_element(p.output, scalars, OutputBases(p.output, scalars, z), i, j, sum);
    }
}

}  // namespace hg
