// Epilogue of the split kernels: from the consumers' sums to the output, through a tile in shared memory,
// where the stages were, that the CTA's threads read along the output's rows.
//
// Named barrier 1: the consumers of one CTA, which have brought the bias; which have written the tile.
#pragma once

#include "arch/common/vector_store.cuh"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/element_store.cuh"

namespace hg::sm90 {

// The blocks of eight y that a slice owns: Params::part of them, the last ones fewer or none.
struct Part {
    int first, last;

    template <Config C>
    __device__ static Part of(const Params& p, int slice)
    {
        return {min(slice * p.part, C.y / 8), min(slice * p.part + p.part, C.y / 8)};
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

// Brings the bias to the end of the room for the tile; all consumers of the CTA. Returns where it begins
// for a warp.
template <Config C, Major MY>
__device__ inline const float* share_bias(const Params& p, Smem<C, MY>& smem, const BiasShare<C>& share)
{
    constexpr int threads = 128 * C.consumers, most = bias_elements(C) * threads;
    constexpr int place = partial_bytes(C) / 4 - most;
    static_assert(4 * place >= 2 * C.x * typed_pitch(C, false) &&
                  4 * place >= 2 * C.y * typed_pitch(C, true));
    float* const to = smem.partial + place;
#pragma unroll
    for (int i = 0; i < bias_elements(C); ++i)
        to[threadIdx.x + i * threads] = share.v[i];
    ptx::bar_sync(1, threads);
    return to + (is_bias_along_y(p.output, p.swapped) ? 0 : threadIdx.x / 32 * 16);
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

// Where a warp's fragments of block 0 of a tile in the type of the output go, and bytes to the next block.
template <Config C>
__device__ inline uint32_t typed_place(const void* tile, bool swapped)
{
    const int lane = threadIdx.x % 32, x = threadIdx.x / 32 * 16 + lane / 8 % 2 * 8;
    const int row = swapped ? lane / 16 * 8 + lane % 8 : x + lane % 8;
    const int column = swapped ? x : lane / 16 * 8;
    return ptx::shared_address(tile) + 2 * (row * typed_pitch(C, swapped) + column);
}

constexpr int typed_step(const Config& c, bool swapped)
{
    return 2 * (swapped ? 8 * typed_pitch(c, swapped) : 8);
}

// All blocks of the tile, the first at `to`.
template <Config C, Type T, bool Swapped>
__device__ inline void stage_typed(uint32_t to, const float (&acc)[C.y / 2])
{
    constexpr int blocks = C.y / 8, step = typed_step(C, Swapped);
#pragma unroll
    for (int block = 0; block < blocks; block += 2) {
        uint32_t bits[4] = {};
#pragma unroll
        for (int i = 0; i < 4 && 4 * block + 2 * i < C.y / 2; ++i)
            bits[i] = to_bits2(acc[4 * block + 2 * i], acc[4 * block + 2 * i + 1], T);
        store_blocks<Swapped>(to + block * step, bits, block + 1 < blocks);
    }
}

// A thread's vectors of the owned part of such a tile: where they lie and where they go. Found before the
// product, while the first k tiles are on their way: what depends on each other in it takes hundreds of
// cycles.
struct VectorRows {
    char* d;
    int64_t step;   // bytes from one to the next
    uint32_t from;  // bytes from the tile's first on
    int32_t from_step, count;

    template <Config C>
    __device__ static VectorRows of(const Params& p, const Position& at, const Part& part)
    {
        const bool swapped = p.swapped;
        const auto thread = static_cast<int32_t>(threadIdx.x);
        const int32_t at_once = p.rows_at_once.value, first = p.row_vectors.quotient(thread);
        const int32_t in_row = thread - first * p.row_vectors.value;
        const int32_t vector = in_row + (swapped ? 0 : part.first);
        const int32_t rows = swapped ? C.y : C.x, pitch = typed_pitch(C, swapped);
        const int64_t i = int64_t{swapped ? at.y : at.x} * rows;
        const int64_t j = int64_t{swapped ? at.x : at.y} * (swapped ? C.x : C.y) + vector * epilogue_vector;
        const int32_t begin = first + (swapped ? 8 * part.first : 0);
        const auto exist =
            static_cast<int32_t>(min(int64_t{swapped ? 8 * part.last : rows}, p.output.m - i));
        const bool none =
            j >= p.output.n || first >= at_once || begin >= exist || (!swapped && in_row >= part.blocks());
        const int64_t first_element = at.batch * p.output.stride_d + (i + begin) * p.output.ldd + j;
        return {static_cast<char*>(p.output.d) + 2 * first_element, 2 * at_once * p.output.ldd,
                static_cast<uint32_t>(2 * (begin * pitch + vector * epilogue_vector)), 2 * at_once * pitch,
                none ? 0 : p.rows_at_once.quotient(exist - begin - 1) + 1};
    }

    __device__ void store(const void* tile) const
    {
        const char* next = static_cast<const char*>(tile) + from;
        char* to = d;
#pragma unroll 4
        for (int32_t i = 0; i < count; ++i, next += from_step, to += step)
            *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(next);
    }
};

// A thread's sums of one block into the tile of floats that the CTA's threads then read along the output's
// rows.
template <Config C>
__device__ inline void stage_floats(float* partial, bool swapped, int block, const float* v)
{
    const int x = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, y = 8 * block + threadIdx.x % 4 * 2;
    const int pitch = partial_pitch(C, swapped);
    if (swapped) {
        float* const to = partial + y * pitch + x;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            to[i % 2 * pitch + i / 2 * 8] = v[i];
    } else {
        float* const to = partial + x * pitch + y;
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *reinterpret_cast<float2*>(to + half * 8 * pitch) = make_float2(v[2 * half], v[2 * half + 1]);
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

template <Config C, bool Swapped, Major MY>
__device__ inline void store_floats(const Params& p, const Scalars& s, const Smem<C, MY>& smem,
                                    const Part& part)
{
    if (p.vectors && p.output.bias_along == BiasAlong::None)
        store_part_vectors<C, Swapped>(p, s.alpha, smem.partial, part, smem.at);
    else if (p.elements)
        store_part_elements<C, Swapped>(p, s.alpha, smem.partial, part, smem.at);
    else
        store_part<C>(p, s, smem.partial, part, smem.at);
}

// From complete sums to the output. What decides how is read before the product, into a register: behind it
// all consumers would wait for parameters.
template <Config C, Type T, Major MY>
class SplitStore {
public:
    const Params& p;
    const Scalars& s;
    Smem<C, MY>& smem;

    __device__ SplitStore(const Params& p, const Scalars& s, Smem<C, MY>& smem)
        : p(p), s(s), smem(smem), to_(ptx::mov_b32(typed_place<C>(smem.partial, p.swapped)))
    {
        const bool typed = p.vectors && p.output.type_d == T;
        traits_ =
            ptx::mov_b32((typed ? Typed : 0) | (p.swapped ? Swapped : 0) | (p.split == 1 ? Whole : 0) |
                         (typed && p.output.bias_along != BiasAlong::None ? Biased : 0));
    }

    // All consumers of the CTA, which do not read the stages any more.
    __device__ void begin(const BiasShare<C>& share)
    {
        if (has(Biased)) [[unlikely]]
            bias_ = share_bias<C>(p, smem, share);
    }

    __device__ bool is_whole() const { return has(Whole); }
    // In the type of the operands, without a bias.
    __device__ bool is_plain() const { return has(Typed) && !bias_; }
    __device__ uint32_t place_of(int block) const { return to_ + block * step(); }
    __device__ uint32_t step() const { return typed_step(C, has(Swapped)); }

    // A thread's sums of one block, to where it goes in a tile of the output's type.
    __device__ void store_fragment(uint32_t to, const float (&v)[4]) const
    {
        const uint32_t bits[2] = {to_bits2(__fmul_rn(s.alpha, v[0]), __fmul_rn(s.alpha, v[1]), T),
                                  to_bits2(__fmul_rn(s.alpha, v[2]), __fmul_rn(s.alpha, v[3]), T)};
        if (has(Swapped))
            ptx::stmatrix_x2_trans(to, bits[0], bits[1]);
        else
            ptx::stmatrix_x2(to, bits[0], bits[1]);
    }

    // A thread's sums of one block, where the output is another, or takes a bias.
    __device__ void stage(int block, float (&v)[4]) const
    {
        if (!has(Typed))
            return stage_floats<C>(smem.partial, has(Swapped), block, v);
#pragma unroll
        for (float& sum : v)
            sum = __fmul_rn(s.alpha, sum);
        const bool along_y = is_bias_along_y(p.output, has(Swapped));
        add_bias<8>(v, bias_ + (along_y ? 8 * block : 0), along_y);
        const uint32_t to = place_of(block);
        if (has(Swapped))
            ptx::stmatrix_x2_trans(to, to_bits2(v[0], v[1], T), to_bits2(v[2], v[3], T));
        else
            ptx::stmatrix_x2(to, to_bits2(v[0], v[1], T), to_bits2(v[2], v[3], T));
    }

    // All blocks of a thread's sums, of any output.
    __device__ void stage_all(float (&acc)[C.y / 2]) const
    {
        if (!has(Typed)) [[unlikely]] {
#pragma unroll
            for (int block = 0; block < C.y / 8; ++block)
                stage_floats<C>(smem.partial, has(Swapped), block, acc + 4 * block);
            return;
        }
#pragma unroll
        for (float& v : acc)
            v = __fmul_rn(s.alpha, v);
        if (bias_) [[unlikely]]
            add_bias<C.y>(acc, bias_, is_bias_along_y(p.output, has(Swapped)));
        if (has(Swapped))
            stage_typed<C, T, true>(to_, acc);
        else
            stage_typed<C, T, false>(to_, acc);
    }

    // All consumers of the CTA, which have staged the part.
    __device__ void store(const VectorRows& rows, const Part& part) const
    {
        ptx::bar_sync(1, 128 * C.consumers);
        if (has(Typed)) [[likely]]
            rows.store(smem.partial);
        else if (has(Swapped))
            store_floats<C, true>(p, s, smem, part);
        else
            store_floats<C, false>(p, s, smem, part);
    }

private:
    enum Trait : uint32_t { Typed = 1, Swapped = 2, Whole = 4, Biased = 8 };

    __device__ bool has(Trait trait) const { return (traits_ & trait) != 0; }

    const uint32_t to_;  // typed_place()
    uint32_t traits_;
    const float* bias_ = nullptr;  // where it begins for a warp
};

// What a thread adds up lies in its own 16 bytes of each term, behind the tile on its way out.
template <Config C, Major MY>
__device__ inline unsigned char* terms_of(Smem<C, MY>& smem)
{
    return smem.sums + terms_offset(C) + threadIdx.x * 16;
}

// The terms of a part, addresses in shared memory: those of its first block from `first` on, one slice
// `pitch` bytes behind the other, and those of the next block `step` bytes behind. The CTA's own may lie
// apart.
struct Terms {
    uint32_t first, pitch, step, own;
    int32_t own_slice;  // -1: among the others
};

// The sum of the terms of a block, in the order of the slices.
__device__ inline void sum_terms(float (&sum)[4], Terms terms, int32_t split)
{
    constexpr int at_once = 4;
#pragma unroll
    for (float& v : sum)
        v = -0.0f;  // to which adding changes nothing
#pragma unroll 1
    for (int32_t slice = 0; slice < split; slice += at_once) {
        float4 v[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            const bool mine = slice + i == terms.own_slice;
            // Where there is none any more, one that is there and is not added.
            v[i] = ptx::load_shared_f32x4(mine || slice + i >= split ? terms.own : terms.first);
            terms.first += mine ? 0 : terms.pitch;
        }
#pragma unroll
        for (int i = 0; i < at_once; ++i)
            if (slice + i < split) {
                sum[0] += v[i].x;
                sum[1] += v[i].y;
                sum[2] += v[i].z;
                sum[3] += v[i].w;
            }
    }
}

// The sums of a part over all slices into the tile.
template <Config C, Type T, Major MY>
__device__ inline void add_up(const SplitStore<C, T, MY>& out, const Part& part, int32_t split, Terms terms)
{
    float sum[4];
    if (!out.is_plain()) [[unlikely]] {
#pragma unroll 1
        for (int32_t block = part.first; block < part.last; ++block) {
            sum_terms(sum, terms, split);
            out.stage(block, sum);
            terms.first += terms.step, terms.own += terms.step;
        }
        return;
    }
    uint32_t to = out.place_of(part.first);
    const uint32_t step = out.step();
#pragma unroll 1
    for (int32_t block = part.first; block < part.last; ++block) {
        sum_terms(sum, terms, split);
        out.store_fragment(to, sum);
        terms.first += terms.step, terms.own += terms.step, to += step;
    }
}

}  // namespace hg::sm90
