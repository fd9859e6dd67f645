// Epilogue of the split kernels: from the consumers' sums to the output, through a tile in shared memory,
// where the stages were, that the CTA's threads read along the output's rows.
//
// Named barrier 1: the consumers of one CTA, which have multiplied; which have written the tile.
#pragma once

#include "arch/common/vector_store.cuh"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/element_store.cuh"

namespace hg::sm90 {

// The blocks of eight y that a slice owns.
struct Part {
    int first, last;

    __device__ static Part of(const Params& p, int slice)
    {
        return {p.part_start[slice], p.part_start[slice + 1]};
    }

    __device__ int blocks() const { return last - first; }
    __device__ bool has(int block) const { return first <= block && block < last; }
};

// Elements of a row of the tile in the output's type: an odd number of 16-byte units, so that eight rows
// meet no bank twice.
constexpr int typed_pitch(const Config& c, bool swapped) { return 8 * ((swapped ? c.x : c.y) / 8 | 1); }

// Elements of the bias that a thread brings.
constexpr int bias_elements(const Config& c)
{
    return ((c.x > c.y ? c.x : c.y) + 128 * c.consumers - 1) / (128 * c.consumers);
}

// Read before the product, so that nobody waits for them.
template <Config C>
struct BiasShare {
    float v[bias_elements(C)];

    __device__ BiasShare(const Params& p, const Position& at)
    {
        if (p.output.bias_along == BiasAlong::None) [[likely]]
            return;
        const auto bias = TileBias::of<C>(p.output, p.swapped, at);
#pragma unroll
        for (int i = 0; i < bias_elements(C); ++i)
            v[i] = bias.load(threadIdx.x + i * 128 * C.consumers);
    }
};

// Adds the bias, which passes through the end of the room for the tile.
template <Config C>
__device__ inline void add_shared_bias(const Params& p, float* partial, const BiasShare<C>& share,
                                       float (&acc)[C.y / 2])
{
    constexpr int threads = 128 * C.consumers, most = bias_elements(C) * threads;
    constexpr int place = partial_bytes(C) / 4 - most;
    static_assert(4 * place >= 2 * C.x * typed_pitch(C, false) &&
                  4 * place >= 2 * C.y * typed_pitch(C, true));
#pragma unroll
    for (int i = 0; i < bias_elements(C); ++i)
        partial[place + threadIdx.x + i * threads] = share.v[i];
    ptx::bar_sync(1, threads);
    const bool along_y = is_bias_along_y(p.output, p.swapped);
    add_bias<C.y>(acc, partial + place + (along_y ? 0 : threadIdx.x / 32 * 16), along_y);
}

// One block of eight y or two, of a warp's 16 x.
template <bool Swapped>
__device__ inline void store_blocks(uint32_t to, const uint32_t (&bits)[4], bool two)
{
    if (Swapped && two)
        ptx::stmatrix_x4_trans(to, bits);
    else if (two)
        ptx::stmatrix_x4(to, bits);
    else if (Swapped)
        ptx::stmatrix_x2_trans(to, bits[0], bits[1]);
    else
        ptx::stmatrix_x2(to, bits[0], bits[1]);
}

// A warp's 16 x of the owned blocks, in the type of the output.
template <Config C, Type T, bool Swapped>
__device__ inline void stage_typed(uint16_t* tile, const float (&acc)[C.y / 2], const Part& part)
{
    constexpr int pitch = typed_pitch(C, Swapped), blocks = C.y / 8;
    constexpr int step = 2 * (Swapped ? 8 * pitch : 8);
    const int lane = threadIdx.x % 32, x = threadIdx.x / 32 * 16 + lane / 8 % 2 * 8;
    const int row = Swapped ? lane / 16 * 8 + lane % 8 : x + lane % 8;
    const int column = Swapped ? x : lane / 16 * 8;
    const uint32_t to = ptx::shared_address(tile + row * pitch + column);
#pragma unroll
    for (int block = 0; block < blocks; block += 2) {
        if (!part.has(block) && !part.has(block + 1))
            continue;
        uint32_t bits[4] = {};
#pragma unroll
        for (int i = 0; i < 4 && 4 * block + 2 * i < C.y / 2; ++i)
            bits[i] = to_bits2(acc[4 * block + 2 * i], acc[4 * block + 2 * i + 1], T);
        store_blocks<Swapped>(to + block * step, bits, block + 1 < blocks);
    }
}

// The owned part of such a tile. A thread has one vector of columns, in every so many rows.
template <Config C, bool Swapped>
__device__ inline void store_typed(const Params& p, const uint16_t* tile, const Part& part,
                                   const Position& at)
{
    constexpr int vectors = (Swapped ? C.x : C.y) / epilogue_vector, pitch = typed_pitch(C, Swapped);
    constexpr int rows_at_once = 128 * C.consumers / vectors, rows = Swapped ? C.y : C.x;
    const int vector = threadIdx.x % vectors, first = threadIdx.x / vectors;
    const int64_t i0 = int64_t{Swapped ? at.y : at.x} * rows;
    const int64_t j = (int64_t{Swapped ? at.x : at.y} * vectors + vector) * epilogue_vector;
    if (j >= p.output.n || first >= rows_at_once || (!Swapped && !part.has(vector)))
        return;
    const auto exist = static_cast<int>(min(int64_t{rows}, p.output.m - i0));
    const int begin = first + (Swapped ? 8 * part.first : 0),
              end = Swapped ? min(exist, 8 * part.last) : exist;
    auto* const d =
        static_cast<uint16_t*>(p.output.d) + at.batch * p.output.stride_d + i0 * p.output.ldd + j;
#pragma unroll 4
    for (int r = begin; r < end; r += rows_at_once)
        *reinterpret_cast<uint4*>(d + r * p.output.ldd) =
            *reinterpret_cast<const uint4*>(tile + r * pitch + vector * epilogue_vector);
}

// A consumer's rows of x into the tile that the CTA's threads then read along the output's rows.
template <Config C, bool Swapped>
__device__ inline void stage_part(float* partial, const float (&acc)[C.y / 2], const Part& part)
{
    constexpr int pitch = partial_pitch(C, Swapped);
    const int x = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, y = threadIdx.x % 4 * 2;
    float* to = Swapped ? partial + y * pitch + x : partial + x * pitch + y;
#pragma unroll
    for (int block = 0; block < C.y / 8; ++block) {
        if (!part.has(block))
            continue;
        const float* v = acc + 4 * block;
        if constexpr (Swapped) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                to[(8 * block + i % 2) * pitch + i / 2 * 8] = v[i];
        } else {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                *reinterpret_cast<float2*>(to + half * 8 * pitch + 8 * block) =
                    make_float2(v[2 * half], v[2 * half + 1]);
        }
    }
}

