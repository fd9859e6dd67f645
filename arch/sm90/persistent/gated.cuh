// Epilogue of the gated kernels: a thread's sums of the first half of a tile's columns are gates of those
// of the second half, or it has pairs of neighbours, a gate and its up element (are_pairs()). TMA stores
// the tile of D, half as wide. Threads store aux, if there is one, from their registers: its gates and up
// elements lie as those of B do.
//
//   named barrier 1 + consumer   the 128 threads of a consumer: the bias is staged, if there is one; a
//                                staging buffer is free; it is filled.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/epilogue.cuh"
#include "arch/sm90/persistent/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// Adds what stage_bias() has staged to alpha times the sums, and returns the factor that is left of alpha.
template <Config C>
__device__ inline float add_gate_bias(const Params& p, float alpha, float (&acc)[C.tile_n / 2],
                                      const Block& at)
{
    if (p.output.bias_along == BiasAlong::None) [[likely]]
        return alpha;
    transform(acc, [=](float sum) { return __fmul_rn(alpha, sum); });
    ptx::bar_sync(1 + at.consumer, 128);
    add_bias<C.tile_n>(acc, at.bias, true);
    return 1.0f;
}

// Two neighbouring elements of aux.
template <Type T>
__device__ inline uint32_t pair_of(const float* sums, float alpha)
{
    return to_bits2(__fmul_rn(alpha, sums[0]), __fmul_rn(alpha, sums[1]), T);
}

// Stores a thread's sums as elements of aux, in rows before `end` and columns of D that exist. A thread has
// two neighbouring gates, and their up elements lie together elsewhere; where both alternate, all four lie
// together.
template <Config C, Type T>
__device__ inline void store_aux(const Params& p, float alpha, const float (&acc)[C.tile_n / 2],
                                 const Block& at, int64_t end)
{
    constexpr int half = C.tile_n / 4;
    const int64_t row = at.m + at.warp * 16 + at.lane / 4;
    uint16_t* const aux = static_cast<uint16_t*>(p.output.aux) + at.batch * p.output.stride_aux;
    const int32_t apart = p.gate.rows;  // 0: gates and up elements alternate
#pragma unroll
    for (int i = 0; i < half; i += 4) {
        const auto column = static_cast<int32_t>(at.n) + 2 * i;
        const int32_t gates = column + p.gate.block.quotient(column) * apart, lane = 2 * (at.lane % 4);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const uint32_t gate = pair_of<T>(acc + i + 2 * r, alpha),
                           other = pair_of<T>(acc + i + half + 2 * r, alpha);
            uint16_t* const line = aux + (row + 8 * r) * p.output.ldaux;
            if (row + 8 * r >= end || column >= p.output.n / 2)
                continue;
            if (apart == 0) {
                *reinterpret_cast<uint2*>(line + 2 * (column + lane)) =
                    make_uint2(__byte_perm(gate, other, 0x5410), __byte_perm(gate, other, 0x7632));
            } else {
                *reinterpret_cast<uint32_t*>(line + gates + lane) = gate;
                *reinterpret_cast<uint32_t*>(line + gates + lane + apart) = other;
            }
        }
    }
}

// The same of pairs.
template <Config C, Type T>
__device__ inline void store_aux_pairs(const Params& p, float alpha, const float (&acc)[C.tile_n / 2],
                                       const Block& at, int64_t end)
{
    const int64_t row = at.m + at.warp * 16 + at.lane / 4;
    uint16_t* const aux = static_cast<uint16_t*>(p.output.aux) + at.batch * p.output.stride_aux;
#pragma unroll
    for (int i = 0; i < C.tile_n / 2; i += 4) {
        const int64_t column = 2 * at.n + 2 * i;
#pragma unroll
        for (int r = 0; r < 2; ++r)
            if (row + 8 * r < end && column < p.output.n)
                *reinterpret_cast<uint32_t*>(aux + (row + 8 * r) * p.output.ldaux + column +
                                             at.lane % 4 * 2) = pair_of<T>(acc + i + 2 * r, alpha);
    }
}

// A thread has every fourth element of its rows: exchanges them with the row's three other threads, so that
// each has two neighbours of eight, as after a product without gates. Rounds them to D's type.
template <Type T, int Count>
__device__ inline void exchange_neighbours(float* elements, uint32_t lane)
{
    const int from = static_cast<int>((lane & ~3u) | (2 * lane & 3));
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
        uint32_t two[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const uint32_t mine = to_bits2(elements[i + r], elements[i + 2 + r], T),
                           first = __shfl_sync(0xffffffff, mine, from),
                           second = __shfl_sync(0xffffffff, mine, from + 1);
            two[r] = __byte_perm(first, second, lane % 4 < 2 ? 0x5410 : 0x7632);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
            elements[i + j] = to_float(static_cast<uint16_t>(two[j / 2] >> j % 2 * 16), T);
    }
}

