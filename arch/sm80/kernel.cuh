// GEMM with cp.async, ldmatrix and mma.sync. One CTA computes one tile of one problem, or a slice of its K.
//
// Barriers: those of mainloop.cuh and slice_sum.cuh. A __syncthreads() before the epilogue says that all
// warps have read the stages, which its chunks reuse.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/groups.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/slice_sum.cuh"
#include "arch/common/tile_order.hpp"
#include "arch/common/warp_store.cuh"
#include "arch/common/warp_tile.cuh"
#include "arch/sm80/gated.cuh"
#include "arch/sm80/mainloop.cuh"

namespace hg::sm80 {

// Scheduler: which tile a CTA computes, and which slice of its K. The slices of a tile are neighbours in
// the grid.
struct Scheduler {
    int32_t tile, slice;

    __device__ explicit Scheduler(const Params& p, uint32_t block)
        : tile(p.slices.split.quotient(static_cast<int32_t>(p.first + block))),
          slice(static_cast<int32_t>(p.first + block) - tile * p.slices.split.value)
    {
    }
};

// The K's that a CTA multiplies: none if alpha is 0.
struct KRange {
    int first, count;

    __device__ static KRange of_slice(const Params& p, const Scheduler& work, int tile_k)
    {
        const int first = first_k_tile(p.slices, work.slice) * tile_k;
        const int end = min(static_cast<int>(p.k), first_k_tile(p.slices, work.slice + 1) * tile_k);
        return {first, load_scalars(p.output).alpha == 0.0f ? 0 : end - first};
    }
    __device__ static KRange of_group(const Params& p, int32_t group)
    {
        const auto [first, count] = GroupRows::of(p.groups, group, p.k);
        return {first, load_scalars(p.output).alpha == 0.0f ? 0 : count};
    }
};

// The first element of an operand of problem z.
__device__ inline const uint16_t* problem_operand(const OperandParams& p, int32_t z)
{
    return problem_base(p.ptr, p.array, z, 2 * p.batch_stride);
}

// A tile: rows row ... end - 1 of A and D, or fewer if it has fewer, and columns from `column` on.
struct TilePlace {
    int64_t row, end, column;
    int32_t batch;
};

// How run_tile() finds its tile in a problem or a batch of them, and its K.
struct PlainTiles {
    static constexpr bool groups_k = false, gates = false;
    template <Config C>
    __device__ static TilePlace find(const Params& p, int32_t index)
    {
        const Tile tile = tile_at(p.grid, index);
        return {int64_t{tile.m} * C.tile_m, p.output.m, int64_t{tile.n} * C.tile_n, tile.batch};
    }
    __device__ static bool exists(const TilePlace&) { return true; }
    __device__ static const OutputParams& output(const Params& p, const TilePlace&) { return p.output; }
};

// The same where each problem of a batch has K's of its own of one A and one B.
struct KGroupedTiles : PlainTiles {
    static constexpr bool groups_k = true;
};

// How run_tile() finds its tile in groups of rows; the last CTAs may find none.
struct GroupedTiles {
    static constexpr bool groups_k = false, gates = false;
    template <Config C>
    __device__ static TilePlace find(const Params& p, int32_t index)
    {
        GroupTile at{};
        GroupWalk<C.tile_m> walk(p.groups, p.group_count, p.output.m, p.group_tiles_n, index);
        walk.find(at);
        return {at.row, at.end, int64_t{at.n} * C.tile_n, at.batch};
    }
    __device__ static bool exists(const TilePlace& at) { return at.row < at.end; }
    __device__ static OutputParams output(const Params& p, const TilePlace& at)
    {
        OutputParams rows = p.output;
        rows.m = at.end;
        return rows;
    }
};

// The same with gates: a tile has half as many columns of D.
template <typename Tiles>
struct Gated : Tiles {
    static constexpr bool gates = true;
};

// Epilogue: each warp stores its sums through its own part of shared memory.
template <Config C, Type T, typename Find, typename Accumulator>
__device__ inline void store(const Params& p, const OutputParams& o, const Scalars& s, Accumulator& acc,
                             void* smem, const TilePlace& at, int warp, int lane)
{
    constexpr int chunk_floats = Chunk<chunk_columns(C.warp_n())>::floats;
    static_assert(sizeof(float) * chunk_floats * C.warps() <= sizeof(Smem<C>));
    const WarpPlace<C> in_tile(warp);
    if constexpr (Find::gates) {
        store_gated_warp_tile<T, C.warp_m(), C.warp_n()>(
            o, p.gates, s, acc, static_cast<float*>(smem) + warp * chunk_floats, at.batch,
            at.row + in_tile.m, (at.column + in_tile.n) / 2, lane);
        return;
    }
    store_warp_tile<T, C.warp_m(), C.warp_n()>(o, s, acc, static_cast<float*>(smem) + warp * chunk_floats,
                                               at.batch, at.row + in_tile.m, at.column + in_tile.n, lane);
}

// Stores this CTA's tile once all warps have read the stages, if no slice of it is missing. It finds the
// tile, the scalars and the warp again: kept during the main loop, they would spill.
template <Config C, Type T, typename Find, typename Accumulator>
__device__ inline void store_tile(const Params& p, Smem<C>& smem, Accumulator& acc)
{
    ptx::cp_async_wait_group<0>();  // of K tiles that do not exist: zeros
    __syncthreads();
    const Scheduler work(p, ptx::read_block());
    const uint32_t thread = ptx::read_thread();
    const int warp = static_cast<int>(thread / 32), lane = static_cast<int>(thread % 32);
    uint32_t complete = 1;
    if (!Find::gates && p.slices.split.value > 1)
        complete = sum_slices(acc, p.slices, work.slice, int64_t{work.tile} * C.warps() + warp, lane);
    if (ptx::mov_b32(complete) == 0)  // hidden from nvcc, which would have two copies of the epilogue
        return;
    const TilePlace at = Find::template find<C>(p, work.tile);
    Scalars scalars = load_scalars(p.output);
    if constexpr (Find::groups_k)
        scalars = scalars_of_k_group(scalars, KRange::of_group(p, at.batch).count);
    store<C, T, Find>(p, Find::output(p, at), scalars, acc, &smem, at, warp, lane);
}

// Which rows of B belong to a tile: from `first` on, as long as there are columns of the output.
template <typename Find>
struct RowsOfB {
    int64_t first, end, up;