// The owned part of the tile where the output is made of whole vectors and has no bias. A thread has one
// vector of columns, in every so many rows.
template <Config C, bool Swapped>
__device__ inline void store_part_vectors(const Params& p, float alpha, const float* partial,
                                          const Part& part, const Position& at)
{
    constexpr int vectors = (Swapped ? C.x : C.y) / epilogue_vector;
    constexpr int rows_at_once = 128 * C.consumers / vectors;
    constexpr int rows = Swapped ? C.y : C.x, pitch = partial_pitch(C, Swapped);
    const int vector = threadIdx.x % vectors, first = threadIdx.x / vectors;
    const int64_t i0 = int64_t{Swapped ? at.y : at.x} * rows;
    const int64_t j = int64_t{Swapped ? at.x : at.y} * vectors * epilogue_vector + vector * epilogue_vector;
    if (j >= p.output.n || first >= rows_at_once || (!Swapped && !part.has(vector)))
        return;
    const VectorColumn<false> out(p.output, alpha, j, at.batch);
    const int end = static_cast<int>(min(int64_t{rows}, p.output.m - i0));
#pragma unroll 4
    for (int r = first; r < end; r += rows_at_once) {
        if (Swapped && !part.has(r / 8))
            continue;
        out.store(i0 + r, partial + r * pitch + vector * epilogue_vector);
    }
}

