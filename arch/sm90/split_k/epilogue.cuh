// Epilogue of the split-K kernels: from the consumers' sums to the output, through a tile in shared memory,
// where the stages were, that the CTA's threads read along the output's rows.
//
//   named barrier 1              the consumers of one CTA: the bias is staged; the tile is staged.
//   named barrier 4 + consumer   the 128 threads of a consumer that stores its own rows: the rows are
//                                staged.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/common/vector_store.cuh"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/gated.cuh"
#include "arch/sm90/split_k/stagger.cuh"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>
#include <utility>

namespace hg::sm90 {

// Elements of the bias that a thread loads.
constexpr int bias_elements(const Config& c)
{
    return ((c.tile_m > c.tile_n ? c.tile_m : c.tile_n) + 128 * c.consumers - 1) / (128 * c.consumers);
}

// A thread's elements of the bias, loaded before the main loop so that the epilogue does not wait for them.
template <Config C>
struct BiasShare {
    float v[bias_elements(C)];

    __device__ BiasShare(const Params& p, const TileCoord& at)
    {
        if (p.output.bias_along == BiasAlong::None) [[likely]]
            return;
        const auto bias = TileBias::of<C>(p.output, p.swap_ab, at);
#pragma unroll
        for (int i = 0; i < bias_elements(C); ++i)
            v[i] = bias.load(threadIdx.x + i * 128 * C.consumers);
    }
};

// Stages the bias at the end of the room for the tile; called by all consumers of the CTA. Returns where a
// warp's elements begin.
template <Config C, Major MB>
__device__ inline const float* share_bias(const Params& p, Smem<C, MB>& smem, const BiasShare<C>& share)
{
    constexpr int threads = 128 * C.consumers, max_elements = bias_elements(C) * threads;
    constexpr int place = staged_bytes(C) / 4 - max_elements;
    static_assert(4 * place >= max_typed_bytes(C.tile_m, C.tile_n));
    float* const to = smem.staged + place;
#pragma unroll
    for (int i = 0; i < bias_elements(C); ++i)
        to[threadIdx.x + i * threads] = share.v[i];
    ptx::bar_sync(1, threads);
    return to + (is_bias_along_n(p.output, p.swap_ab) ? 0 : threadIdx.x / 32 * 16);
}

// Stages a thread's sums of one block in the tile of floats, which the CTA's threads then read along the
// output's rows.
template <Config C>
__device__ inline void stage_floats(float* staged, bool swap_ab, int block, const float* v)
{
    const int m = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, n = 8 * block + threadIdx.x % 4 * 2;
    const int pitch = staged_pitch(C.tile_m, C.tile_n, swap_ab);
    if (swap_ab) {
        float* const to = staged + n * pitch + m;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            to[i % 2 * pitch + i / 2 * 8] = v[i];
    } else {
        float* const to = staged + m * pitch + n;
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *reinterpret_cast<float2*>(to + half * 8 * pitch) = make_float2(v[2 * half], v[2 * half + 1]);
    }
}

// Stores the owned blocks of an output that has whole vectors and no bias. A thread stores one vector of
// columns in every rows_at_once-th row.
template <Config C, bool SwapAb, Major MB>
__device__ inline void store_owned_vectors(const Params& p, float alpha, const Smem<C, MB>& smem,
                                           const OwnedBlocks& owned)
{
    const TileCoord& at = smem.at;
    constexpr int vectors = (SwapAb ? C.tile_m : C.tile_n) / epilogue_vector;
    constexpr int rows_at_once = 128 * C.consumers / vectors;
    constexpr int rows = SwapAb ? C.tile_n : C.tile_m, pitch = staged_pitch(C.tile_m, C.tile_n, SwapAb);
    const int vector = threadIdx.x % vectors, first = threadIdx.x / vectors;
    const int64_t i0 = SwapAb ? at.n : at.m;
    const int64_t j = int64_t{SwapAb ? at.m : at.n} + vector * epilogue_vector;
    if (j >= p.output.n || first >= rows_at_once || (!SwapAb && !owned.has(vector)))
        return;
    const VectorColumn out(p.output, alpha, j, at.batch);
    const int end = static_cast<int>(min(int64_t{rows}, end_of_rows(p, smem) - i0));
#pragma unroll 4
    for (int r = first; r < end; r += rows_at_once) {
        if (SwapAb && !owned.has(r / 8))
            continue;
        out.store(i0 + r, smem.staged + r * pitch + vector * epilogue_vector);
    }
}

// Where the owned blocks lie in the output, and how much of them exists. With swap_ab the output's rows are
// the tile's columns.
struct OwnedPlace {
    int64_t i, j;
    int first_row, first_column, rows, columns;  // of the tile

