// The main loop: all warps fill a ring of stages by cp.async, and all multiply them.
//
// Barriers, one of each per stage, so that a warp may be almost one K tile ahead of the slowest:
//   full[s]    all warps -> all warps. Count C.warps(): one lane of each warp, once the copies of all its
//              threads to the stage have landed (cp.async.wait_group, __syncwarp).
//   empty[s]   all warps -> all threads. Count C.warps(): one lane of each warp, once the warp has issued
//              every mma.sync that uses its fragments of the stage.
#pragma once

#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/cp_async.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/ring.cuh"
#include "arch/common/warp_tile.cuh"
#include "arch/sm80/config.hpp"

#include <cstddef>

namespace hg::sm80 {

// A thread's chunks of an operand's K tile. In shared memory a tile is a number of lines of contiguous
// chunks: a line is a row of the operand (K-major) or one of its K's (MN-major). A tile is copied in parts,
// one chunk a thread.
template <Major M, int Rows, int K, int Threads>
struct ThreadChunks {
    static constexpr int line_elements = M == Major::K ? K : Rows;
    static constexpr int lines = M == Major::K ? Rows : K;
    static constexpr int chunks = line_elements / chunk_elements;
    static constexpr int lines_per_part = Threads / chunks;
    static constexpr int part_bytes = lines_per_part * (M == Major::K ? 2 * K : 128);
    // Lines that are a multiple of eight apart are permuted alike, and equally far from alignment.
    static_assert(Threads % chunks == 0 && lines_per_part % 8 == 0);

    static constexpr int parts = lines / lines_per_part;
    static_assert(lines % lines_per_part == 0);

    const uint16_t* next;       // this thread's first chunk of the next K tile
    int64_t part, step;         // elements to the next part, to the next K tile
    int line, element, offset;  // of this thread in the first part; `offset` in bytes
    int rows_left;

    // For the tile whose first element is (row, k) of an operand of `rows` rows at `base`.
    __device__ ThreadChunks(const OperandParams& p, const uint16_t* base, int64_t row, int64_t k,
                            int64_t rows, int thread)
        : line(thread / chunks), element(thread % chunks * chunk_elements),
          rows_left(static_cast<int>(min(rows - row, int64_t{Rows})))
    {
        const int64_t pitch = M == Major::K ? p.row_stride : p.k_stride;
        next = base + (M == Major::K ? row * pitch + k : row + k * pitch) + line * pitch + element;
        part = lines_per_part * pitch;
        step = M == Major::K ? K : K * pitch;
        offset =
            M == Major::K ? tile_offset<M, Rows, K>(line, element) : tile_offset<M, Rows, K>(element, line);
    }

    // How many elements of the chunk in a part exist, where k_left K's from the tile's first one on do.
    __device__ int count(int in_part, int k_left) const
    {
        const int k_in_tile = max(0, min(k_left, K));
        const int line_limit = M == Major::K ? rows_left : k_in_tile;
        const int element_limit = M == Major::K ? k_in_tile : rows_left;
        return line + in_part * lines_per_part < line_limit
                   ? max(0, min(element_limit - element, chunk_elements))
                   : 0;
    }
};

// Producer: a thread's copies of one operand.
template <Major M, int Rows, int K, int Threads>
class Producer {
public:
    // For the tile whose first element is (row, k) of problem z, an operand of `rows` rows.
    __device__ Producer(const OperandParams& p, int64_t row, int64_t k, int64_t rows, int32_t z, int thread)
        : chunks_(p, p.ptr + z * p.batch_stride, row, k, rows, thread)
    {
    }

    // Do all rows of the tile exist?
    __device__ bool is_whole() const { return chunks_.rows_left == Rows; }

    // Copies the next K tile, of which k_left elements exist, to the tile at `smem`. Whole: all of it
    // exists. Of chunks and elements that do not exist cp.async copies no bytes: it reads nothing and
    // writes zeros.
    template <bool Whole>
    __device__ void copy(uint32_t smem, int k_left)
    {
        const uint16_t* from = chunks_.next;
        const bool exists = k_left > 0;
#pragma unroll
        for (int part = 0; part < chunks_.parts; ++part, from += chunks_.part) {
            const uint32_t to = smem + chunks_.offset + part * chunks_.part_bytes;
            if constexpr (Whole)
                ptx::cp_async_cg_16_if(exists, to, from);
            else
                ptx::cp_async_cg_16(to, from, 2 * chunks_.count(part, k_left));
        }
        chunks_.next += chunks_.step;
    }

private:
    ThreadChunks<M, Rows, K, Threads> chunks_;
};

// All threads, first of all.
template <Config C>
__device__ inline void prepare(Smem<C>& smem)
{
    if (threadIdx.x == 0)
        for (int i = 0; i < C.stages; ++i) {
            ptx::mbarrier_init(ptx::shared_address(&smem.full[i]), C.warps());
            ptx::mbarrier_init(ptx::shared_address(&smem.empty[i]), C.warps());
        }
    __syncthreads();
}

// sm_80 has no mbarrier.try_wait.
__device__ inline void wait(uint32_t bar, uint32_t parity)
{
    while (!ptx::mbarrier_test_wait_parity(bar, parity)) {
    }
}

// Shared addresses of the stages and of their barriers.
template <Config C>
struct Stages {
    using Layout = Smem<C>;
    uint32_t base;

