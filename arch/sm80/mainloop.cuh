// The main loop: all threads fill a ring of stages by cp.async, and all warps multiply them.
//
// Barriers: one __syncthreads() per K tile, a K step before its end. Before it each thread waits for its
// own copies of the next K tile (cp.async.wait_group), so that after it all warps may read them. Each warp
// has then loaded its last fragments of this K tile, so that after it all threads may fill its stage again.
#pragma once

#include "arch/common/ptx/cp_async.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/warp_tile.cuh"
#include "arch/sm80/config.hpp"

#include <cstddef>

namespace hg::sm80 {

// Which rows of an operand a tile has: of each 2 * Gates rows of the tile first so many gates, and then
// their up elements. Without gates they are consecutive.
template <int Gates>
struct TileRows {
    // How far row `row` of the tile lies from the first one, or from the first one's up element.
    __host__ __device__ static constexpr int index(int row)
    {
        return row / (2 * Gates) * Gates + row % Gates;
    }
    __host__ __device__ static constexpr bool is_up(int row) { return row / Gates % 2 == 1; }
};

template <>
struct TileRows<0> {
    __host__ __device__ static constexpr int index(int row) { return row; }
    __host__ __device__ static constexpr bool is_up(int) { return false; }
};

// A thread's chunks of an operand's K tile. In shared memory a tile is a number of lines of contiguous
// chunks: a line is a row of the operand (K-major) or one of its K's (MN-major). A tile is copied in parts,
// one chunk a thread.
template <Major M, int Rows, int K, int Threads, int Gates = 0>
struct ThreadChunks {
    using Order = TileRows<Gates>;
    static constexpr int line_elements = M == Major::K ? K : Rows;
    static constexpr int lines = M == Major::K ? Rows : K;
    static constexpr int chunks = line_elements / chunk_elements;
    static constexpr int lines_per_part = Threads / chunks;
    static constexpr int part_bytes = lines_per_part * (M == Major::K ? 2 * K : 128);
    // Lines that are a multiple of eight apart are permuted alike, and equally far from alignment.
    static_assert(Threads % chunks == 0 && lines_per_part % 8 == 0);

    static constexpr int parts = lines / lines_per_part;
    static_assert(lines % lines_per_part == 0);
    static_assert(Gates % (M == Major::K ? lines_per_part : chunk_elements) == 0);

    const char* next;           // this thread's first chunk of the next K tile
    uint32_t line_bytes;        // from a line to the next
    int64_t up_bytes;           // K-major: from a gate to its up element; not used without gates
    int line, element, offset;  // of this thread in the first part; `offset` in bytes
    int rows_left;

    // For the tile whose first element is (row, k) of an operand of `rows` rows at `base`. `up`: elements
    // from a gate to its up element.
    __device__ ThreadChunks(const OperandParams& p, const uint16_t* base, int64_t row, int64_t k,
                            int64_t rows, int thread, int64_t up = 0)
        : up_bytes(2 * up), line(thread / chunks), element(thread % chunks * chunk_elements),
          rows_left(static_cast<int>(min(rows - row, int64_t{Rows})))
    {
        const int64_t pitch = M == Major::K ? p.row_stride : p.k_stride;
        offset =
            M == Major::K ? tile_offset<M, Rows, K>(line, element) : tile_offset<M, Rows, K>(element, line);
        next = reinterpret_cast<const char*>(base + (M == Major::K ? row * pitch + k : row + k * pitch) +
                                             line * pitch);
        if constexpr (M == Major::MN && Gates != 0) {
            next += Order::is_up(element) ? up_bytes : 0;
            element = Order::index(element);
        }
        next += 2 * element;
        line_bytes = static_cast<uint32_t>(2 * pitch);
    }

    // In which part a thread's chunk would lie if rows of the tile were consecutive.
    __device__ static constexpr int place(int part)
    {
        return M == Major::K ? Order::index(part * lines_per_part) / lines_per_part : part;
    }

    // The thread's chunk of a part of the next K tile: one multiplication, since line_bytes has 32 bits.
    __device__ const char* chunk(int part) const
    {
        const char* const at =
            next + uint64_t{line_bytes} * static_cast<uint32_t>(place(part) * lines_per_part);
        return M == Major::K && Order::is_up(part * lines_per_part) ? at + up_bytes : at;
    }

    // To the K tile after the next one.
    __device__ void advance() { next += M == Major::K ? uint64_t{2 * K} : uint64_t{line_bytes} * K; }

    // This thread's chunks exist in parts whose place() is less, of a K tile of which k_left elements
    // exist.
    __device__ int count_parts(int k_left) const
    {
        const int lines_left =
            M == Major::K ? (element < k_left ? rows_left : 0) : (element < rows_left ? min(k_left, K) : 0);
        return max(0, min((lines_left - line + lines_per_part - 1) / lines_per_part, parts));
    }

    // How many elements of the chunk in a part exist, where k_left K's from the tile's first one on do.
    __device__ int count(int in_part, int k_left) const
    {
        const int k_in_tile = max(0, min(k_left, K));
        const int line_limit = M == Major::K ? rows_left : k_in_tile;
        const int element_limit = M == Major::K ? k_in_tile : rows_left;
        return line + place(in_part) * lines_per_part < line_limit
                   ? max(0, min(element_limit - element, chunk_elements))
                   : 0;
    }
};

// Producer: a thread's copies of one operand.
template <Major M, int Rows, int K, int Threads, int Gates = 0>
class Producer {
public:
    // For the tile whose first element is (row, k) of problem z, an operand of `rows` rows. `up`: as of
    // ThreadChunks.
    __device__ Producer(const OperandParams& p, int64_t row, int64_t k, int64_t rows, int32_t z, int thread,
                        int64_t up = 0)
        : chunks_(p, p.ptr + z * p.batch_stride, row, k, rows, thread, up),
          existing_parts_(chunks_.count_parts(INT32_MAX))
    {
    }