    template <Config C, Major MB>
    __device__ static OwnedPlace of(const Params& p, const OwnedBlocks& owned, const Smem<C, MB>& smem)
    {
        const TileCoord& at = smem.at;
        const int first_row = p.swap_ab ? 8 * owned.first : 0,
                  first_column = p.swap_ab ? 0 : 8 * owned.first;
        const int64_t i = int64_t{p.swap_ab ? at.n : at.m} + first_row;
        const int64_t j = int64_t{p.swap_ab ? at.m : at.n} + first_column;
        const int64_t count_n = 8 * owned.blocks();
        return {i,
                j,
                first_row,
                first_column,
                static_cast<int>(min(p.swap_ab ? count_n : int64_t{C.tile_m}, end_of_rows(p, smem) - i)),
                static_cast<int>(min(p.swap_ab ? int64_t{C.tile_m} : count_n, p.output.n - j))};
    }

    // The rows that a thread stores.
    __device__ ThreadRows thread_rows(const Params& p) const
    {
        const auto thread = static_cast<int32_t>(threadIdx.x);
        const int32_t step = p.rows_at_once.value, first = p.row_vectors.quotient(thread);
        const int column = (thread - first * p.row_vectors.value) * epilogue_vector;
        const bool none = first >= step || column >= columns || first >= rows;
        return {i + first, j + column, step, none ? 0 : p.rows_at_once.quotient(rows - first - 1) + 1};
    }
};

// A thread's rows of a tile of floats: the Sums of finish_vectors().
template <int VectorsOfC>
struct TileRows {
    static constexpr int vectors_of_c = VectorsOfC;
    float* first;
    int step;  // floats from one row to the next

    __device__ void get(float (&v)[8], int r) const
    {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] = reinterpret_cast<const float4*>(first + r * step)[half];
    }

    __device__ void put(const float (&v)[8], int r) const
    {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(first + r * step)[half] = reinterpret_cast<const float4*>(v)[half];
    }
};

// Who prefetches into L2 what finish_vectors() and finish_elements() read? The producer, behind its first
// loads, which it would delay before them. With more consumers a tile has more rows, which would take the
// one warp too long: there the consumers prefetch, before their main loop.
constexpr bool does_producer_prefetch(const Config& c) { return c.consumers == 1; }

template <Config C>
__device__ inline void prefetch_split_output(const Params& p, const Scalars& s, const ClusterCoord& coord,
                                             const TileCoord& at)
{
    constexpr int threads = does_producer_prefetch(C) ? 32 : 128 * C.consumers;
    prefetch_tile_output<C>(p, s, at, 0, C.tile_m,
                            static_cast<int>(threadIdx.x) % threads + coord.slice * threads,
                            p.split * threads);
}

// From complete sums to the output. The properties of the output that select a path are read before the
// main loop, into one register: afterwards all consumers would wait for the parameters.
template <Config C, Type T, Major MB>
class SplitStore {
public:
    const Params& p;
    const Scalars& s;
    Smem<C, MB>& smem;

    __device__ SplitStore(const Params& p, const Scalars& s, Smem<C, MB>& smem)
        : p(p), s(s), smem(smem), to_(ptx::mov_b32(typed_place<C>(smem.staged, p))), gated_(p, smem)
    {
        const bool typed = !C.is_gated() && p.vectors && p.output.type_d == T;
        const bool biased = p.output.bias_along != BiasAlong::None;
        properties_ = ptx::mov_b32((typed ? Typed : 0) | (p.swap_ab ? SwapAb : 0) |
                                   (p.split == 1 ? Unsplit : 0) | (typed && biased ? Biased : 0) |
                                   (!C.is_gated() && (!p.vectors || (!typed && biased)) ? General : 0) |
                                   (does_stagger<C>(p) ? Staggered : 0));
    }

    // Before the main loop: prefetches, and computes what a thread needs for finish_vectors().
    __device__ void prepare(const ClusterCoord& coord, const OwnedBlocks& owned)
    {
        if (!has(General)) [[likely]]
            return;
        if (!does_producer_prefetch(C) && p.prefetches_output)
            prefetch_split_output<C>(p, s, coord, smem.at);
        if (finds_early && find_column(owned, column_))
            properties_ |= Aligned;
    }

