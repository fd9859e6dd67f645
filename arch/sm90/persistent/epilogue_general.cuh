// Outputs that TMA cannot store, or of which it cannot load C: from the accumulators of a persistent kernel
// one piece of 64 x and 32 y after the other passes through the same code, in registers, on its way to a
// box of shared memory. Unrolled over all of them it would be several times the kernel. A box leaves by TMA
// or, where TMA cannot address D, and with aux, in vectors or elements.
//
// Named barrier 1 + consumer: the 128 threads of a consumer. A box is free; it is filled. It also says that
// the bias of a tile, which they stage before the product, is there, and that all are done with the one
// before.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/params.hpp"
#include "arch/common/ptx/barrier.cuh"
#include "arch/common/ptx/tma.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/persistent/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// A thread's sums of a piece: of x = lane / 4 and + 8, of y = lane % 4 * 2 and the next one in each of four
// blocks of eight. Sum 4 * block + 2 * half + e is of x + 8 * half and y + 8 * block + e.
using Subtile = float[subtile_floats];

// The elements of C that go with a thread's sums of a tile.
struct ThreadOfC {
    const char* first;       // of x = y = 0; null: C is not read
    int64_t step_m, step_n;  // bytes
    int32_t left_m, left_n;  // that exist
    Type type;
    bool pairs;  // sums that are neighbours along y have neighbours of C, aligned as one word

    // `base`: of C of this problem.
    __device__ ThreadOfC(const OutputParams& o, const char* base, bool swap_ab, const Block& at)
        : first(base), type(o.type_c)
    {
        if (!base)
            return;
        const int64_t bytes = device_bytes_of(type), line = o.ldc * bytes;
        const int64_t m = at.m + at.warp * 16 + at.lane / 4, n = at.n + at.lane % 4 * 2;
        step_m = swap_ab ? bytes : line;
        step_n = swap_ab ? line : bytes;
        left_m = static_cast<int32_t>(min((swap_ab ? o.n : o.m) - m, int64_t{INT32_MAX}));
        left_n = static_cast<int32_t>(min((swap_ab ? o.m : o.n) - n, int64_t{INT32_MAX}));
        pairs = !swap_ab && o.n % 2 == 0 &&
                (OutputBases::address(base) | static_cast<uint64_t>(line)) % (2 * bytes) == 0;
        first = base + m * step_m + n * step_n;
    }
};

// C of a piece as it lies in memory: asked for while the piece before it is stored. Of a pair of 16 bits
// each the first one's word has both.
class SubtileOfC {
public:
    // The piece whose first x and y those are, of the tile.
    __device__ void load(const ThreadOfC& c, int m, int n)
    {
        if (c.pairs && c.type == Type::F32)
            load_pairs<uint2>(c, m, n);
        else if (c.pairs)
            load_pairs<uint32_t>(c, m, n);
        else if (c.type == Type::F32)
            load_elements<uint32_t>(c, m, n);
        else
            load_elements<uint16_t>(c, m, n);
    }

    // alpha times the sums and beta times C; T: the type of the operands, most often that of C.
    template <Type T>
    __device__ void add_to(Subtile& v, const ThreadOfC& c, const Scalars& s) const
    {
        constexpr Type other = T == Type::F16 ? Type::BF16 : Type::F16;
        if (c.type == Type::F32)
            add(v, s, [&](int i) { return __uint_as_float(bits_[i]); });
        else if (c.type == T)
            add_halves<T>(v, c.pairs, s);
        else
            add_halves<other>(v, c.pairs, s);
    }

private:
    uint32_t bits_[subtile_floats];

