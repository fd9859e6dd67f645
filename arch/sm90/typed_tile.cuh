// A tile of a split kernel, or what one of its consumers has of it, in the type of the output, on its way
// through shared memory: how fragments come there and whole vectors leave.
#pragma once

#include "arch/sm90/lag.cuh"

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

// Of the tile of x by c.y in the output's type, x = c.x or a consumer's 64. Elements of a row: an odd
// number of 16-byte units, so that eight rows meet no bank twice.
constexpr int typed_pitch(const Config& c, int x, bool swapped)
{
    return 8 * ((swapped ? x : c.y) / 8 | 1);
}

// Bytes from one block of eight y to the next.
constexpr int typed_step(const Config& c, int x, bool swapped)
{
    return 2 * (swapped ? 8 * typed_pitch(c, x, swapped) : 8);
}

constexpr int most_typed_bytes(const Config& c, int x)
{
    const int plain = x * typed_pitch(c, x, false), swapped = c.y * typed_pitch(c, x, true);
    return 2 * (plain > swapped ? plain : swapped);
}

// The x that are stored together: a consumer's, where each stores by itself.
struct SharedX {
    int32_t first, count, threads;

    template <Config C>
    __device__ static SharedX of(const Params& p)
    {
        const int32_t consumer = static_cast<int32_t>(threadIdx.x) / 128;
        return does_lag<C>(p) ? SharedX{64 * consumer, 64, 128} : SharedX{0, C.x, 128 * C.consumers};
    }
};

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

// Where a warp's fragments of block 0 of a tile at `tile` go.
template <Config C>
__device__ inline uint32_t typed_place(const void* tile, const Params& p)
{
    const auto shared = SharedX::of<C>(p);
    const int lane = threadIdx.x % 32, x = threadIdx.x / 32 * 16 - shared.first + lane / 8 % 2 * 8;
    const int row = p.swapped ? lane / 16 * 8 + lane % 8 : x + lane % 8;
    const int column = p.swapped ? x : lane / 16 * 8;
    return ptx::shared_address(tile) + 2 * (row * typed_pitch(C, shared.count, p.swapped) + column);
}

// All blocks of a tile of X by C.y, the first at `to`.
template <Config C, Type T, int X, bool Swapped>
__device__ inline void stage_blocks(uint32_t to, const float (&acc)[C.y / 2])
{
    constexpr int blocks = C.y / 8, step = typed_step(C, X, Swapped);
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
        const auto shared = SharedX::of<C>(p);
        const int32_t thread = static_cast<int32_t>(threadIdx.x) % shared.threads;
        const int32_t at_once = p.rows_at_once.value, first = p.row_vectors.quotient(thread);
        const int32_t in_row = thread - first * p.row_vectors.value;
        const int32_t vector = in_row + (swapped ? 0 : part.first);
        const int32_t pitch = typed_pitch(C, shared.count, swapped);
        const int64_t x = int64_t{at.x} * C.x + shared.first, y = int64_t{at.y} * C.y;
        const int64_t i = swapped ? y : x, j = (swapped ? x : y) + vector * epilogue_vector;
        const int32_t begin = first + (swapped ? 8 * part.first : 0);
        const auto exist =
            static_cast<int32_t>(min(int64_t{swapped ? 8 * part.last : shared.count}, p.output.m - i));
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

}  // namespace hg::sm90
