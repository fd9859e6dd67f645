// Outputs that TMA cannot store, or of which it cannot load C: from the accumulators of a persistent kernel
// one piece of 64 x and 32 y after the other passes through the same code, in registers, on its way to a
// box of shared memory. Unrolled over all of them it would be several times the kernel. A box leaves by TMA
// or, where TMA cannot address D, and with aux, in vectors or elements.
//
// Named barrier 1 + consumer: the 128 threads of a consumer. A box is free; it is filled. It also says that
// the bias of a tile, which they stage before the product, is there, and that all are done with the one
// before.
#pragma once

#include "arch/sm90/in_place.cuh"
#include "arch/sm90/piece_of_c.cuh"

namespace hg::sm90 {

template <Config C>
constexpr int pieces_across = box_count(C, piece_y);
template <Config C>
constexpr int pieces_of = C.blocks() * pieces_across<C>;

// The sums of a piece, one of First ... Last - 1. Branches: nvcc would select each sum of all pieces.
template <Config C, int First = 0, int Last = pieces_of<C>>
__device__ inline void take_sums(Piece& v, const Accumulator<C>& acc, int piece)
{
    constexpr int middle = (First + Last) / 2, across = pieces_across<C>;
    if constexpr (First + 1 == Last) {
#pragma unroll
        for (int j = 0; j < piece_floats; ++j)
            v[j] = ptx::mov_f32(acc[First / across][box_start(C, First % across, piece_y) / 2 + j]);
    } else if (piece < middle) {
        take_sums<C, First, middle>(v, acc, piece);
    } else {
        take_sums<C, middle, Last>(v, acc, piece);
    }
}

__device__ inline void activate_piece(Piece& v, Activation activation)
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
__device__ inline void wait_for_box(int piece, const Block& at)
{
    if (at.leads()) {
        if (piece == 0 && pieces_of<C> % boxes != 0)
            ptx::bulk_wait_group_read<0>();
        else
            ptx::bulk_wait_group_read<boxes - 1>();
    }
    ptx::bar_sync(1 + at.consumer, 128);
}

template <Type T>
__device__ inline void fill_piece_16(bool swapped, unsigned char* box, const Piece& v, const Block& at)
{
    if (swapped)
        fill_swapped_16<T>(ptx::shared_address(box), v, 1.0f, at);
    else
        fill_box_16<T, piece_y>(ptx::shared_address(box), v, 1.0f, at);
}

// In the type of D, most often T.
template <Type T>
__device__ inline void fill_piece(const OutputParams& o, bool swapped, unsigned char* box, const Piece& v,
                                  const Block& at)
{
    if (o.type_d == T)
        fill_piece_16<T>(swapped, box, v, at);
    else if (o.type_d != Type::F32)
        fill_piece_16<T == Type::F16 ? Type::BF16 : Type::F16>(swapped, box, v, at);
    else if (swapped)
        fill_swapped_32(box, v, 1.0f, at);
    else
        fill_box_32(ptx::shared_address(box), v, 1.0f, at);
}

__device__ inline void store_piece(const Params& p, uint32_t box, int32_t x, int32_t y, int32_t batch)
{
    ptx::tma_store_3d_hint(&p.d, box, p.swapped ? x : y, p.swapped ? y : x, batch, p.d_policy);
    if (p.swapped && p.output.type_d == Type::F32)
        ptx::tma_store_3d_hint(&p.d, box + piece_y * span_bytes, x + 32, y, batch, p.d_policy);
}

// A filled box, as rows of the output: 64 of 32 columns or, swapped, 32 of 64.
struct BoxRows {
    const unsigned char* box;
    int rows, log2_columns;
    int log2_element, log2_span;  // bytes of an element, of the swizzle: floats beyond lie in a box behind

    __device__ BoxRows(const OutputParams& o, bool swapped, const unsigned char* box)
        : box(box), rows(swapped ? piece_y : 64), log2_columns(swapped ? 6 : 5),
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
                                  const OutputBases& bases, const Piece& v, unsigned char* box, int64_t x,
                                  int64_t y, const Block& at)
{
    fill_piece<T>(o, p.swapped, box, v, at);
    ptx::fence_proxy_async();
    ptx::bar_sync(1 + at.consumer, 128);
    if (!by_tma) {
        store_rows_of_box(o, BoxRows(o, p.swapped, box), bases.d, o.ldd, bases.vectors, p.swapped ? y : x,
                          p.swapped ? x : y);
    } else if (at.leads()) {
        store_piece(p, ptx::shared_address(box), static_cast<int32_t>(x), static_cast<int32_t>(y),
                    at.batch);
        ptx::bulk_commit_group();
    }
}

template <Type T>
__device__ inline void store_to_aux(const Params& p, const OutputBases& bases, const Piece& v,
                                    unsigned char* box, int64_t x, int64_t y, const Block& at)
{
    fill_piece<T>(p.output, p.swapped, box, v, at);
    ptx::bar_sync(1 + at.consumer, 128);
    store_rows_of_box(p.output, BoxRows(p.output, p.swapped, box), bases.aux, p.output.ldaux, bases.vectors,
                      p.swapped ? y : x, p.swapped ? x : y);
    ptx::bar_sync(1 + at.consumer, 128);
}

// The round before the first piece only asks for its C. `o`: the output, of Params or with fewer rows.
template <Config C, Type T>
__device__ inline void store_pieces(const Params& p, const OutputParams& o, bool by_tma, const Scalars& s,
                                    const Accumulator<C>& acc, const Block& at)
{
    const bool along_y = is_bias_along_y(o, p.swapped);
    const auto x_of = [](int piece) { return piece / pieces_across<C> * 64; };
    const auto y_of = [](int piece) { return min(piece % pieces_across<C> * piece_y, C.y - piece_y); };
    const OutputBases bases(o, s, at.batch);
    const Activation activation = o.activation;
    const ThreadOfC c(o, takes_pieces_of_c(C) ? bases.c : nullptr, p.swapped, at);
    PieceOfC of_c;
#pragma unroll 1
    for (int piece = -1; piece < pieces_of<C>; ++piece) {
        Piece v;
        if (piece >= 0) {
            wait_for_box<C>(piece, at);
            take_sums<C>(v, acc, piece);
            if (c.first)
                of_c.add_to<T>(v, c, s);
            else
                for_each_of(v, [&](float sum) { return __fmul_rn(s.alpha, sum); });
        }
        if (c.first && piece + 1 < pieces_of<C>)
            of_c.load(c, x_of(piece + 1), y_of(piece + 1));
        if (piece < 0)
            continue;
        const int x = x_of(piece), y = y_of(piece);
        unsigned char* const box = at.staging + piece % boxes * box_bytes;
        if (o.bias_along != BiasAlong::None)
            add_bias<piece_y>(v, at.bias + (along_y ? y : x + at.warp * 16), along_y);
        if (bases.aux)
            store_to_aux<T>(p, bases, v, box, at.x + x, at.y + y, at);
        activate_piece(v, activation);
        store_to_d<T>(p, o, by_tma, bases, v, box, at.x + x, at.y + y, at);
    }
}

}  // namespace hg::sm90
