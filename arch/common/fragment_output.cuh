// Outputs that need no shared memory: C, bias and relu are added to the mma fragments of a warp, lanes
// exchange results by shuffles, and each stores whole vectors.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/warp_tile.cuh"

namespace hg {

// Four lanes hold the rows of a 4 x 4 matrix of words; afterwards they hold its columns.
__device__ inline void transpose_quad(uint32_t (&w)[4], int lane)
{
    const bool odd = lane & 1, high = lane & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffff, odd ? w[i] : w[i + 1], 1);
        w[i] = odd ? other : w[i];
        w[i + 1] = odd ? w[i + 1] : other;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const uint32_t other = __shfl_xor_sync(0xffffffff, high ? w[i] : w[i + 2], 2);
        w[i] = high ? other : w[i];
        w[i + 2] = high ? w[i + 2] : other;
    }
}

// Can add_to_fragments() and store_from_registers() finish the output of operands of type T? C and D are of
// floats or of T, in rows of whole aligned vectors; there is no aux, no bias but of columns, and no
// activation but relu.
template <Type T>
__device__ inline bool fits_registers(const OutputParams& p, const OutputBases& bases)
{
    const auto is_own = [](Type type) { return type == T || type == Type::F32; };
    return bases.vectors && p.n % 8 == 0 && is_own(p.type_d) && (!bases.c || is_own(p.type_c)) &&
           !bases.aux && p.bias_along != BiasAlong::Rows &&
           (p.activation == Activation::None || p.activation == Activation::Relu);
}

__device__ inline bool adds_nothing(const OutputParams& p, const OutputBases& bases)
{
    return !bases.c && p.bias_along == BiasAlong::None && p.activation == Activation::None;
}

template <int WM, int WN, typename Function>
__device__ inline void transform_fragments(WarpAccumulator<WM, WN>& acc, Function function)
{
#pragma unroll
    for (auto& row : acc.v)
#pragma unroll
        for (auto& fragment : row)
            transform(fragment, function);
}

// Two neighbouring elements of C as they lie in memory.
template <Type C>
struct CPair {
    uint32_t bits;
    __device__ float get(int i) const { return to_float(static_cast<uint16_t>(bits >> 16 * i), C); }
};
template <>
struct CPair<Type::F32> {
    float2 bits;
    __device__ float get(int i) const { return i ? bits.y : bits.x; }
};

// Replaces the sums by alpha times the sums plus beta times C, whose first element for the warp is (i, j).
// A lane loads AtOnce pairs before it uses any.
template <Type C, int AtOnce, int WM, int WN>
__device__ inline void add_c(const OutputParams& p, const Scalars& s, const char* c,
                             WarpAccumulator<WM, WN>& acc, int64_t i, int64_t j, int lane)
{
    const int64_t row = i + lane / 4, column = j + lane % 4 * 2;
    const int64_t bytes = sizeof(CPair<C>) / 2;
    const char* from = c + (row * p.ldc + column) * bytes;
    const auto rows = static_cast<int>(min(p.m - row, int64_t{WM}));
    const auto columns = static_cast<int>(min(p.n - column, int64_t{WN}));
#pragma unroll
    for (int r = 0; r < WM; r += 8, from += 8 * p.ldc * bytes)
#pragma unroll
        for (int first = 0; first < WN / 8; first += AtOnce) {
            CPair<C> pairs[AtOnce];
#pragma unroll
            for (int q = 0; q < AtOnce && first + q < WN / 8; ++q)
                if (r < rows && 8 * (first + q) < columns)
                    pairs[q] = reinterpret_cast<const CPair<C>*>(from)[4 * (first + q)];
#pragma unroll
            for (int q = 0; q < AtOnce && first + q < WN / 8; ++q)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& v = acc.v[r / 16][first + q][r % 16 / 4 + e];
                    v = fmaf(s.beta, pairs[q].get(e), __fmul_rn(s.alpha, v));
                }
        }
}

// The lane's two elements of a bias in each of `Blocks` blocks of eight columns, from column j on, 0 where
// there is no column. The type is tested once, so that the loads overlap.
template <int Blocks>
__device__ inline void load_bias(float (&bias)[Blocks][2], const OutputParams& p, const char* from,
                                 int64_t j)
{
    const auto columns = static_cast<int>(min(p.n - j, int64_t{8 * Blocks}));
    const auto load = [&](auto element) {
#pragma unroll
        for (int q = 0; q < Blocks; ++q)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                bias[q][e] = 8 * q + e < columns ? element(8 * q + e) : 0.0f;
    };
    if (p.type_bias == Type::F32)
        load([base = reinterpret_cast<const float*>(from) + j](int i) { return base[i]; });
    else
        load([&p, base = reinterpret_cast<const uint16_t*>(from) + j](int i) {
            return to_float(base[i], p.type_bias);
        });
}