    // Does a row of the tile exist for all elements of a chunk, or for none?
    __device__ bool has_whole_chunks() const
    {
        return M == Major::K || chunks_.rows_left % chunk_elements == 0;
    }

    // Copies one of `shares` shares of a K tile, of which k_left elements exist, to the tile at `smem`.
    // What does not exist is not read: zeros are written. Whole: all of its K's or none exist, and chunks
    // exist wholly or not at all.
    template <bool Whole>
    __device__ void copy(uint32_t smem, int k_left, int share, int shares) const
    {
        const int existing = k_left > 0 ? existing_parts_ : 0;
#pragma unroll
        for (int part = 0; part < chunks_.parts; ++part) {
            if (part * shares / chunks_.parts != share)
                continue;
            const uint32_t to = smem + chunks_.offset + part * chunks_.part_bytes;
            if constexpr (Whole)
                ptx::cp_async_cg_16_or_zeros(chunks_.place(part) < existing, to, chunks_.chunk(part));
            else
                ptx::cp_async_cg_16(to, chunks_.chunk(part), 2 * chunks_.count(part, k_left));
        }
    }

    // To the next K tile.
    __device__ void advance() { chunks_.advance(); }

private:
    ThreadChunks<M, Rows, K, Threads, Gates> chunks_;
    int existing_parts_;  // of a whole K tile
};

// Shared addresses of the stages.
template <Config C>
struct Stages {
    using Layout = Smem<C>;
    uint32_t base;

    __device__ explicit Stages(const Layout& smem) : base(ptx::shared_address(&smem)) {}
    __device__ uint32_t a(int stage) const { return base + stage * static_cast<int>(sizeof Layout::a[0]); }
    __device__ uint32_t b(int stage) const
    {
        return base + static_cast<int>(offsetof(Layout, b)) + stage * static_cast<int>(sizeof Layout::b[0]);
    }
    __device__ static int next(int stage) { return stage + 1 == C.stages ? 0 : stage + 1; }
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

    // Fills all stages but the last one.
    __device__ void fill_first()
    {
#pragma unroll 1
        for (int i = 0; i < C.stages - 1; ++i) {
            copy(0, 1);
            finish_stage();
        }
    }

    // Copies one of `shares` shares of the next K tile. Past the last one it writes zeros: without a
    // branch, so that ptxas can place the copies among mma.sync.
    __device__ void copy(int share, int shares)
    {
        a_.template copy<Whole>(stages_.a(stage_), k_left_, share, shares);
        b_.template copy<Whole>(stages_.b(stage_), k_left_, share, shares);
    }

    // After all shares.
    __device__ void finish_stage()
    {
        ptx::cp_async_commit_group();
        a_.advance();
        b_.advance();
        k_left_ -= C.tile_k;
        stage_ = stages_.next(stage_);
    }

private:
    const Stages<C>& stages_;
    ProducerA& a_;
    ProducerB& b_;
    int k_left_, stage_ = 0;
};

// After it all warps may read the stage after the one they read now.
template <Config C>
__device__ inline void wait_for_stage()
{
    ptx::cp_async_wait_group<C.stages - 2>();
    __syncthreads();
}

// Adds the product of `k` elements of K, from where the producers stand, to the warp's sums. A warp loads
// fragments one K step ahead of mma.sync, across the stages; past the last K tile, fragments that it does
// not use. The copies are spread over all K steps but the last one.
template <Config C, bool Whole, typename Share, typename ProducerA, typename ProducerB>
__device__ inline void multiply_k_tiles(typename Share::Accumulator& acc, Smem<C>& smem, ProducerA& a,
                                        ProducerB& b, int k, int warp, int lane)
{
    constexpr int steps = C.tile_k / 16;
    static_assert(steps % 2 == 0);
    acc.clear();
    if (k <= 0)
        return;
    const WarpPlace<C> place(warp);
    const typename Share::Lane offsets(place.m, place.n, lane);
    const Stages<C> stages(smem);
    Filler<C, Whole, ProducerA, ProducerB> filler(stages, a, b, k);
    filler.fill_first();
    wait_for_stage<C>();
    typename Share::Fragments f[2];
    typename Share::Lane at(offsets, stages.a(0), stages.b(0));
    Share::load(f[0], at, 0);
    int stage = 0;
    for (int k_left = k; k_left > 0; k_left -= C.tile_k) {
        stage = stages.next(stage);
        const typename Share::Lane next(offsets, stages.a(stage), stages.b(stage));
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            if (step + 1 < steps) {
                Share::load(f[(step + 1) % 2], at, 16 * (step + 1));
                filler.copy(step, steps - 1);
            } else {
                Share::load(f[0], next, 0);
            }
            if (step + 2 == steps) {
                filler.finish_stage();
                wait_for_stage<C>();
            }
            Share::multiply(acc, f[step % 2]);
        }
        at = next;
    }
}

// Most CTAs have whole K tiles, whose copies are simpler.
template <Config C, typename Share, typename ProducerA, typename ProducerB>
__device__ inline void multiply_tile(typename Share::Accumulator& acc, Smem<C>& smem, ProducerA& a,
                                     ProducerB& b, int k, int warp, int lane)
{
    if (k % C.tile_k == 0 && a.has_whole_chunks() && b.has_whole_chunks())
        multiply_k_tiles<C, true, Share>(acc, smem, a, b, k, warp, lane);
    else
        multiply_k_tiles<C, false, Share>(acc, smem, a, b, k, warp, lane);
}

}  // namespace hg::sm80