    // Stages the bias; called by all consumers of the CTA when none reads the stages any more.
    __device__ void stage_bias(const BiasShare<C>& share)
    {
        if (has(Biased)) [[unlikely]]
            bias_ = share_bias<C>(p, smem, share);
    }

    __device__ bool is_unsplit() const { return has(Unsplit); }
    __device__ bool is_staggered() const { return can_stagger(C) && has(Staggered); }
    // The output has the type of the operands and no bias.
    __device__ bool is_plain() const { return has(Typed) && !bias_; }
    __device__ uint32_t block_address(int block) const { return to_ + block * step(); }
    __device__ uint32_t step() const { return typed_step(C.tile_m, C.tile_n, has(SwapAb)); }

    // Stages a thread's sums of one block in the output's type.
    __device__ void store_fragment(uint32_t to, const float (&v)[4]) const
    {
        const uint32_t bits[2] = {to_bits2(__fmul_rn(s.alpha, v[0]), __fmul_rn(s.alpha, v[1]), T),
                                  to_bits2(__fmul_rn(s.alpha, v[2]), __fmul_rn(s.alpha, v[3]), T)};
        if (has(SwapAb))
            ptx::stmatrix_x2_trans(to, bits[0], bits[1]);
        else
            ptx::stmatrix_x2(to, bits[0], bits[1]);
    }

    // Stages a thread's sums of one block for an output of another type, or with a bias.
    __device__ void stage(int block, float (&v)[4]) const
    {
        if (!has(Typed))
            return stage_floats<C>(smem.staged, has(SwapAb), block, v);
#pragma unroll
        for (float& sum : v)
            sum = __fmul_rn(s.alpha, sum);
        const bool along_n = is_bias_along_n(p.output, has(SwapAb));
        add_bias<8>(v, bias_ + (along_n ? 8 * block : 0), along_n);
        const uint32_t to = block_address(block);
        if (has(SwapAb))
            ptx::stmatrix_x2_trans(to, to_bits2(v[0], v[1], T), to_bits2(v[2], v[3], T));
        else
            ptx::stmatrix_x2(to, to_bits2(v[0], v[1], T), to_bits2(v[2], v[3], T));
    }

    // Stages all blocks of a thread's sums, for any output.
    __device__ void stage_all(float (&acc)[C.tile_n / 2]) const
    {
        if (!has(Typed)) [[unlikely]] {
#pragma unroll
            for (int block = 0; block < C.tile_n / 8; ++block)
                stage_floats<C>(smem.staged, has(SwapAb), block, acc + 4 * block);
            return;
        }
        scale(acc);
        if (bias_) [[unlikely]]
            add_bias<C.tile_n>(acc, bias_, is_bias_along_n(p.output, has(SwapAb)));
        stage_typed<C.tile_m>(acc, to_);
    }

    // A staggered consumer stores its own rows through stage `stage`.
    __device__ void store_staggered(float (&acc)[C.tile_n / 2], int stage, const VectorRows& rows) const
    {
        static_assert(max_typed_bytes(64, C.tile_n) <= sizeof(typename Smem<C, MB>::Stage));
        scale(acc);
        stage_typed<64>(acc, to_ + stage * sizeof(typename Smem<C, MB>::Stage));
        ptx::bar_sync(consumer_barrier + threadIdx.x / 128, 128);
        rows.store(&smem.stage[stage]);
    }

    // Called by all consumers of the CTA after staging; returns false if the output is not whole vectors of
    // the operands' type.
    __device__ bool store_typed(const VectorRows& rows) const
    {
        ptx::bar_sync(1, 128 * C.consumers);
        if (!has(Typed)) [[unlikely]]
            return false;
        rows.store(smem.staged);
        return true;
    }

    // Stores any other output, after store_typed(). This inlines much code: call it once per kernel.
    __device__ void store_floats(const OwnedBlocks& owned, int32_t rows) const
    {
        if constexpr (C.is_gated())
            gated_.template store<T>(p, smem.at, s.alpha, smem.staged, owned);
        else if (has(General))
            store_general(owned, rows);
        else if (has(SwapAb))
            store_owned_vectors<C, true>(p, s.alpha, smem, owned);
        else
            store_owned_vectors<C, false>(p, s.alpha, smem, owned);
    }

private:
    // Properties of the output:
    //   Typed       whole vectors of the operands' type
    //   Unsplit     one slice of K
    //   Biased      Typed, with a bias
    //   Staggered   each consumer stores its own rows
    //   General     stored by finish_vectors() where the vectors are Aligned, else by finish_elements()
    enum Property : uint32_t {
        Typed = 1,
        SwapAb = 2,
        Unsplit = 4,
        Biased = 8,
        Staggered = 16,
        General = 32,
        Aligned = 64
    };

