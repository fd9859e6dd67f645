// The main loop: cp.async fills a ring of stages, and the warps multiply them.
//
// Barriers: only __syncthreads(). Before a warp reads the first fragments of a stage, every thread waits
// for its own copies (cp.async.wait_group), then __syncthreads() waits for those of all threads. The same
// barrier says that all warps have read the stage before, which is filled again right after it.
#pragma once

#include "arch/common/ptx/cp_async.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/warp_tile.cuh"
#include "arch/sm80/config.hpp"

namespace hg::sm80 {

// Producer: a thread's copies of one operand. A tile in shared memory is a number of lines of contiguous
// chunks: a line is a row of the operand (K-major) or one of its K's (MN-major).
template <Major M, int Rows, int K, int Threads>
class Producer {
    static constexpr int line_elements = M == Major::K ? K : Rows;
    static constexpr int lines = M == Major::K ? Rows : K;
    static constexpr int chunks = line_elements / chunk_elements;
    static constexpr int lines_per_pass = Threads / chunks;
    static constexpr int passes = (lines + lines_per_pass - 1) / lines_per_pass;
    static_assert(Threads % chunks == 0 && (lines % lines_per_pass == 0 || passes == 1));

public:
    // For the tile whose first element is (row, k) of problem z, an operand of `rows` rows.
    __device__ Producer(const OperandParams& p, int64_t row, int64_t k, int64_t rows, int32_t z, int thread)
        : line_(thread / chunks), element_(thread % chunks * chunk_elements)
    {
        const uint16_t* base = p.array ? p.array[z] : p.ptr + z * p.batch_stride;
        const int64_t pitch = M == Major::K ? p.row_stride : p.k_stride;
        rows_left_ = static_cast<int>(min(rows - row, int64_t{Rows}));
        next_ = base + (M == Major::K ? row * pitch + k : row + k * pitch) + line_ * pitch + element_;
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
            if (lines < lines_per_pass && line >= lines)
                break;  // fewer lines than threads
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

// Waits until the next stage that a warp reads is complete for all threads.
template <Config C>
__device__ inline void wait_for_next_stage()
{
    ptx::cp_async_wait_group<C.stages - 2>();
    __syncthreads();
}

// Where a warp's part of the CTA's tile begins.
template <Config C>
struct WarpPlace {
    int m, n;
    __device__ explicit WarpPlace(int warp)
        : m(warp / C.warps_n * C.warp_m()), n(warp % C.warps_n * C.warp_n())
    {
    }
};

// Adds the product of `k` elements of K, from where the producers stand, to the warp's sums. A warp loads
// fragments one K step ahead of mma.sync, across the stages.
template <Config C, typename Share, typename ProducerA, typename ProducerB>
__device__ inline void multiply_tile(typename Share::Accumulator& acc, Smem<C>& smem, ProducerA& a,
                                     ProducerB& b, int k, int warp, int lane)
{
    const WarpPlace<C> at(warp);
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
    acc.clear();
#pragma unroll
    for (int i = 0; i < C.stages - 1; ++i)
        fill(i);
    const typename Share::Lane offsets(lane);
    const auto load = [&](typename Share::Fragments& f, int stage, int step) {
        Share::load(f, smem_a + stage * bytes_a, smem_b + stage * bytes_b, at.m, at.n, 16 * step, offsets);
    };
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
}

}  // namespace hg::sm80
