// Epilogue of the split kernels: from the consumers' sums to the output, through a tile in shared memory,
// where the stages were, that the CTA's threads read along the output's rows.
//
// Named barriers: 1, the consumers of one CTA, which have brought the bias; which have written the tile.
//                 4 + consumer, its 128 threads, which have written their rows of a tile that they store by
//                 themselves.
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
#include "arch/sm90/split_k/stagger.cuh"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>
#include <utility>

namespace hg::sm90 {

// Elements of the bias that a thread brings.
constexpr int bias_elements(const Config& c)
{
    return ((c.tile_m > c.tile_n ? c.tile_m : c.tile_n) + 128 * c.consumers - 1) / (128 * c.consumers);
}

// Read before the product, so that nobody waits for them.
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

// Brings the bias to the end of the room for the tile; all consumers of the CTA. Returns where it begins
// for a warp.
template <Config C, Major MB>
__device__ inline const float* share_bias(const Params& p, Smem<C, MB>& smem, const BiasShare<C>& share)
{
    constexpr int threads = 128 * C.consumers, most = bias_elements(C) * threads;
    constexpr int place = staged_bytes(C) / 4 - most;
    static_assert(4 * place >= max_typed_bytes(C, C.tile_m));
    float* const to = smem.staged + place;
#pragma unroll
    for (int i = 0; i < bias_elements(C); ++i)
        to[threadIdx.x + i * threads] = share.v[i];
    ptx::bar_sync(1, threads);
    return to + (is_bias_along_n(p.output, p.swap_ab) ? 0 : threadIdx.x / 32 * 16);
}

// A thread's sums of one block into the tile of floats that the CTA's threads then read along the output's
// rows.
template <Config C>
__device__ inline void stage_floats(float* staged, bool swap_ab, int block, const float* v)
{
    const int m = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, n = 8 * block + threadIdx.x % 4 * 2;
    const int pitch = staged_pitch(C, swap_ab);
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

// The owned part of the tile where the output is made of whole vectors and has no bias. A thread has one
// vector of columns, in every so many rows.
template <Config C, bool SwapAb>
__device__ inline void store_part_vectors(const Params& p, float alpha, const float* staged,
                                          const Part& part, const TileCoord& at)
{
    constexpr int vectors = (SwapAb ? C.tile_m : C.tile_n) / epilogue_vector;
    constexpr int rows_at_once = 128 * C.consumers / vectors;
    constexpr int rows = SwapAb ? C.tile_n : C.tile_m, pitch = staged_pitch(C, SwapAb);
    const int vector = threadIdx.x % vectors, first = threadIdx.x / vectors;
    const int64_t i0 = int64_t{SwapAb ? at.n : at.m} * rows;
    const int64_t j = int64_t{SwapAb ? at.m : at.n} * vectors * epilogue_vector + vector * epilogue_vector;
    if (j >= p.output.n || first >= rows_at_once || (!SwapAb && !part.has(vector)))
        return;
    const VectorColumn out(p.output, alpha, j, at.batch);
    const int end = static_cast<int>(min(int64_t{rows}, p.output.m - i0));
#pragma unroll 4
    for (int r = first; r < end; r += rows_at_once) {
        if (SwapAb && !part.has(r / 8))
            continue;
        out.store(i0 + r, staged + r * pitch + vector * epilogue_vector);
    }
}

// Where the owned part of a tile lies in the output, and what exists of it. Swapped, rows are y.
struct PartPlace {
    int64_t i, j;
    int first_row, first_column, rows, columns;  // of the tile

    template <Config C>
    __device__ static PartPlace of(const Params& p, const Part& part, const TileCoord& at)
    {
        const int first_row = p.swap_ab ? 8 * part.first : 0, first_column = p.swap_ab ? 0 : 8 * part.first;
        const int64_t i = (p.swap_ab ? int64_t{at.n} * C.tile_n : int64_t{at.m} * C.tile_m) + first_row;
        const int64_t j = (p.swap_ab ? int64_t{at.m} * C.tile_m : int64_t{at.n} * C.tile_n) + first_column;
        const int64_t count_n = 8 * part.blocks();
        return {i,
                j,
                first_row,
                first_column,
                static_cast<int>(min(p.swap_ab ? count_n : int64_t{C.tile_m}, p.output.m - i)),
                static_cast<int>(min(p.swap_ab ? int64_t{C.tile_m} : count_n, p.output.n - j))};
    }

    // The rows of a thread.
    __device__ RowsOfThread rows_of_thread(const Params& p) const
    {
        const auto thread = static_cast<int32_t>(threadIdx.x);
        const int32_t step = p.rows_at_once.value, first = p.row_vectors.quotient(thread);
        const int column = (thread - first * p.row_vectors.value) * epilogue_vector;
        const bool none = first >= step || column >= columns || first >= rows;
        return {i + first, j + column, step, none ? 0 : p.rows_at_once.quotient(rows - first - 1) + 1};
    }
};

// A thread's rows of a tile of floats: see finish_vectors().
template <int VectorsOfC>
struct TileRows {
    static constexpr int vectors_of_c = VectorsOfC;
    float* first;
    int step;  // floats from one to the next

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

// From complete sums to the output. What decides how is read before the product, into a register: behind it
// all consumers would wait for parameters.
template <Config C, Type T, Major MB>
class SplitStore {
public:
    const Params& p;
    const Scalars& s;
    Smem<C, MB>& smem;

    __device__ SplitStore(const Params& p, const Scalars& s, Smem<C, MB>& smem)
        : p(p), s(s), smem(smem), to_(ptx::mov_b32(typed_place<C>(smem.staged, p)))
    {
        const bool typed = p.vectors && p.output.type_d == T;
        const bool biased = p.output.bias_along != BiasAlong::None;
        traits_ = ptx::mov_b32((typed ? Typed : 0) | (p.swap_ab ? SwapAb : 0) | (p.split == 1 ? Whole : 0) |
                               (typed && biased ? Biased : 0) |
                               (!p.vectors || (!typed && biased) ? Finished : 0) |
                               (does_stagger<C>(p) ? Staggered : 0));
    }

    // Before the product, of an output that needs finish_vectors() or finish_elements(): L2 is asked for
    // what they read, and what a thread needs for them is found.
    __device__ void prepare(const ClusterCoord& coord, const Part& part)
    {
        if (!has(Finished)) [[likely]]
            return;
        constexpr int threads = 128 * C.consumers;
        prefetch_tile_output<C>(p, s, smem.at, 0, C.tile_m,
                                static_cast<int>(threadIdx.x) + coord.slice * threads, p.split * threads);
        if (finds_early && find(part, column_))
            traits_ |= Aligned;
    }

    // All consumers of the CTA, which do not read the stages any more.
    __device__ void begin(const BiasShare<C>& share)
    {
        if (has(Biased)) [[unlikely]]
            bias_ = share_bias<C>(p, smem, share);
    }

    __device__ bool is_whole() const { return has(Whole); }
    __device__ bool is_staggered() const { return may_stagger(C) && has(Staggered); }
    // In the type of the operands, without a bias.
    __device__ bool is_plain() const { return has(Typed) && !bias_; }
    __device__ uint32_t place_of(int block) const { return to_ + block * step(); }
    __device__ uint32_t step() const { return typed_step(C, C.tile_m, has(SwapAb)); }

    // A thread's sums of one block, to where it goes in a tile of the output's type.
    __device__ void store_fragment(uint32_t to, const float (&v)[4]) const
    {
        const uint32_t bits[2] = {to_bits2(__fmul_rn(s.alpha, v[0]), __fmul_rn(s.alpha, v[1]), T),
                                  to_bits2(__fmul_rn(s.alpha, v[2]), __fmul_rn(s.alpha, v[3]), T)};
        if (has(SwapAb))
            ptx::stmatrix_x2_trans(to, bits[0], bits[1]);
        else
            ptx::stmatrix_x2(to, bits[0], bits[1]);
    }

    // A thread's sums of one block, where the output is another, or takes a bias.
    __device__ void stage(int block, float (&v)[4]) const
    {
        if (!has(Typed))
            return stage_floats<C>(smem.staged, has(SwapAb), block, v);
#pragma unroll
        for (float& sum : v)
            sum = __fmul_rn(s.alpha, sum);
        const bool along_n = is_bias_along_n(p.output, has(SwapAb));
        add_bias<8>(v, bias_ + (along_n ? 8 * block : 0), along_n);
        const uint32_t to = place_of(block);
        if (has(SwapAb))
            ptx::stmatrix_x2_trans(to, to_bits2(v[0], v[1], T), to_bits2(v[2], v[3], T));
        else
            ptx::stmatrix_x2(to, to_bits2(v[0], v[1], T), to_bits2(v[2], v[3], T));
    }

    // All blocks of a thread's sums, of any output.
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

    // A consumer of a tile of which each stores its rows of x by itself, through stage number `stage`.
    __device__ void store_own(float (&acc)[C.tile_n / 2], int stage, const VectorRows& rows) const
    {
        static_assert(max_typed_bytes(C, 64) <= sizeof(typename Smem<C, MB>::Stage));
        scale(acc);
        stage_typed<64>(acc, to_ + stage * sizeof(typename Smem<C, MB>::Stage));
        ptx::bar_sync(own_barrier + threadIdx.x / 128, 128);
        rows.store(&smem.stage[stage]);
    }

    // All consumers of the CTA, which have staged the part: true if the output is of the operands' type.
    __device__ bool store_typed(const VectorRows& rows) const
    {
        ptx::bar_sync(1, 128 * C.consumers);
        if (!has(Typed)) [[unlikely]]
            return false;
        rows.store(smem.staged);
        return true;
    }

    // Any other output, after store_typed(). There is much of this: call it once in a kernel.
    __device__ void store_floats(const Part& part, int32_t rows) const
    {
        if (has(Finished))
            finish(part, rows);
        else if (has(SwapAb))
            store_part_vectors<C, true>(p, s.alpha, smem.staged, part, smem.at);
        else
            store_part_vectors<C, false>(p, s.alpha, smem.staged, part, smem.at);
    }

private:
    // Finished: by finish_vectors() where vectors are Aligned, else by finish_elements().
    enum Trait : uint32_t {
        Typed = 1,
        SwapAb = 2,
        Whole = 4,
        Biased = 8,
        Staggered = 16,
        Finished = 32,
        Aligned = 64
    };

    // Three consumers have 128 registers a thread and would spill; parts of SplitKGlobal may be others.
    static constexpr bool finds_early = C.consumers < 3 && !C.is_global();

    __device__ bool has(Trait trait) const { return (traits_ & trait) != 0; }

    // False where vectors do not fit.
    __device__ bool find(const Part& part, OutputColumn<T>& column) const
    {
        const auto place = PartPlace::of<C>(p, part, smem.at);
        const OutputBases bases(p.output, s, smem.at.batch);
        const RowsOfThread rows = place.rows_of_thread(p);
        if (!bases.vectors || place.columns % epilogue_vector != 0)
            return false;
        if (rows.rows > 0)
            column = OutputColumn<T>(p.output, bases, rows);
        return true;
    }

    __device__ void finish(const Part& part, int32_t rows) const
    {
        if constexpr (finds_early) {
            if (has(Aligned))
                return store_vectors(part, rows, column_);
        } else {
            OutputColumn<T> column;
            if (find(part, column))
                return store_vectors(part, rows, column);
        }
        store_elements(part);
    }

    __device__ int pitch() const { return staged_pitch(C, has(SwapAb)); }

    __device__ void store_elements(const Part& part) const
    {
        const auto place = PartPlace::of<C>(p, part, smem.at);
        float* const sums = smem.staged + place.first_row * pitch() + place.first_column;
        finish_elements(p.output, s, OutputBases(p.output, s, smem.at.batch), place.i, place.j, place.rows,
                        place.columns, threadIdx.x / 32, 4 * C.consumers,
                        [&](int row, int column) -> float& { return sums[row * pitch() + column]; });
    }

    // A thread's `rows`.
    __device__ void store_vectors(const Part& part, int32_t rows, const OutputColumn<T>& found) const
    {
        if (rows == 0)
            return;
        const auto thread = static_cast<int32_t>(threadIdx.x);
        const int32_t first = p.row_vectors.quotient(thread);
        const int32_t column = (thread - first * p.row_vectors.value) * epilogue_vector;
        const int32_t row = first + (has(SwapAb) ? 8 * part.first : 0);
        float* const sums = smem.staged + row * pitch() + column + (has(SwapAb) ? 0 : 8 * part.first);
        finish_vectors<T>(p.output, s, found, rows,
                          TileRows < C.consumers < 3 ? 4 : 2 > {sums, p.rows_at_once.value * pitch()}, [&] {
                              const auto place = PartPlace::of<C>(p, part, smem.at);
                              return std::pair(OutputBases(p.output, s, smem.at.batch),
                                               place.rows_of_thread(p));
                          });
    }

    __device__ void scale(float (&acc)[C.tile_n / 2]) const
    {
#pragma unroll
        for (float& v : acc)
            v = __fmul_rn(s.alpha, v);
    }

    // All blocks of a tile of X by C.y, the first at `to`.
    template <int M>
    __device__ void stage_typed(const float (&acc)[C.tile_n / 2], uint32_t to) const
    {
        if (has(SwapAb))
            stage_blocks<C, T, M, true>(to, acc);
        else
            stage_blocks<C, T, M, false>(to, acc);
    }

    const uint32_t to_;  // typed_place()
    uint32_t traits_;
    OutputColumn<T> column_;       // Finished and Aligned, found early
    const float* bias_ = nullptr;  // where it begins for a warp
};

}  // namespace hg::sm90