// As apply_gates(), of pairs.
template <Config C, Type T>
__device__ inline void apply_gates_of_pairs(const Params& p, float alpha, float (&acc)[C.tile_n / 2],
                                            const Block& at, int64_t end)
{
    if (p.output.aux) [[unlikely]]
        store_aux_pairs<C, T>(p, alpha, acc, at, end);
    const Gate& gate = p.gate.gate;
    with_short_gate_function(p.output.activation, gate.slope, [&](auto activation) {
#pragma unroll
        for (int i = 0; i < C.tile_n / 2; i += 2)
            acc[i / 2] = gated(__fmul_rn(alpha, acc[i]), __fmul_rn(alpha, acc[i + 1]), gate, activation);
    });
    exchange_neighbours<T, C.tile_n / 4>(acc, at.lane);
}

// Replaces the first half of the sums by elements of D. `end`: of the rows that aux gets.
template <Config C, Type T, Major MB>
__device__ inline void apply_gates(const Params& p, float alpha, float (&acc)[C.tile_n / 2],
                                   const Block& at, int64_t end)
{
    alpha = add_gate_bias<C>(p, alpha, acc, at);
    if (are_pairs<MB>(p.gate)) {
        apply_gates_of_pairs<C, T>(p, alpha, acc, at, end);
        return;
    }
    if (p.output.aux) [[unlikely]]
        store_aux<C, T>(p, alpha, acc, at, end);
    constexpr int half = C.tile_n / 4;
    const Gate& gate = p.gate.gate;
    with_short_gate_function(p.output.activation, gate.slope, [&](auto activation) {
#pragma unroll
        for (int i = 0; i < half; ++i)
            acc[i] = gated(__fmul_rn(alpha, acc[i]), __fmul_rn(alpha, acc[i + half]), gate, activation);
    });
}

template <Config C, Type T, Major MB>
__device__ inline void store_gated_tile(const Params& p, const Scalars& s, Accumulator<C>& acc, Block at,
                                        int64_t end)
{
    constexpr int width = C.tile_n / 2, columns = gated_box_columns(C);
    const auto start = [](int i) { return box_start(width, i, columns); };
    at.n /= 2;
#pragma unroll
    for (; at.block < C.blocks(); ++at.block, at.m += 64) {
        apply_gates<C, T, MB>(p, s.alpha, acc[at.block], at, end);
        store_boxes<C>(
            box_count(width, columns), at,
            [&](unsigned char* box, int i) {
                fill_box_16<T, columns>(ptx::shared_address(box), acc[at.block] + start(i) / 2, 1.0f, at);
            },
            [&](uint32_t box, int i) {
                ptx::tma_store_3d_hint(&p.d, box, static_cast<int32_t>(at.n) + start(i),
                                       static_cast<int32_t>(at.m), at.batch, p.d_policy);
            });
    }
}

// Copies the rows before `end` of a filled box that begins at (row, column) of D. Called by a consumer's
// threads.
template <int Columns>
__device__ inline void copy_gated_rows(const Params& p, const Scalars& s, const unsigned char* box,
                                       int64_t row, int64_t column, int32_t end, int32_t batch)
{
    constexpr int chunks = Columns / chunk_elements, rows_at_once = 128 / chunks;
    const int thread = threadIdx.x % 128, chunk = thread % chunks;
    column += chunk * chunk_elements;
    if (column >= p.output.n / 2)
        return;
    char* const d = OutputBases(p.output, s, batch).d;
    for (int i = thread / chunks; i < 64 && row + i < end; i += rows_at_once)
        ptx::store_global_v4(reinterpret_cast<uint4*>(d + 2 * ((row + i) * p.output.ldd + column)),
                             *reinterpret_cast<const uint4*>(box + swizzle<2 * Columns>(i, chunk)));
}

// A tile of a group that ends at row `end` of D, inside the tile: the threads store it, not TMA.
template <Config C, Type T, Major MB>
__device__ inline void store_last_gated_tile(const Params& p, const Scalars& s, Accumulator<C>& acc,
                                             Block at, int32_t end)
{
    constexpr int width = C.tile_n / 2, columns = gated_box_columns(C);
    at.n /= 2;
    if (at.leads())
        ptx::bulk_wait_group_read<0>();
#pragma unroll
    for (; at.block < C.blocks(); ++at.block, at.m += 64) {
        apply_gates<C, T, MB>(p, s.alpha, acc[at.block], at, end);
#pragma unroll
        for (int i = 0; i < box_count(width, columns); ++i) {
            const int start = box_start(width, i, columns);
            ptx::bar_sync(1 + at.consumer, 128);
            fill_box_16<T, columns>(ptx::shared_address(at.staging), acc[at.block] + start / 2, 1.0f, at);
            ptx::bar_sync(1 + at.consumer, 128);
            copy_gated_rows<columns>(p, s, at.staging, at.m, at.n + start, end, at.batch);
        }
    }
}

}  // namespace hg::sm90
