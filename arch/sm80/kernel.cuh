// GEMM with cp.async, ldmatrix and mma.sync. One CTA computes one tile of one problem.
//
// Barriers: only __syncthreads(). Before a warp reads the first fragments of a stage, every thread waits
// for its own copies (cp.async.wait_group), then __syncthreads() waits for those of all threads. The same
// barrier says that all warps have read the stage before, which is filled again right after it.
#pragma once

#include "arch/common/groups.cuh"
#include "arch/common/ptx/cp_async.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/warp_store.cuh"
#include "arch/sm80/config.hpp"

namespace hg::sm80 {

// The index of this CTA's tile.
__device__ inline uint32_t tile_index(const Params& p) { return p.first + blockIdx.x; }

// A tile: rows row ... end - 1 of A and D, or fewer if it has fewer, and columns from `column` on.
struct TilePlace {
    int64_t row, end, column;
    int32_t batch;
};

// How run_tile() finds its tile in a problem or a batch of them.
struct PlainTiles {
    template <Config C>
    __device__ static TilePlace find(const Params& p, uint32_t index)
    {
        const Tile tile = tile_at(p.grid, static_cast<int32_t>(index));
        return {int64_t{tile.m} * C.m, p.output.m, int64_t{tile.n} * C.n, tile.batch};
    }
    __device__ static bool exists(const TilePlace&) { return true; }
    __device__ static const OutputParams& output(const Params& p, const TilePlace&) { return p.output; }
};

// How run_tile() finds its tile in groups of rows; the last CTAs may find none.
struct GroupedTiles {
    template <Config C>
    __device__ static TilePlace find(const Params& p, uint32_t index)
    {
        GroupTile at{};
        GroupWalk<C.m> walk(p.groups, p.group_count, p.output.m, p.group_tiles_n,
                            static_cast<int32_t>(index));
        walk.find(at);
        return {at.row, at.end, int64_t{at.n} * C.n, at.batch};
    }
    __device__ static bool exists(const TilePlace& at) { return at.row < at.end; }
    __device__ static OutputParams output(const Params& p, const TilePlace& at)
    {
        OutputParams rows = p.output;
        rows.m = at.end;
        return rows;
    }
};

// Producer: a thread's copies of one operand. A tile in shared memory is a number of lines of contiguous
// chunks: a line is a row of the operand (K-major) or one of its K's (MN-major).
template <Major M, int Rows, int K, int Threads>
class Producer {
    static constexpr int line_elements = M == Major::K ? K : Rows;
    static constexpr int lines = M == Major::K ? Rows : K;
    static constexpr int chunks = line_elements / chunk_elements;
    static constexpr int lines_per_pass = Threads / chunks;
    static constexpr int passes = lines / lines_per_pass;
    static_assert(Threads % chunks == 0 && lines % lines_per_pass == 0);

public:
    __device__ Producer(const OperandParams& p, int64_t row, int64_t rows, int32_t z, int thread)
        : line_(thread / chunks), element_(thread % chunks * chunk_elements)
    {
        const uint16_t* base = p.array ? p.array[z] : p.ptr + z * p.batch_stride;
        const int64_t pitch = M == Major::K ? p.row_stride : p.k_stride;
        rows_left_ = static_cast<int>(min(rows - row, int64_t{Rows}));
        next_ = base + (M == Major::K ? row * pitch : row) + line_ * pitch + element_;
        step_ = M == Major::K ? K : K * pitch;
        pass_ = lines_per_pass * pitch;
    }

