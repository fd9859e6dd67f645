// GEMM for operands that are contiguous in one dimension but need not be aligned: any leading dimension,
// any element-aligned base, pointer arrays. A thread reads the two aligned vectors that a chunk lies in to
// registers while the warps multiply the previous K tile, then stores the chunk to the other stage.
//
// Barriers: one __syncthreads() per K tile, between storing a stage and reading it; with two stages it also
// keeps a warp from overwriting a stage that another warp still reads.
#pragma once

#include "arch/sm80/kernel.cuh"

namespace hg::sm80 {

// Producer: a thread's chunks of one operand.
template <Major M, int Rows, int K, int Threads>
class UnalignedProducer {
    using Chunks = ThreadChunks<M, Rows, K, Threads>;
    static constexpr int parts = Chunks::parts;

public:
    // For the tile whose first element is (row, k) of an operand of `rows` rows and `ks` K's at `base`.
    __device__ UnalignedProducer(const OperandParams& p, const uint16_t* base, int64_t row, int64_t k,
                                 int64_t rows, int64_t ks, int thread)
        : chunks_(p, base, row, k, rows, thread), begin_(reinterpret_cast<uintptr_t>(base)),
          end_(reinterpret_cast<uintptr_t>(base + (rows - 1) * p.row_stride + (ks - 1) * p.k_stride + 1))
    {
    }

    // Reads the next K tile, of which k_left elements exist: to registers if all aligned vectors that the
    // thread's chunks touch lie within the operand, else by elements straight to the tile at `smem`, which
    // no warp reads.
    __device__ void read(uint16_t* smem, int k_left)
    {
        // The part of a chunk past the last row holds elements of other K's. They reach rows of D alone
        // that are not stored.
        count_ = M == Major::K ? max(0, min(k_left - chunks_.element, chunk_elements)) : chunk_elements;
        const int existing = chunks_.count_parts(k_left);
        is_held_ = is_inside(existing);
        if (is_held_)
            read_vectors(existing);
        else
            copy_elements(smem, k_left);
        chunks_.advance();
    }

    // Stores what read() holds in registers.
    __device__ void store(uint16_t* smem) const
    {
        if (!is_held_)
            return;
#pragma unroll
        for (int part = 0; part < parts; ++part) {
            uint4 chunk = extract_vector(low_[part], high_[part], misalignment_);
            if (M == Major::K && count_ < chunk_elements)
                chunk = keep_elements(chunk, count_);
            *chunk_at(smem, part) = chunk;
        }
    }

private:
    __device__ static uintptr_t address(const char* element)
    {
        return reinterpret_cast<uintptr_t>(element);
    }
    __device__ static uintptr_t round_down(uintptr_t address) { return address & ~uintptr_t{15}; }

    __device__ uint4* chunk_at(uint16_t* smem, int part) const
    {
        return reinterpret_cast<uint4*>(reinterpret_cast<char*>(smem) + chunks_.offset +
                                        part * Chunks::part_bytes);
    }

    __device__ bool is_inside(int existing) const
    {
        const uintptr_t last = address(chunks_.next) + uintptr_t{chunks_.line_bytes} *
                                                           static_cast<uint32_t>(Chunks::lines_per_part) *
                                                           static_cast<uint32_t>(existing - 1);
        return existing == 0 ||
               (round_down(address(chunks_.next)) >= begin_ && round_down(last + 15) + 16 <= end_);
    }

    // An aligned chunk's second vector is the first. Parts that do not exist are zeros.
    __device__ void read_vectors(int existing)
    {
        misalignment_ = static_cast<uint32_t>(address(chunks_.next)) % 16;
#pragma unroll
        for (int part = 0; part < parts; ++part) {
            const uintptr_t from = address(chunks_.chunk(part));
            low_[part] = high_[part] = make_uint4(0, 0, 0, 0);
            if (part < existing) {
                low_[part] = *reinterpret_cast<const uint4*>(round_down(from));
                high_[part] = *reinterpret_cast<const uint4*>(round_down(from + 15));
            }
        }
    }

    __device__ void copy_elements(uint16_t* smem, int k_left) const
    {
#pragma unroll 1
        for (int part = 0; part < parts; ++part)
            *chunk_at(smem, part) = gather_vector(reinterpret_cast<const uint16_t*>(chunks_.chunk(part)), 1,
                                                  chunks_.count(part, k_left));
    }

    Chunks chunks_;
    uintptr_t begin_, end_;  // of the operand
    bool is_held_ = false;
    int count_ = 0;              // elements of a chunk that exist
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
    a.read(smem.a[0], k);
    b.read(smem.b[0], k);
    int stage = 0;
    for (int k_left = k; k_left > 0; k_left -= C.k, stage ^= 1) {
        a.store(smem.a[stage]);
        b.store(smem.b[stage]);
        __syncthreads();
        if (k_left > C.k) {
            a.read(smem.a[stage ^ 1], k_left - C.k);
            b.read(smem.b[stage ^ 1], k_left - C.k);
        }
        Share::accumulate(
            acc, {offsets, ptx::shared_address(smem.a[stage]), ptx::shared_address(smem.b[stage])});
    }
}

template <Config C, Type T, Major MA, Major MB>
__device__ inline void run_unaligned_tile(const Params& p, Smem<C>& smem)
{
    using Share = WarpTile<T, MA, MB, C.k, C.warp_m(), C.warp_n()>;
    const int thread = threadIdx.x;
    const CtaWork work(p, blockIdx.x);
    const TilePlace at = PlainTiles::find<C>(p, work.tile);
    const KRange range(p, work, C.k);
    typename Share::Accumulator acc;
    acc.clear();
    if (range.count > 0) {
        UnalignedProducer<MA, C.m, C.k, C.threads()> a(p.a, problem_operand(p.a, at.batch), at.row,
                                                       range.first, p.output.m, p.k, thread);
        UnalignedProducer<MB, C.n, C.k, C.threads()> b(p.b, problem_operand(p.b, at.batch), at.column,
                                                       range.first, p.output.n, p.k, thread);
        multiply_unaligned<C, Share>(acc, smem, a, b, range.count, thread / 32, thread % 32);
    }
    store_tile<C, T, PlainTiles>(p, smem, acc);
}

}  // namespace hg::sm80
