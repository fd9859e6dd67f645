// The general epilogue: outputs that TMA cannot store, or of which it cannot load C. One subtile of 64 rows
// by 32 columns after another passes through the same code, in registers, to a staging buffer: unrolled
// over all subtiles this code would be several times as long as the rest of the kernel. TMA stores the
// buffer or, where TMA cannot address D and for aux, the threads copy it in vectors or elements.
//
//   named barrier 1 + consumer   the 128 threads of a consumer: a staging buffer is free; it is filled. At
//                                the first subtile it also says that the tile's bias is staged; at the last
//                                that all threads have finished with it.
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

// A thread's sums of a subtile: rows lane / 4 and lane / 4 + 8 of its warp, columns lane % 4 * 2 and the
// next one in each of four blocks of eight columns. Sum 4 * block + 2 * half + e is at row + 8 * half,
// column + 8 * block + e.
using Subtile = float[subtile_floats];

// Where the elements of C lie that a thread adds to its sums of a tile.
struct ThreadC {
    const char* first;       // for the first sum; null: C is not read
    int64_t step_m, step_n;  // bytes
    int32_t left_m, left_n;  // rows and columns of C from the first sum on
    Type type;
    bool pairs;  // two neighbouring columns of C are an aligned pair in memory

    // `base`: C of this problem.
    __device__ ThreadC(const OutputParams& o, const char* base, bool swap_ab, const Block& at)
        : first(base), type(o.type_c)
    {
        if (!base)
            return;
        const int64_t bytes = device_bytes_of(type), row_bytes = o.ldc * bytes;
        const int64_t m = at.m + at.warp * 16 + at.lane / 4, n = at.n + at.lane % 4 * 2;
        step_m = swap_ab ? bytes : row_bytes;
        step_n = swap_ab ? row_bytes : bytes;
        left_m = static_cast<int32_t>(min((swap_ab ? o.n : o.m) - m, int64_t{INT32_MAX}));
        left_n = static_cast<int32_t>(min((swap_ab ? o.m : o.n) - n, int64_t{INT32_MAX}));
        pairs = !swap_ab && o.n % 2 == 0 &&
                (OutputBases::address(base) | static_cast<uint64_t>(row_bytes)) % (2 * bytes) == 0;
        first = base + m * step_m + n * step_n;
    }
};

// A thread's elements of C for a subtile, as they lie in memory: loaded while the subtile before is stored.
// In a pair of 16-bit elements the first one's word holds both.
class SubtileC {
public:
    // Loads the elements for the subtile that begins at row m, column n of the tile.
    __device__ void load(const ThreadC& c, int m, int n)
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

    // alpha times the sums plus beta times C. T: the type of the operands, most often that of C.
    template <Type T>
    __device__ void add_to(Subtile& v, const ThreadC& c, const Scalars& s) const
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
    __device__ void load_pairs(const ThreadC& c, int m, int n)
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
    __device__ void load_elements(const ThreadC& c, int m, int n)
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

    template <typename LoadC>
    __device__ static void add(Subtile& v, const Scalars& s, LoadC load_c)
    {
#pragma unroll
        for (int i = 0; i < subtile_floats; ++i)
            v[i] = fmaf(s.beta, load_c(i), __fmul_rn(s.alpha, v[i]));
    }
};

template <Config C>
constexpr int subtiles_along_n = box_count(C.tile_n, subtile_n);
template <Config C>
constexpr int subtiles_of = C.blocks() * subtiles_along_n<C>;

// Copies a subtile, one of First ... Last - 1, out of the accumulators. With branches: nvcc would compute a
// select over all subtiles for each sum.
template <Config C, int First = 0, int Last = subtiles_of<C>>
__device__ inline void select_subtile(Subtile& v, const Accumulator<C>& acc, int subtile)
{
    constexpr int middle = (First + Last) / 2, along_n = subtiles_along_n<C>;
    if constexpr (First + 1 == Last) {
#pragma unroll
        for (int j = 0; j < subtile_floats; ++j)
            v[j] =
                ptx::mov_f32(acc[First / along_n][box_start(C.tile_n, First % along_n, subtile_n) / 2 + j]);
    } else if (subtile < middle) {
        select_subtile<C, First, middle>(v, acc, subtile);
    } else {
        select_subtile<C, middle, Last>(v, acc, subtile);
    }
}

__device__ inline void activate_subtile(Subtile& v, Activation activation)
{
    switch (activation) {
    case Activation::None: break;
    case Activation::Relu: transform(v, [](float x) { return relu(x); }); break;
    case Activation::GeluTanh: transform(v, [](float x) { return gelu_tanh(x); }); break;
    case Activation::GeluErf: transform(v, [](float x) { return gelu_erf(x); }); break;
    default: transform(v, [](float x) { return silu(x); }); break;
    }
}