    // Copies the next K tile, of which k_left elements exist, to the tile at `smem`. For lines and elements
    // that do not exist cp.async copies no bytes: it reads nothing and writes zeros.
    __device__ void copy(uint32_t smem, int k_left)
    {
        const int k_in_tile = min(k_left, K);
        const int line_limit = M == Major::K ? rows_left_ : k_in_tile;
        const int element_limit = M == Major::K ? k_in_tile : rows_left_;
        const int elements = max(0, min(element_limit - element_, chunk_elements));
        const uint16_t* src = next_;
#pragma unroll
        for (int pass = 0; pass < passes; ++pass, src += pass_) {
            const int line = line_ + pass * lines_per_pass;
            const int bytes = line < line_limit ? 2 * elements : 0;
            const int offset = M == Major::K ? tile_offset<M, Rows, K>(line, element_)
                                             : tile_offset<M, Rows, K>(element_, line);
            ptx::cp_async_cg_16(smem + offset, src, bytes);
        }
        next_ += step_;
    }

private:
    const uint16_t* next_;  // this thread's first chunk of the next k tile
    int64_t step_, pass_;   // elements to the next k tile, to the next pass
    int line_, element_, rows_left_;
};

// Epilogue: each warp stores its sums through its own part of shared memory.
template <Config C, typename Accumulator>
__device__ inline void store(const OutputParams& o, const Scalars& s, const Accumulator& acc, void* smem,
                             const TilePlace& at, int warp, int lane)
{
    constexpr int chunk_floats = Chunk<chunk_columns(C.warp_n())>::floats;
    static_assert(sizeof(float) * chunk_floats * C.warps_m * C.warps_n <= sizeof(Smem<C>));
    store_warp_tile<C.warp_m(), C.warp_n()>(o, s, acc, static_cast<float*>(smem) + warp * chunk_floats,
                                            at.batch, at.row + warp / C.warps_n * C.warp_m(),
                                            at.column + warp % C.warps_n * C.warp_n(), lane);
}

// Stores this CTA's tile once all warps have read the stages. It finds the tile again: kept during the main
// loop, its place would spill.
template <Config C, typename Find, typename Accumulator>
__device__ inline void store_tile(const Params& p, Smem<C>& smem, const Scalars& s, const Accumulator& acc,
                                  int warp, int lane)
{
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    const TilePlace at = Find::template find<C>(p, ptx::mov_b32(tile_index(p)));
    store<C>(Find::output(p, at), s, acc, &smem, at, warp, lane);
}

// Waits until the next stage that a warp reads is complete for all threads.
template <Config C>
__device__ inline void wait_for_next_stage()
{
    ptx::cp_async_wait_group<C.stages - 2>();
    __syncthreads();
}

template <Config C, Type T, Major MA, Major MB, typename Find = PlainTiles>
__device__ inline void run_tile(const Params& p, Smem<C>& smem)
{
    using Share = WarpTile<T, MA, MB, C.k, C.warp_m(), C.warp_n()>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row_a = warp / C.warps_n * C.warp_m(), row_b = warp % C.warps_n * C.warp_n();
    const TilePlace at = Find::template find<C>(p, tile_index(p));
    if (!Find::exists(at))
        return;
    const Scalars scalars = load_scalars(p.output);
    const int k = scalars.alpha == 0.0f ? 0 : static_cast<int>(p.k);
    Producer<MA, C.m, C.k, C.threads()> a(p.a, at.row, at.end, at.batch, threadIdx.x);
    Producer<MB, C.n, C.k, C.threads()> b(p.b, at.column, p.output.n, at.batch, threadIdx.x);
    const uint32_t smem_a = ptx::shared_address(smem.a), smem_b = ptx::shared_address(smem.b);
    constexpr int bytes_a = sizeof smem.a[0], bytes_b = sizeof smem.b[0];
    int k_to_fill = k;
    const auto fill = [&](int stage) {
        if (k_to_fill > 0) {
            a.copy(smem_a + stage * bytes_a, k_to_fill);
            b.copy(smem_b + stage * bytes_b, k_to_fill);
            k_to_fill -= C.k;
        }
        ptx::cp_async_commit_group();
    };
    typename Share::Accumulator acc;
    acc.clear();
#pragma unroll
    for (int i = 0; i < C.stages - 1; ++i)
        fill(i);
    const typename Share::Lane offsets(lane);
    const auto load = [&](typename Share::Fragments& f, int stage, int step) {
        Share::load(f, smem_a + stage * bytes_a, smem_b + stage * bytes_b, row_a, row_b, 16 * step,
                    offsets);
    };
    // A warp loads fragments one K step ahead of mma.sync, across the stages.
    constexpr int steps = C.k / 16;
    static_assert(steps % 2 == 0);
    typename Share::Fragments f[2];
    if (k > 0) {
        wait_for_next_stage<C>();
        load(f[0], 0, 0);
    }
    for (int k_left = k, stage = 0; k_left > 0; k_left -= C.k) {
        const int next = stage + 1 == C.stages ? 0 : stage + 1;
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            if (step + 1 < steps) {
                load(f[(step + 1) % 2], stage, step + 1);
            } else if (k_left > C.k) {
                wait_for_next_stage<C>();
                load(f[(step + 1) % 2], next, 0);
            }
            if (step == 0)
                fill(stage == 0 ? C.stages - 1 : stage - 1);
            Share::multiply(acc, f[step % 2]);
        }
        stage = next;
    }
    store_tile<C, Find>(p, smem, scalars, acc, warp, lane);
}

}  // namespace hg::sm80