    __device__ explicit Stages(const Layout& smem) : base(ptx::shared_address(&smem)) {}
    __device__ uint32_t a(uint32_t stage) const
    {
        return base + stage * static_cast<uint32_t>(sizeof Layout::a[0]);
    }
    __device__ uint32_t b(uint32_t stage) const
    {
        return base + static_cast<uint32_t>(offsetof(Layout, b) + stage * sizeof Layout::b[0]);
    }
    __device__ uint32_t full(uint32_t stage) const
    {
        return base + static_cast<uint32_t>(offsetof(Layout, full)) + 8 * stage;
    }
    __device__ uint32_t empty(uint32_t stage) const
    {
        return base + static_cast<uint32_t>(offsetof(Layout, empty)) + 8 * stage;
    }
};

// Where a warp's part of the CTA's tile begins.
template <Config C>
struct WarpPlace {
    int m, n;
    __device__ explicit WarpPlace(int warp)
        : m(warp / C.warps_n * C.warp_m()), n(warp % C.warps_n * C.warp_n())
    {
    }
};

// A thread's share of filling the stages with the K tiles of one tile, one after another.
template <Config C, bool Whole, typename ProducerA, typename ProducerB>
class Filler {
public:
    __device__ Filler(const Stages<C>& stages, ProducerA& a, ProducerB& b, int k)
        : stages_(stages), a_(a), b_(b), k_left_(k)
    {
    }

    // Fills all stages but the last one, which are free.
    __device__ void fill_first()
    {
#pragma unroll 1
        for (; ring_.stage < C.stages - 1; ++ring_.stage)
            fill_stage();
    }

    // Is the next stage free? Asked some time before fill(), which then need not wait for the answer.
    __device__ bool is_free() const
    {
        return ptx::mbarrier_test_wait_parity(stages_.empty(ring_.stage), ring_.phase);
    }

    // Waits until the next stage is free, if it was not, then fills it. Past the last K tile a whole tile
    // copies nothing, a ragged one writes zeros: without a branch, so that ptxas can place the copies among
    // mma.sync.
    __device__ void fill(bool was_free)
    {
        if (!was_free)
            wait(stages_.empty(ring_.stage), ring_.phase);
        fill_stage();
        ring_.advance();
    }

private:
    __device__ void fill_stage()
    {
        a_.template copy<Whole>(stages_.a(ring_.stage), k_left_);
        b_.template copy<Whole>(stages_.b(ring_.stage), k_left_);
        ptx::cp_async_commit_group();
        k_left_ -= C.k;
    }

    const Stages<C>& stages_;
    ProducerA& a_;
    ProducerB& b_;
    int k_left_;
    Ring<C.stages> ring_ = Ring<C.stages>::writer();
};

// Tells the other warps that this warp's copies to a stage have landed, all but those to the `Pending`
// stages filled last.
template <int Pending>
__device__ inline void announce(uint32_t full, int lane)
{
    ptx::cp_async_wait_group<Pending>();
    __syncwarp();
    if (lane == 0)
        ptx::mbarrier_arrive(full);
}

// Adds the product of `k` elements of K, from where the producers stand, to the warp's sums. A warp loads
// fragments one K step ahead of mma.sync, across the stages. Barriers are tested a K step before their
// answer is needed.
template <Config C, bool Whole, typename Share, typename ProducerA, typename ProducerB>
__device__ inline void multiply_k_tiles(typename Share::Accumulator& acc, Smem<C>& smem, ProducerA& a,
                                        ProducerB& b, int k, int warp, int lane)
{
    constexpr int steps = C.k / 16;
    static_assert(steps % 2 == 0);
    const WarpPlace<C> place(warp);
    const typename Share::Lane offsets(place.m, place.n, lane);
    const Stages<C> stages(smem);
    const auto lane_in = [&](uint32_t stage) {
        return typename Share::Lane(offsets, stages.a(stage), stages.b(stage));
    };
    Filler<C, Whole, ProducerA, ProducerB> filler(stages, a, b, k);
    Ring<C.stages> ring = Ring<C.stages>::reader();
    typename Share::Fragments f[2];
    acc.clear();
    filler.fill_first();
    if (k > 0) {
        announce<C.stages - 2>(stages.full(ring.stage), lane);
        wait(stages.full(ring.stage), ring.phase);
        Share::load(f[0], lane_in(ring.stage), 0);
    }
    for (int k_left = k; k_left > 0; k_left -= C.k) {
        const uint32_t stage = ring.stage;
        const auto at = lane_in(stage);
        ring.advance();
        const bool is_free = filler.is_free();
        bool is_full = false;
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            if (step + 1 < steps) {
                Share::load(f[(step + 1) % 2], at, 16 * (step + 1));
            } else if (k_left > C.k) {
                if (!is_full)
                    wait(stages.full(ring.stage), ring.phase);
                Share::load(f[0], lane_in(ring.stage), 0);
            }
            if (step + 2 == steps) {
                announce<C.stages - 3>(stages.full(ring.stage), lane);
                filler.fill(is_free);
                is_full = ptx::mbarrier_test_wait_parity(stages.full(ring.stage), ring.phase);
            }
            Share::multiply(acc, f[step % 2]);
        }
        if (lane == 0)  // mma.sync has read all lanes' fragments
            ptx::mbarrier_arrive(stages.empty(stage));
    }
}

// Most CTAs have whole tiles, whose copies are simpler.
template <Config C, typename Share, typename ProducerA, typename ProducerB>
__device__ inline void multiply_tile(typename Share::Accumulator& acc, Smem<C>& smem, ProducerA& a,
                                     ProducerB& b, int k, int warp, int lane)
{
    if (a.is_whole() && b.is_whole() && k % C.k == 0)
        multiply_k_tiles<C, true, Share>(acc, smem, a, b, k, warp, lane);
    else
        multiply_k_tiles<C, false, Share>(acc, smem, a, b, k, warp, lane);
}

}  // namespace hg::sm80