    template <typename Pair>
    __device__ void load_pairs(const ThreadOfC& c, int m, int n)
    {
        const char* next = c.first + m * c.step_m + n * (sizeof(Pair) / 2);
#pragma unroll
        for (int half = 0; half < 2; ++half, next += 8 * c.step_m)
#pragma unroll
            for (int block = 0; block < 4; ++block) {
                if (m + 8 * half >= c.left_m || n + 8 * block >= c.left_n)
                    continue;
                const Pair pair = __ldcg(reinterpret_cast<const Pair*>(next) + 4 * block);
                uint32_t* const to = bits_ + 4 * block + 2 * half;
                if constexpr (sizeof(Pair) == 8)
                    to[0] = pair.x, to[1] = pair.y;
                else
                    to[0] = pair;
            }
    }

    template <typename Element>
    __device__ void load_elements(const ThreadOfC& c, int m, int n)
    {
        const char* next = c.first + m * c.step_m + n * c.step_n;
#pragma unroll
        for (int i = 0; i < 8; ++i, next += (i % 2 == 1 ? 1 : 7) * c.step_n)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                if (m + 8 * half < c.left_m && n + i / 2 * 8 + i % 2 < c.left_n)
                    bits_[i / 2 * 4 + 2 * half + i % 2] =
                        __ldcg(reinterpret_cast<const Element*>(next + 8 * half * c.step_m));
    }

    template <Type T>
    __device__ void add_halves(Subtile& v, bool pairs, const Scalars& s) const
    {
        const auto value = [](uint32_t bits) { return to_float(static_cast<uint16_t>(bits), T); };
        if (pairs)
            add(v, s, [&](int i) { return value(bits_[i / 2 * 2] >> i % 2 * 16); });
        else
            add(v, s, [&](int i) { return value(bits_[i]); });
    }

    template <typename OfC>
    __device__ static void add(Subtile& v, const Scalars& s, OfC of_c)
    {
#pragma unroll
        for (int i = 0; i < subtile_floats; ++i)
            v[i] = fmaf(s.beta, of_c(i), __fmul_rn(s.alpha, v[i]));
    }
};

template <Config C>
constexpr int subtiles_along_n = box_count(C, subtile_n);
template <Config C>
constexpr int subtiles_of = C.blocks() * subtiles_along_n<C>;

// The sums of a piece, one of First ... Last - 1. Branches: nvcc would select each sum of all pieces.
template <Config C, int First = 0, int Last = subtiles_of<C>>
__device__ inline void take_sums(Subtile& v, const Accumulator<C>& acc, int subtile)
{
    constexpr int middle = (First + Last) / 2, across = subtiles_along_n<C>;
    if constexpr (First + 1 == Last) {
#pragma unroll
        for (int j = 0; j < subtile_floats; ++j)
            v[j] = ptx::mov_f32(acc[First / across][box_start(C, First % across, subtile_n) / 2 + j]);
    } else if (subtile < middle) {
        take_sums<C, First, middle>(v, acc, subtile);
    } else {
        take_sums<C, middle, Last>(v, acc, subtile);
    }
}

__device__ inline void activate_subtile(Subtile& v, Activation activation)
{
    switch (activation) {
    case Activation::None: break;
    case Activation::Relu: for_each_of(v, [](float x) { return relu(x); }); break;
    case Activation::GeluTanh: for_each_of(v, [](float x) { return gelu_tanh(x); }); break;
    case Activation::GeluErf: for_each_of(v, [](float x) { return gelu_erf(x); }); break;
    default: for_each_of(v, [](float x) { return silu(x); }); break;
    }
}

// Waits until the box of a piece may be filled: after an odd number of pieces the first one's was stored
// last.
template <Config C>
__device__ inline void wait_for_box(int subtile, const Block& at)
{
    if (at.leads()) {
        if (subtile == 0 && subtiles_of<C> % staging_buffers != 0)
            ptx::bulk_wait_group_read<0>();
        else
            ptx::bulk_wait_group_read<staging_buffers - 1>();
    }
    ptx::bar_sync(1 + at.consumer, 128);
}

template <Type T>
__device__ inline void fill_subtile_16(bool swap_ab, unsigned char* box, const Subtile& v, const Block& at)
{
    if (swap_ab)
        fill_transposed_16<T>(ptx::shared_address(box), v, 1.0f, at);
    else
        fill_box_16<T, subtile_n>(ptx::shared_address(box), v, 1.0f, at);
}