    // Computes the OutputColumn before the main loop. Not with three consumers, which have 128 registers
    // per thread and would spill, nor with SplitKGlobal, which may also store other slices' blocks.
    static constexpr bool finds_early = C.consumers < 3 && !C.is_global();

    // Vectors of 16 bytes of C that fit in a thread's registers, in which no sums are any more. More would
    // spill.
    static constexpr int vectors_of_c = C.consumers == 3                                           ? 2
                                        : C.ctas_per_sm > 2 || (C.is_global() && C.consumers == 2) ? 4
                                                                                                   : 8;

    __device__ bool has(Property property) const { return (properties_ & property) != 0; }

    // Returns false if the output is not whole aligned vectors.
    __device__ bool find_column(const OwnedBlocks& owned, OutputColumn<T>& column) const
    {
        const auto place = OwnedPlace::of<C>(p, owned, smem);
        const OutputBases bases(p.output, s, smem.at.batch);
        const ThreadRows rows = place.thread_rows(p);
        if (!bases.vectors || place.columns % epilogue_vector != 0)
            return false;
        if (rows.rows > 0)
            column = OutputColumn<T>(p.output, bases, rows);
        return true;
    }

    __device__ void store_general(const OwnedBlocks& owned, int32_t rows) const
    {
        if constexpr (finds_early) {
            if (has(Aligned))
                return store_vectors(owned, rows, column_);
        } else {
            OutputColumn<T> column;
            if (find_column(owned, column))
                return store_vectors(owned, rows, column);
        }
        store_elements(owned);
    }

    __device__ int pitch() const { return staged_pitch(C.tile_m, C.tile_n, has(SwapAb)); }

    __device__ void store_elements(const OwnedBlocks& owned) const
    {
        const auto place = OwnedPlace::of<C>(p, owned, smem);
        float* const sums = smem.staged + place.first_row * pitch() + place.first_column;
        finish_elements(p.output, s, OutputBases(p.output, s, smem.at.batch), place.i, place.j, place.rows,
                        place.columns, threadIdx.x / 32, 4 * C.consumers,
                        [&](int row, int column) -> float& { return sums[row * pitch() + column]; });
    }

    // Stores the `rows` rows of a thread.
    __device__ void store_vectors(const OwnedBlocks& owned, int32_t rows,
                                  const OutputColumn<T>& output) const
    {
        if (rows == 0)
            return;
        const auto thread = static_cast<int32_t>(threadIdx.x);
        const int32_t first = p.row_vectors.quotient(thread);
        const int32_t column = (thread - first * p.row_vectors.value) * epilogue_vector;
        const int32_t row = first + (has(SwapAb) ? 8 * owned.first : 0);
        float* const sums = smem.staged + row * pitch() + column + (has(SwapAb) ? 0 : 8 * owned.first);
        finish_vectors<T>(
            p.output, s, output, rows, TileRows<vectors_of_c>{sums, p.rows_at_once.value * pitch()}, [&] {
                const auto place = OwnedPlace::of<C>(p, owned, smem);
                return std::pair(OutputBases(p.output, s, smem.at.batch), place.thread_rows(p));
            });
    }

    __device__ void scale(float (&acc)[C.tile_n / 2]) const
    {
#pragma unroll
        for (float& v : acc)
            v = __fmul_rn(s.alpha, v);
    }

    // Stages all blocks of a tile of M by tile_n; `to`: the address for the first.
    template <int M>
    __device__ void stage_typed(const float (&acc)[C.tile_n / 2], uint32_t to) const
    {
        if (has(SwapAb))
            stage_blocks<C, T, M, true>(to, acc);
        else
            stage_blocks<C, T, M, false>(to, acc);
    }

    const uint32_t to_;  // typed_place(): the address for block 0
    const GatedVectors<C> gated_;
    uint32_t properties_;
    OutputColumn<T> column_;       // General and Aligned, if finds_early
    const float* bias_ = nullptr;  // a warp's staged elements; null: none
};

}  // namespace hg::sm90