// The owned part of the tile, eight columns of the output at a time.
template <Config C>
__device__ inline void store_part(const Params& p, const Scalars& s, const float* partial, const Part& part,
                                  const Position& at)
{
    constexpr int threads = 128 * C.consumers;
    const int first_y = 8 * part.first, count_y = 8 * part.blocks();
    const int rows = p.swapped ? count_y : C.x, vectors = (p.swapped ? C.x : count_y) / epilogue_vector;
    const int first_row = p.swapped ? first_y : 0, first_column = p.swapped ? 0 : first_y;
    const int64_t tile_row = p.swapped ? int64_t{at.y} * C.y : int64_t{at.x} * C.x;
    const int64_t tile_column = p.swapped ? int64_t{at.x} * C.x : int64_t{at.y} * C.y;
    const int pitch = partial_pitch(C, p.swapped);
    const OutputBases bases(p.output, s, at.batch);
#pragma unroll 1
    for (int index = threadIdx.x; index < rows * vectors; index += threads) {
        const int r = first_row + index / vectors;
        const int c = first_column + index % vectors * epilogue_vector;
        const int64_t i = tile_row + r, j = tile_column + c;
        if (i >= p.output.m || j >= p.output.n)
            continue;
        float v[8];
#pragma unroll
        for (int half = 0; half < 2; ++half)
            reinterpret_cast<float4*>(v)[half] =
                *reinterpret_cast<const float4*>(partial + r * pitch + c + 4 * half);
        finish_vector(v, p.output, s, bases, i, j,
                      static_cast<int>(min(p.output.n - j, int64_t{epilogue_vector})));
    }
}

// The owned part of the tile, one column a lane.
template <Config C, bool Swapped>
__device__ inline void store_part_elements(const Params& p, float alpha, const float* partial,
                                           const Part& part, const Position& at)
{
    constexpr int pitch = partial_pitch(C, Swapped);
    const int first = 8 * part.first, count = 8 * part.blocks();
    const int64_t x = int64_t{at.x} * C.x, y = int64_t{at.y} * C.y + first;
    store_by_element(
        p.output, alpha, at.batch, Swapped ? y : x, Swapped ? x : y, Swapped ? count : C.x,
        Swapped ? C.x : count, threadIdx.x / 32, 4 * C.consumers, [&](int row, int column) {
            return partial[(Swapped ? first + row : row) * pitch + (Swapped ? column : first + column)];
        });
}

template <Config C, Type T, bool Swapped>
__device__ inline void store_as_type(const Params& p, const float (&acc)[C.y / 2], float* partial,
                                     const Part& part, const Position& at)
{
    auto* const tile = reinterpret_cast<uint16_t*>(partial);
    stage_typed<C, T, Swapped>(tile, acc, part);
    ptx::bar_sync(1, 128 * C.consumers);
    store_typed<C, Swapped>(p, tile, part, at);
}

template <Config C, bool Swapped, Major MY>
__device__ inline void store_from_floats(const Params& p, const Scalars& s, const float (&acc)[C.y / 2],
                                         Smem<C, MY>& smem, const Part& part)
{
    stage_part<C, Swapped>(smem.partial, acc, part);
    ptx::bar_sync(1, 128 * C.consumers);
    if (p.vectors && p.output.bias_along == BiasAlong::None)
        store_part_vectors<C, Swapped>(p, s.alpha, smem.partial, part, smem.at);
    else if (p.elements)
        store_part_elements<C, Swapped>(p, s.alpha, smem.partial, part, smem.at);
    else
        store_part<C>(p, s, smem.partial, part, smem.at);
}

// The owned blocks, whose sums are complete.
template <Config C, Type T, Major MY>
__device__ inline void store_owned(const Params& p, const Scalars& s, const BiasShare<C>& bias,
                                   float (&acc)[C.y / 2], Smem<C, MY>& smem, const Part& part)
{
    ptx::bar_sync(1, 128 * C.consumers);
    if (p.vectors && p.output.type_d == T) [[likely]] {
#pragma unroll
        for (float& v : acc)
            v = __fmul_rn(s.alpha, v);
        if (p.output.bias_along != BiasAlong::None) [[unlikely]]
            add_shared_bias<C>(p, smem.partial, bias, acc);
        if (p.swapped)
            store_as_type<C, T, true>(p, acc, smem.partial, part, smem.at);
        else
            store_as_type<C, T, false>(p, acc, smem.partial, part, smem.at);
    } else if (p.swapped) {
        store_from_floats<C, true>(p, s, acc, smem, part);
    } else {
        store_from_floats<C, false>(p, s, acc, smem, part);
    }
}

}  // namespace hg::sm90