// In the type of D, most often T.
template <Type T>
__device__ inline void fill_subtile(const OutputParams& o, bool swap_ab, unsigned char* box,
                                    const Subtile& v, const Block& at)
{
    if (o.type_d == T)
        fill_subtile_16<T>(swap_ab, box, v, at);
    else if (o.type_d != Type::F32)
        fill_subtile_16<T == Type::F16 ? Type::BF16 : Type::F16>(swap_ab, box, v, at);
    else if (swap_ab)
        fill_transposed_32(box, v, 1.0f, at);
    else
        fill_box_32(ptx::shared_address(box), v, 1.0f, at);
}

__device__ inline void store_subtile(const Params& p, uint32_t box, int32_t m, int32_t n, int32_t batch)
{
    ptx::tma_store_3d_hint(&p.d, box, p.swap_ab ? m : n, p.swap_ab ? n : m, batch, p.d_policy);
    if (p.swap_ab && p.output.type_d == Type::F32)
        ptx::tma_store_3d_hint(&p.d, box + subtile_n * span_bytes, m + 32, n, batch, p.d_policy);
}

// A filled box, as rows of the output: 64 of 32 columns or, swapped, 32 of 64.
struct BoxRows {
    const unsigned char* box;
    int rows, log2_columns;
    int log2_element, log2_span;  // bytes of an element, of the swizzle: floats beyond lie in a box behind

    __device__ BoxRows(const OutputParams& o, bool swap_ab, const unsigned char* box)
        : box(box), rows(swap_ab ? subtile_n : 64), log2_columns(swap_ab ? 6 : 5),
          log2_element(o.type_d == Type::F32 ? 2 : 1), log2_span(min(log2_columns + log2_element, 7))
    {
    }

    // The aligned 16 bytes of a row that byte `byte` is among: as swizzle() places them, without a division
    // by what is known only here.
    __device__ const unsigned char* unit(int row, int byte) const
    {
        const int chunk = byte % span_bytes / chunk_bytes, line = row + byte / span_bytes * rows;
        const int swizzled = chunk ^ (line >> (7 - log2_span) & ((1 << (log2_span - 4)) - 1));
        return box + (line << log2_span) + swizzled * chunk_bytes;
    }

    __device__ void store(char* to, int row, int column) const
    {
        const int byte = column << log2_element;
        const unsigned char* const from = unit(row, byte) + byte % chunk_bytes;
        if (log2_element == 2)
            *reinterpret_cast<uint32_t*>(to) = *reinterpret_cast<const uint32_t*>(from);
        else
            *reinterpret_cast<uint16_t*>(to) = *reinterpret_cast<const uint16_t*>(from);
    }
};

// Stores a filled box to (row, column) of the matrix that begins at `base`: a vector a thread where vectors
// are aligned, else an element, neighbours by neighbours.
__device__ inline void store_rows_of_box(const OutputParams& o, const BoxRows& from, char* base, int64_t ld,
                                         bool vectors, int64_t row, int64_t column)
{
    const auto rows = static_cast<int>(min(o.m - row, int64_t{from.rows}));
    const auto columns = static_cast<int>(min(o.n - column, int64_t{1} << from.log2_columns));
    const int log2_width = vectors ? 4 - from.log2_element : 0,
              log2_in_row = from.log2_columns - log2_width;
    const int thread = threadIdx.x % 128, first = thread >> log2_in_row, step = 128 >> log2_in_row;
    const int width = 1 << log2_width, j = (thread - (first << log2_in_row)) << log2_width;
    if (j >= columns)
        return;
    const int count = (rows - first + step - 1) >> (7 - log2_in_row);
    const int64_t line = ld << from.log2_element;
    char* to = base + (row + first) * line + ((column + j) << from.log2_element);
    if (vectors && j + width <= columns)
#pragma unroll 2
        for (int i = 0; i < count; ++i, to += step * line)
            *reinterpret_cast<uint4*>(to) =
                *reinterpret_cast<const uint4*>(from.unit(first + i * step, j << from.log2_element));
    else
        for (int e = 0; e < width && j + e < columns; ++e)
#pragma unroll 4
            for (int i = 0; i < count; ++i)
                from.store(to + i * step * line + (e << from.log2_element), first + i * step, j + e);
}