    __device__ RowsOfB(const Params& p, int64_t column) : first(column), end(p.output.n), up(0)
    {
        if constexpr (Find::gates) {
            first = row_of_gate(p.gates, column / 2);
            end = first + p.output.n / 2 - column / 2;
            up = p.gates.up;
        }
    }
};

template <Config C, Type T, Major MA, Major MB, typename Find = PlainTiles>
__device__ inline void run_tile(const Params& p, Smem<C>& smem)
{
    using Share = WarpTile<T, MA, MB, C.tile_k, C.warp_m(), C.warp_n()>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const Scheduler work(p, blockIdx.x);
    const TilePlace at = Find::template find<C>(p, work.tile);
    if (!Find::exists(at))
        return;
    const KRange range =
        Find::groups_k ? KRange::of_group(p, at.batch) : KRange::of_slice(p, work, C.tile_k);
    Producer<MA, C.tile_m, C.tile_k, C.threads()> a(p.a, at.row, range.first, at.end, at.batch,
                                                    threadIdx.x);
    const RowsOfB<Find> rows(p, at.column);
    Producer<MB, C.tile_n, C.tile_k, C.threads(), Find::gates ? C.gates_of_warp() : 0> b(
        p.b, rows.first, range.first, rows.end, at.batch, threadIdx.x, rows.up);
    if constexpr (!Find::gates) {
        const WarpPlace<C> in_tile(warp);
        prefetch_warp_tile<C.warp_m(), C.warp_n()>(Find::output(p, at), load_scalars(p.output), at.batch,
                                                   at.row + in_tile.m, at.column + in_tile.n, lane);
    }
    typename Share::Accumulator acc;
    multiply_tile<C, Share>(acc, smem, a, b, range.count, warp, lane);
    store_tile<C, T, Find>(p, smem, acc);
}

}  // namespace hg::sm80