// Waits until the staging buffer of a subtile may be filled. If a tile has subtiles for some of the buffers
// only, its first one waits for all stores before it.
template <Config C>
__device__ inline void wait_for_buffer(int subtile, const Block& at)
{
    if (at.leads()) {
        if (subtile == 0 && subtiles_of<C> % staging_buffers(C) != 0)
            ptx::bulk_wait_group_read<0>();
        else
            ptx::bulk_wait_group_read<staging_buffers(C) - 1>();
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

// Writes a subtile to a staging buffer in the type of D, most often T.
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

// A filled staging buffer as rows of the output: 64 rows of 32 columns or, with swap_ab, 32 rows of 64.
struct StagedRows {
    const unsigned char* box;
    int rows, log2_columns;
    int log2_element, log2_span;  // bytes of an element, of a swizzled row; floats continue in a second box

    __device__ StagedRows(const OutputParams& o, bool swap_ab, const unsigned char* box)
        : box(box), rows(swap_ab ? subtile_n : 64), log2_columns(swap_ab ? 6 : 5),
          log2_element(o.type_d == Type::F32 ? 2 : 1), log2_span(min(log2_columns + log2_element, 7))
    {
    }

    // The aligned 16 bytes of a row that contain byte `byte`: where swizzle() places them, computed without
    // a division by numbers that are known only at run time.
    __device__ const unsigned char* unit(int row, int byte) const
    {
        const int chunk = byte % span_bytes / chunk_bytes, swizzle_row = row + byte / span_bytes * rows;
        const int swizzled = chunk ^ (swizzle_row >> (7 - log2_span) & ((1 << (log2_span - 4)) - 1));
        return box + (swizzle_row << log2_span) + swizzled * chunk_bytes;
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

// Copies a filled staging buffer to (row, column) of the matrix that begins at `base`: where vectors are
// aligned each thread stores vectors, else neighbouring threads store neighbouring elements.
__device__ inline void store_staged_rows(const OutputParams& o, const StagedRows& from, char* base,
                                         int64_t ld, bool vectors, int64_t row, int64_t column)
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
    const int64_t row_bytes = ld << from.log2_element;
    char* to = base + (row + first) * row_bytes + ((column + j) << from.log2_element);
    if (vectors && j + width <= columns)
#pragma unroll 2
        for (int i = 0; i < count; ++i, to += step * row_bytes)
            *reinterpret_cast<uint4*>(to) =
                *reinterpret_cast<const uint4*>(from.unit(first + i * step, j << from.log2_element));
    else
        for (int e = 0; e < width && j + e < columns; ++e)
#pragma unroll 4
            for (int i = 0; i < count; ++i)
                from.store(to + i * step * row_bytes + (e << from.log2_element), first + i * step, j + e);
}

// Stores a finished subtile to D at row m, column n (as wgmma sees them).
template <Type T>
__device__ inline void store_to_d(const Params& p, const OutputParams& o, bool by_tma,
                                  const OutputBases& bases, const Subtile& v, unsigned char* box, int64_t m,
                                  int64_t n, const Block& at)
{
    fill_subtile<T>(o, p.swap_ab, box, v, at);
    ptx::fence_proxy_async();
    ptx::bar_sync(1 + at.consumer, 128);
    if (!by_tma) {
        store_staged_rows(o, StagedRows(o, p.swap_ab, box), bases.d, o.ldd, bases.vectors,
                          p.swap_ab ? n : m, p.swap_ab ? m : n);
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
    store_staged_rows(p.output, StagedRows(p.output, p.swap_ab, box), bases.aux, p.output.ldaux,
                      bases.vectors, p.swap_ab ? n : m, p.swap_ab ? m : n);
    ptx::bar_sync(1 + at.consumer, 128);
}

// The iteration before the first subtile only loads C for it. `o`: Params::output, or a copy of it that
// ends with a group.
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
    const ThreadC c(o, reads_c_by_subtile(C) ? bases.c : nullptr, p.swap_ab, at);
    SubtileC c_subtile;
#pragma unroll 1
    for (int subtile = -1; subtile < subtiles_of<C>; ++subtile) {
        Subtile v;
        if (subtile >= 0) {
            wait_for_buffer<C>(subtile, at);
            select_subtile<C>(v, acc, subtile);
            if (c.first)
                c_subtile.add_to<T>(v, c, s);
            else
                transform(v, [&](float sum) { return __fmul_rn(s.alpha, sum); });
        }
        if (c.first && subtile + 1 < subtiles_of<C>)
            c_subtile.load(c, m_of(subtile + 1), n_of(subtile + 1));
        if (subtile < 0)
            continue;
        const int m = m_of(subtile), n = n_of(subtile);
        unsigned char* const box = at.staging + subtile % staging_buffers(C) * staging_buffer_bytes;
        if (o.bias_along != BiasAlong::None)
            add_bias<subtile_n>(v, at.bias + (along_n ? n : m + at.warp * 16), along_n);
        if (bases.aux)
            store_to_aux<T>(p, bases, v, box, at.m + m, at.n + n, at);
        activate_subtile(v, activation);
        store_to_d<T>(p, o, by_tma, bases, v, box, at.m + m, at.n + n, at);
    }
}

}  // namespace hg::sm90