// A finished piece, whose first x and y those are, to D.
template <Type T>
__device__ inline void store_to_d(const Params& p, const OutputParams& o, bool by_tma,
                                  const OutputBases& bases, const Subtile& v, unsigned char* box, int64_t m,
                                  int64_t n, const Block& at)
{
    fill_subtile<T>(o, p.swap_ab, box, v, at);
    ptx::fence_proxy_async();
    ptx::bar_sync(1 + at.consumer, 128);
    if (!by_tma) {
        store_rows_of_box(o, BoxRows(o, p.swap_ab, box), bases.d, o.ldd, bases.vectors, p.swap_ab ? n : m,
                          p.swap_ab ? m : n);
    } else if (at.leads()) {
        store_subtile(p, ptx::shared_address(box), static_cast<int32_t>(m), static_cast<int32_t>(n),
                      at.batch);
        ptx::bulk_commit_group();
    }
}

template <Type T>
__device__ inline void store_to_aux(const Params& p, const OutputBases& bases, const Subtile& v,
                                    unsigned char* box, int64_t m, int64_t n, const Block& at)
{
    fill_subtile<T>(p.output, p.swap_ab, box, v, at);
    ptx::bar_sync(1 + at.consumer, 128);
    store_rows_of_box(p.output, BoxRows(p.output, p.swap_ab, box), bases.aux, p.output.ldaux, bases.vectors,
                      p.swap_ab ? n : m, p.swap_ab ? m : n);
    ptx::bar_sync(1 + at.consumer, 128);
}

// The round before the first piece only asks for its C. `o`: the output, of Params or with fewer rows.
template <Config C, Type T>
__device__ inline void store_general(const Params& p, const OutputParams& o, bool by_tma, const Scalars& s,
                                     const Accumulator<C>& acc, const Block& at)
{
    const bool along_n = is_bias_along_n(o, p.swap_ab);
    const auto m_of = [](int subtile) { return subtile / subtiles_along_n<C> * 64; };
    const auto n_of = [](int subtile) {
        return min(subtile % subtiles_along_n<C> * subtile_n, C.tile_n - subtile_n);
    };
    const OutputBases bases(o, s, at.batch);
    const Activation activation = o.activation;
    const ThreadOfC c(o, reads_c_by_subtile(C) ? bases.c : nullptr, p.swap_ab, at);
    SubtileOfC of_c;
#pragma unroll 1
    for (int subtile = -1; subtile < subtiles_of<C>; ++subtile) {
        Subtile v;
        if (subtile >= 0) {
            wait_for_box<C>(subtile, at);
            take_sums<C>(v, acc, subtile);
            if (c.first)
                of_c.add_to<T>(v, c, s);
            else
                for_each_of(v, [&](float sum) { return __fmul_rn(s.alpha, sum); });
        }
        if (c.first && subtile + 1 < subtiles_of<C>)
            of_c.load(c, m_of(subtile + 1), n_of(subtile + 1));
        if (subtile < 0)
            continue;
        const int m = m_of(subtile), n = n_of(subtile);
        unsigned char* const box = at.staging + subtile % staging_buffers * staging_buffer_bytes;
        if (o.bias_along != BiasAlong::None)
            add_bias<subtile_n>(v, at.bias + (along_n ? n : m + at.warp * 16), along_n);
        if (bases.aux)
            store_to_aux<T>(p, bases, v, box, at.m + m, at.n + n, at);
        activate_subtile(v, activation);
        store_to_d<T>(p, o, by_tma, bases, v, box, at.m + m, at.n + n, at);
    }
}

}  // namespace hg::sm90
