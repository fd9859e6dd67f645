// The sum over slices of K that different CTAs have multiplied. Every warp of every slice stores its
// partial sums in the workspace and counts itself:
//   arrivals[tile][warp]   slice -> slice, in global memory, 0 between kernels. The warp that counts last
//                          adds up the partial sums in the order of the slices, finishes its part of the
//                          tile and sets the word to 0. No warp waits, and the bits do not depend on which
//                          one is the last.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/ptx/global.cuh"
#include "arch/common/warp_tile.cuh"

namespace hg {

// Calls body(fragment, address) for each fragment in some rows of a warp's sums: one float4 a lane.
template <int WM, int WN, typename Quad, typename Body>
__device__ inline void for_each_fragment(WarpAccumulator<WM, WN>& acc, int first, int rows, Quad* at,
                                         Body body)
{
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
            body(acc.v[first + i][j], at + 32 * (i * (WN / 8) + j));
}

// From L2, where other SMs have written it.
__device__ inline void load_quad(float (&v)[4], const float4* from)
{
    const uint4 bits = ptx::load_global_cg_v4(from);
    v[0] = __uint_as_float(bits.x), v[1] = __uint_as_float(bits.y);
    v[2] = __uint_as_float(bits.z), v[3] = __uint_as_float(bits.w);
}

__device__ inline void add_quad(float (&v)[4], const float4* from)
{
    float quad[4];
    load_quad(quad, from);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] += quad[i];
}

// The first K tile of a slice.
__device__ inline int32_t first_k_tile(const SliceParams& p, int32_t slice)
{
    return p.split.quotient(slice * p.k_tiles);
}

// Called by a whole warp, the `part`-th of all warps of all tiles, with its sums of a slice. Returns true
// in the one that counts last; its `acc` then holds the sums of all slices.
template <int WM, int WN>
__device__ inline bool sum_slices(WarpAccumulator<WM, WN>& acc, const SliceParams& p, int32_t slice,
                                  int64_t part, int lane)
{
    constexpr int quads = WM * WN / 4;
    float4* const first = reinterpret_cast<float4*>(p.partials) + part * p.split.value * quads + lane;
    for_each_fragment(acc, 0, WM / 16, first + slice * quads,
                      [](float(&v)[4], float4* to) { __stcg(to, make_float4(v[0], v[1], v[2], v[3])); });
    uint32_t before = 0;
    __syncwarp();
    if (lane == 0)
        before = ptx::atomic_add_acq_rel_gpu(p.arrivals + part, 1);
    before = __shfl_sync(0xffffffff, before, 0);
    if (before + 1 != static_cast<uint32_t>(p.split.value))
        return false;
    __syncwarp();
    if (lane == 0)
        p.arrivals[part] = 0;
    // Some fragments at a time: loads of all would need more registers than there are.
    constexpr int rows_at_once = WN > 32 && WM > 32 ? WM / 32 : WM / 16;
#pragma unroll
    for (int row = 0; row < WM / 16; row += rows_at_once) {
        const float4* from = first + 32 * row * (WN / 8);
        for_each_fragment(acc, row, rows_at_once, from,
                          [](float(&v)[4], const float4* at) { load_quad(v, at); });
#pragma unroll 1
        for (int32_t left = p.split.value - 1; left > 0; --left) {
            from += quads;
            for_each_fragment(acc, row, rows_at_once, from,
                              [](float(&v)[4], const float4* at) { add_quad(v, at); });
        }
    }
    return true;
}

}  // namespace hg