// Adds the bias of the columns from j on.
template <int WM, int WN>
__device__ inline void add_bias(const OutputParams& p, const char* from, WarpAccumulator<WM, WN>& acc,
                                int64_t j, int lane)
{
    constexpr int blocks = WN % 32 == 0 ? 4 : 2;
#pragma unroll
    for (int first = 0; first < WN / 8; first += blocks) {
        float bias[blocks][2];
        load_bias(bias, p, from, j + 8 * first + lane % 4 * 2);
#pragma unroll
        for (int r = 0; r < WM / 8; ++r)
#pragma unroll
            for (int q = 0; q < blocks; ++q)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& v = acc.v[r / 2][first + q][r % 2 * 2 + e];
                    v = __fadd_rn(v, bias[q][e]);
                }
    }
}

// Finishes the sums of a warp whose first one is (i, j) of the output, but for the factor that it returns.
// FloatC: C may be of floats, else of T alone.
template <Type T, bool FloatC, int WM, int WN>
__device__ inline float add_to_fragments(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                         WarpAccumulator<WM, WN>& acc, int64_t i, int64_t j, int lane)
{
    if (adds_nothing(p, bases))
        return s.alpha;
    if (!bases.c)
        transform_fragments(acc, [&](float x) { return __fmul_rn(s.alpha, x); });
    else if (FloatC && p.type_c == Type::F32)
        add_c<Type::F32, 4>(p, s, bases.c, acc, i, j, lane);
    else
        add_c<T, 8>(p, s, bases.c, acc, i, j, lane);
    if (p.bias_along != BiasAlong::None)
        add_bias(p, bases.bias, acc, j, lane);
    if (p.activation == Activation::Relu)
        transform_fragments(acc, [](float x) { return relu(x); });
    return 1.0f;
}

// Where a lane stores: `to` is its element of the warp's first fragment, the bounds count from there.
struct LaneOutput {
    char* to;
    int64_t row_bytes;
    int rows, columns;

    __device__ LaneOutput(const OutputParams& p, char* d, int64_t i, int64_t j, int bytes)
        : to(d + (i * p.ldd + j) * bytes), row_bytes(p.ldd * bytes),
          rows(static_cast<int>(min(p.m - i, int64_t{INT32_MAX}))),
          columns(static_cast<int>(min(p.n - j, int64_t{INT32_MAX})))
    {
    }
    __device__ bool has(int row, int column) const { return row < rows && column < columns; }
};

// Stores 16 rows of fragments of 16-bit results. Each lane stores whole vectors, which it collects from the
// four lanes that hold a row: of four blocks of eight columns it gets one, of two one in one of two rows.
template <Type T, int Blocks>
__device__ inline void store_rows_16(const float (*fragments)[4], float alpha, const LaneOutput& out,
                                     int row, int lane)
{
    constexpr int at_once = Blocks % 4 == 0 ? 4 : 2, rows = 4 / at_once;
#pragma unroll
    for (int half = 0; half < 2; half += rows) {
        char* const to = out.to + (row + 8 * half) * out.row_bytes;
#pragma unroll
        for (int first = 0; first < Blocks; first += at_once) {
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* const v = fragments[first + i % at_once] + 2 * (half + i / at_once);
                words[i] = to_bits2(__fmul_rn(alpha, v[0]), __fmul_rn(alpha, v[1]), T);
            }
            transpose_quad(words, lane);
            if (out.has(row + 8 * half, 8 * first))
                ptx::store_global_v4(reinterpret_cast<uint4*>(to + 16 * first),
                                     make_uint4(words[0], words[1], words[2], words[3]));
        }
    }
}

// The same for floats, of which four lanes fill a sector of 32 bytes in a row.
template <int Blocks>
__device__ inline void store_rows_32(const float (*fragments)[4], float alpha, const LaneOutput& out,
                                     int row)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        char* const to = out.to + (row + 8 * half) * out.row_bytes;
#pragma unroll
        for (int block = 0; block < Blocks; ++block) {
            const float* const v = fragments[block] + 2 * half;
            if (out.has(row + 8 * half, 8 * block))
                *reinterpret_cast<float2*>(to + 32 * block) =
                    make_float2(__fmul_rn(alpha, v[0]), __fmul_rn(alpha, v[1]));
        }
    }
}

template <Type T, int WM, int WN>
__device__ inline void store_from_registers(const OutputParams& p, float alpha, char* d,
                                            const WarpAccumulator<WM, WN>& acc, int64_t row, int64_t column,
                                            int lane)
{
    const int quad = lane / 4, in_quad = lane % 4;
    if (p.type_d == Type::F32) {
        const LaneOutput out(p, d, row + quad, column + 2 * in_quad, 4);
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            store_rows_32<WN / 8>(acc.v[i], alpha, out, 16 * i);
    } else {
        constexpr int at_once = WN % 32 == 0 ? 4 : 2;
        const LaneOutput out(p, d, row + quad + in_quad / at_once * 8, column + in_quad % at_once * 8, 2);
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            store_rows_16<T, WN / 8>(acc.v[i], alpha, out, 16 * i, lane);
    }
}

}  // namespace hg
