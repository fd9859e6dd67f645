// GEMM for operands that are contiguous in one dimension but need not be aligned: any leading dimension,
// any element-aligned base, pointer arrays. A thread reads the two aligned vectors that a chunk lies in to
// registers while the warps multiply the previous K tile, then stores the chunk to the other stage.
//
// Barriers: one __syncthreads() per K tile, between storing a stage and reading it; with two stages it also
// keeps a warp from overwriting a stage that another warp still reads.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/sm80/kernel.cuh"
#include "arch/sm80/mainloop.cuh"

namespace hg::sm80 {

// Producer: a thread's chunks of one operand.
template <Major M, int Rows, int K, int Threads>
class UnalignedProducer {
    using Chunks = ThreadChunks<M, Rows, K, Threads>;
    static constexpr int parts = Chunks::parts;

public:
    // For the tile whose first element is (row, k) of problem z, an operand of `rows` rows and `ks` K's.
    __device__ UnalignedProducer(const OperandParams& p, int32_t z, int64_t row, int64_t k, int64_t rows,
                                 int64_t ks, int thread)
        : chunks_(p, problem_operand(p, z), row, k, rows, thread), begin_(p.begin), end_(p.end)
    {
        if (p.array) {
            begin_ = address(problem_operand(p, z));
            end_ = address(problem_operand(p, z) + extent(p, rows, ks));
        }
    }

    // Reads the next K tile, of which k_left elements exist.
    __device__ void read(int k_left)
    {
        if (M == Major::K)
            k_count_ = max(0, min(k_left - chunks_.element, chunk_elements));
        misalignment_ = static_cast<uint32_t>(address(chunks_.next)) % 16;
        const int existing = chunks_.count_parts(k_left);
        if (is_inside(existing)) [[likely]]
            read_inside(existing);
        else
            read_at_ends(existing);
        chunks_.advance();
    }

    // Stores what read() holds in registers. What a chunk holds past the last row reaches rows of D alone
    // that are not stored.
    __device__ void store(uint16_t* smem) const
    {
#pragma unroll
        for (int part = 0; part < parts; ++part) {
            uint4 chunk = extract_vector(low_[part], high_[part], misalignment_);
            if (M == Major::K && k_count_ < chunk_elements)
                chunk = keep_elements(chunk, k_count_);
            *reinterpret_cast<uint4*>(reinterpret_cast<char*>(smem) + chunks_.offset +
                                      part * Chunks::part_bytes) = chunk;
        }
    }

private:
    // The aligned vectors that the elements of a chunk lie in, `count` of them; often one vector twice.
    struct Vectors {
        uintptr_t low, high;

        __device__ Vectors(const char* chunk, int count)
            : low(address(chunk) & ~uintptr_t{15}), high((address(chunk) + 2 * count - 1) & ~uintptr_t{15})
        {
        }
    };

    __device__ static uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }
    __device__ static uint4 load(uintptr_t at) { return *reinterpret_cast<const uint4*>(at); }

    // Elements of a chunk that exist.
    __device__ int count() const
    {
        return M == Major::K ? k_count_ : min(chunks_.rows_left - chunks_.element, chunk_elements);
    }

    // Does a vector lie within the operands of the batch or, of an array, within the one of this problem?
    __device__ bool holds(uintptr_t vector) const { return vector >= begin_ && vector + 16 <= end_; }

    // ... do those of all chunks of the thread?
    __device__ bool is_inside(int existing) const
    {
        return existing == 0 || (Vectors(chunks_.next, count()).low >= begin_ &&
                                 Vectors(chunks_.chunk(existing - 1), count()).high + 16 <= end_);
    }

    // Parts that do not exist are zeros.
    __device__ void read_inside(int existing)
    {
#pragma unroll
        for (int part = 0; part < parts; ++part) {
            const Vectors at(chunks_.chunk(part), count());
            low_[part] = high_[part] = make_uint4(0, 0, 0, 0);
            if (part < existing) {
                low_[part] = load(at.low);
                high_[part] = load(at.high);
            }
        }
    }

    // Reads a vector that reaches past an end of the operand by elements; zeros are put past the end.
    __device__ void read_at_ends(int existing)
    {
#pragma unroll
        for (int part = 0; part < parts; ++part) {
            const Vectors at(chunks_.chunk(part), count());
            low_[part] = high_[part] = make_uint4(0, 0, 0, 0);
            if (part < existing && holds(at.low))
                low_[part] = load(at.low);
            if (part < existing && holds(at.high))
                high_[part] = load(at.high);
        }
#pragma unroll 1
        for (int part = 0; part < existing; ++part) {
            const Vectors at(chunks_.chunk(part), count());
            if (!holds(at.low))
                put_vector(low_, part, gather_within(at.low, begin_, end_));
            if (!holds(at.high))
                put_vector(high_, part, gather_within(at.high, begin_, end_));
        }
    }

    Chunks chunks_;
    uintptr_t begin_, end_;      // see holds()
    int k_count_ = 0;            // K-major: elements of a chunk that exist
    uint32_t misalignment_ = 0;  // of all chunks, in bytes
    uint4 low_[parts], high_[parts];
};

// Adds the product of `k` elements of K, at least one, from where the producers stand.
template <Config C, typename Share, typename ProducerA, typename ProducerB>
__device__ inline void multiply_unaligned(typename Share::Accumulator& acc, Smem<C>& smem, ProducerA& a,
                                          ProducerB& b, int k, int warp, int lane)
{
    static_assert(C.stages == 2);
    const WarpPlace<C> place(warp);
    const typename Share::Lane offsets(place.m, place.n, lane);
    a.read(k);
    b.read(k);
    int stage = 0;
    for (int k_left = k; k_left > 0; k_left -= C.tile_k, stage ^= 1) {
        a.store(smem.a[stage]);
        b.store(smem.b[stage]);
        __syncthreads();
        if (k_left > C.tile_k) {
            a.read(k_left - C.tile_k);
            b.read(k_left - C.tile_k);
        }
        Share::accumulate(
            acc, {offsets, ptx::shared_address(smem.a[stage]), ptx::shared_address(smem.b[stage])});
    }
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void run_unaligned_tile(const Params& p, Smem<C>& smem)
{
    using Share = WarpTile<T, MA, MB, C.tile_k, C.warp_m(), C.warp_n()>;
    const int thread = threadIdx.x;
    const Scheduler work(p, blockIdx.x);
    const TilePlace at = PlainTiles::find<C>(p, work.tile);
    const KRange range = KRange::of_slice(p, work, C.tile_k);
    typename Share::Accumulator acc;
    acc.clear();
    if (range.count > 0) {
        UnalignedProducer<MA, C.tile_m, C.tile_k, C.threads()> a(p.a, at.batch, at.row, range.first,
                                                                 p.output.m, p.k, thread);
        UnalignedProducer<MB, C.tile_n, C.tile_k, C.threads()> b(p.b, at.batch, at.column, range.first,
                                                                 p.output.n, p.k, thread);
        multiply_unaligned<C, Share>(acc, smem, a, b, range.count, thread / 32, thread % 32);
    }
    store_tile<C, T, PlainTiles>(p, smem, acc);
}

}  // namespace hg::sm80
