// C on its way to the sums of a piece.
#pragma once

#include "arch/sm90/boxes.cuh"

namespace hg::sm90 {

// A thread's sums of a piece: of x = lane / 4 and + 8, of y = lane % 4 * 2 and the next one in each of four
// blocks of eight. Sum 4 * block + 2 * half + e is of x + 8 * half and y + 8 * block + e.
using Piece = float[piece_floats];

// The elements of C that go with a thread's sums of a tile.
struct ThreadOfC {
    const char* first;       // of x = y = 0; null: C is not read
    int64_t step_x, step_y;  // bytes
    int32_t left_x, left_y;  // that exist
    Type type;
    bool pairs;  // sums that are neighbours along y have neighbours of C, aligned as one word

    // `base`: of C of this problem.
    __device__ ThreadOfC(const OutputParams& o, const char* base, bool swapped, const Block& at)
        : first(base), type(o.type_c)
    {
        if (!base)
            return;
        const int64_t bytes = device_bytes_of(type), line = o.ldc * bytes;
        const int64_t x = at.x + at.warp * 16 + at.lane / 4, y = at.y + at.lane % 4 * 2;
        step_x = swapped ? bytes : line;
        step_y = swapped ? line : bytes;
        left_x = static_cast<int32_t>(min((swapped ? o.n : o.m) - x, int64_t{INT32_MAX}));
        left_y = static_cast<int32_t>(min((swapped ? o.m : o.n) - y, int64_t{INT32_MAX}));
        pairs = !swapped && o.n % 2 == 0 &&
                (OutputBases::address(base) | static_cast<uint64_t>(line)) % (2 * bytes) == 0;
        first = base + x * step_x + y * step_y;
    }
};

// C of a piece as it lies in memory: asked for while the piece before it is stored. Of a pair of 16 bits
// each the first one's word has both.
class PieceOfC {
public:
    // The piece whose first x and y those are, of the tile.
    __device__ void load(const ThreadOfC& c, int x, int y)
    {
        if (c.pairs && c.type == Type::F32)
            load_pairs<uint2>(c, x, y);
        else if (c.pairs)
            load_pairs<uint32_t>(c, x, y);
        else if (c.type == Type::F32)
            load_elements<uint32_t>(c, x, y);
        else
            load_elements<uint16_t>(c, x, y);
    }

    // alpha times the sums and beta times C; T: the type of the operands, most often that of C.
    template <Type T>
    __device__ void add_to(Piece& v, const ThreadOfC& c, const Scalars& s) const
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
    uint32_t bits_[piece_floats];

    template <typename Pair>
    __device__ void load_pairs(const ThreadOfC& c, int x, int y)
    {
        const char* next = c.first + x * c.step_x + y * (sizeof(Pair) / 2);
#pragma unroll
        for (int half = 0; half < 2; ++half, next += 8 * c.step_x)
#pragma unroll
            for (int block = 0; block < 4; ++block) {
                if (x + 8 * half >= c.left_x || y + 8 * block >= c.left_y)
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
    __device__ void load_elements(const ThreadOfC& c, int x, int y)
    {
        const char* next = c.first + x * c.step_x + y * c.step_y;
#pragma unroll
        for (int i = 0; i < 8; ++i, next += (i % 2 == 1 ? 1 : 7) * c.step_y)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                if (x + 8 * half < c.left_x && y + i / 2 * 8 + i % 2 < c.left_y)
                    bits_[i / 2 * 4 + 2 * half + i % 2] =
                        __ldcg(reinterpret_cast<const Element*>(next + 8 * half * c.step_x));
    }

    template <Type T>
    __device__ void add_halves(Piece& v, bool pairs, const Scalars& s) const
    {
        const auto value = [](uint32_t bits) { return to_float(static_cast<uint16_t>(bits), T); };
        if (pairs)
            add(v, s, [&](int i) { return value(bits_[i / 2 * 2] >> i % 2 * 16); });
        else
            add(v, s, [&](int i) { return value(bits_[i]); });
    }

    template <typename OfC>
    __device__ static void add(Piece& v, const Scalars& s, OfC of_c)
    {
#pragma unroll
        for (int i = 0; i < piece_floats; ++i)
            v[i] = fmaf(s.beta, of_c(i), __fmul_rn(s.alpha, v[i]));
    }
};

}  // namespace hg::sm90
