// Gathers the rows of tokens for their choices, combines the rows of choices to those of tokens, and
// multiplies the one by the other.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/experts/config.hpp"
#include "arch/common/ptx/global.cuh"

#include <cstdint>

namespace hg {

// Choices whose rows are read or written at a time, so that they overlap.
constexpr int choices_of_unit = 4;

// Where a unit of a token lies: its token, and its first column.
struct RowUnit {
    int32_t token, column;

    __device__ RowUnit(const RowsParams& p, int32_t unit)
        : token(p.units_of_row.quotient(unit)), column((unit - token * p.units_of_row.value) * p.width)
    {
    }
};

// Of a token's choices from `first` on the rows; -1: none.
__device__ inline void load_rows(const RowsParams& p, int32_t token, int32_t first,
                                 int32_t (&rows)[choices_of_unit])
{
    const int32_t count = p.choices - first;
    const int32_t* const from = p.row_of_choice + int64_t{token} * p.choices + first;
#pragma unroll
    for (int i = 0; i < choices_of_unit; ++i)
        rows[i] = i < count ? from[i] : -1;
#pragma unroll
    for (int32_t& row : rows)
        row = static_cast<uint32_t>(row) < static_cast<uint32_t>(p.limit) ? row : -1;
}

// Of a token's choices from `first` on; 0 behind the last.
__device__ inline void load_weights(const RowsParams& p, int32_t token, int32_t first,
                                    float (&weights)[choices_of_unit])
{
    const int64_t place = token * p.ldw + first;
    const int32_t count = p.choices - first;
    if (!p.weights) {
#pragma unroll
        for (float& weight : weights)
            weight = 1.0f;
    } else if (p.type_weights == Type::F32) {
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
            weights[i] = i < count ? static_cast<const float*>(p.weights)[place + i] : 0.0f;
    } else {
        uint16_t bits[choices_of_unit];
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
            bits[i] = i < count ? static_cast<const uint16_t*>(p.weights)[place + i] : uint16_t{0};
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
            weights[i] = to_float(bits[i], p.type_weights);
    }
}

__device__ inline char* place_of(const RowsParams& p, int32_t row, int32_t column)
{
    return static_cast<char*>(p.d) + (row * p.ldd + column) * device_bytes_of(p.type_d);
}

// Calls store(row, weight) for each of the token's choices that has a row.
template <typename Store>
__device__ inline void for_each_row(const RowsParams& p, int32_t token, Store store)
{
#pragma unroll 1
    for (int32_t first = 0; first < p.choices; first += choices_of_unit) {
        int32_t rows[choices_of_unit];
        float weights[choices_of_unit];
        load_rows(p, token, first, rows);
        load_weights(p, token, first, weights);
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
            if (rows[i] >= 0)
                store(rows[i], weights[i]);
    }
}

__device__ inline void gather_unit(const RowsParams& p, const RowUnit& at)
{
    constexpr Type usual = Type::BF16;
    const char* const from =
        static_cast<const char*>(p.a) + (at.token * p.lda + at.column) * device_bytes_of(p.type_a);
    if (p.copies) {
        const uint4 bits = *reinterpret_cast<const uint4*>(from);
        for_each_row(p, at.token, [&](int32_t row, float) {
            ptx::store_global_v4(reinterpret_cast<uint4*>(place_of(p, row, at.column)), bits);
        });
    } else if (p.width == 1) {
        const float value = load_element(from, 0, p.type_a);
        for_each_row(p, at.token, [&](int32_t row, float weight) {
            store_element(__fmul_rn(weight, value), place_of(p, row, at.column), 0, p.type_d);
        });
    } else {
        float values[epilogue_vector];
        load_vector<usual>(values, from, p.type_a);
        for_each_row(p, at.token, [&](int32_t row, float weight) {
            float v[epilogue_vector];
#pragma unroll
            for (int e = 0; e < epilogue_vector; ++e)
                v[e] = __fmul_rn(weight, values[e]);
            store_vector<usual>(v, place_of(p, row, at.column), p.type_d);
        });
    }
}

// Calls work(unit) for the thread's units.
template <typename Work>
__device__ inline void for_each_unit(const RowsParams& p, Work work)
{
    const auto step = static_cast<int32_t>(gridDim.x * rows_threads);
#pragma unroll 1
    for (int64_t unit = blockIdx.x * rows_threads + threadIdx.x; unit < p.units; unit += step)
        work(RowUnit(p, static_cast<int32_t>(unit)));
}

// The whole kernel. Each row of A is read once. Rows that no choice has stay as they are.
__device__ inline void gather_rows(const RowsParams& p)
{
    for_each_unit(p, [&](const RowUnit& at) { gather_unit(p, at); });
}

// The sums of the units of a token's choices. Where there is no row it reads row 0.
template <int Width, typename Load>
__device__ inline void add_choices(const RowsParams& p, const RowUnit& at, float (&sum)[Width], Load load)
{
#pragma unroll 1
    for (int32_t first = 0; first < p.choices; first += choices_of_unit) {
        int32_t rows[choices_of_unit];
        float weights[choices_of_unit], v[choices_of_unit][Width];
        load_rows(p, at.token, first, rows);
        load_weights(p, at.token, first, weights);
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
            load(v[i], max(rows[i], 0) * p.lda + at.column);
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
#pragma unroll
            for (int e = 0; e < Width; ++e)
                if (rows[i] >= 0)
                    sum[e] = __fadd_rn(sum[e], __fmul_rn(weights[i], v[i][e]));
    }
}

template <Type T>
__device__ inline void combine_vector(const RowsParams& p, const RowUnit& at)
{
    constexpr Type half = T == Type::F16 ? Type::F16 : Type::BF16;
    float sum[epilogue_vector] = {};
    add_choices(p, at, sum, [&](float(&v)[epilogue_vector], int64_t place) {
        load_vector<half>(v, static_cast<const char*>(p.a) + place * device_bytes_of(T), T);
    });
    store_vector<half>(sum, place_of(p, at.token, at.column), p.type_d);
}

__device__ inline void combine_element(const RowsParams& p, const RowUnit& at)
{
    float sum[1] = {};
    add_choices(p, at, sum,
                [&](float(&v)[1], int64_t place) { v[0] = load_element(p.a, place, p.type_a); });
    store_element(sum[0], place_of(p, at.token, at.column), 0, p.type_d);
}

// The whole kernel.
__device__ inline void combine_rows(const RowsParams& p)
{
    for_each_unit(p, [&](const RowUnit& at) {
        if (p.width == 1)
            combine_element(p, at);
        else if (p.type_a == Type::BF16)
            combine_vector<Type::BF16>(p, at);
        else if (p.type_a == Type::F16)
            combine_vector<Type::F16>(p, at);
        else
            combine_vector<Type::F32>(p, at);
    });
}

// Up to eight elements from `place` on; the others are zeros.
__device__ inline void load_elements(float (&v)[epilogue_vector], const void* base, int64_t place,
                                     int32_t count, Type type)
{
#pragma unroll
    for (int e = 0; e < epilogue_vector; ++e)
        v[e] = e < count ? load_element(base, place + e, type) : 0.0f;
}

// What a lane of a warp adds to the dot products of a token's row of A and rows of B: of each 256 columns
// eight, so that the order does not depend on how elements are loaded. Where there is no row it reads row
// 0.
template <typename LoadA, typename LoadB>
__device__ inline void multiply_rows(const RowsParams& p, const int32_t (&rows)[choices_of_unit],
                                     float (&sums)[choices_of_unit], LoadA load_a, LoadB load_b)
{
#pragma unroll 1
    for (int32_t column = threadIdx.x % 32 * epilogue_vector; column < p.columns;
         column += 32 * epilogue_vector) {
        float a[epilogue_vector], b[choices_of_unit][epilogue_vector];
        load_a(a, column);
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
            load_b(b[i], max(rows[i], 0), column);
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i)
#pragma unroll
            for (int e = 0; e < epilogue_vector; ++e)
                sums[i] = fmaf(a[e], b[i][e], sums[i]);
    }
}

// The token's dot products, by a warp.
template <typename LoadA, typename LoadB>
__device__ inline void dot_choices(const RowsParams& p, int32_t token, LoadA load_a, LoadB load_b)
{
    const auto lane = static_cast<int32_t>(threadIdx.x % 32);
#pragma unroll 1
    for (int32_t first = 0; first < p.choices; first += choices_of_unit) {
        int32_t rows[choices_of_unit];
        float sums[choices_of_unit] = {};
        load_rows(p, token, first, rows);
        multiply_rows(p, rows, sums, load_a, load_b);
#pragma unroll
        for (int i = 0; i < choices_of_unit; ++i) {
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2)
                sums[i] += __shfl_xor_sync(0xffffffff, sums[i], apart);
            if (lane == i && first + i < p.choices)
                store_element(rows[i] >= 0 ? sums[i] : 0.0f, p.d, token * p.ldd + first + i, p.type_d);
        }
    }
}

template <Type T>
__device__ inline void dot_vectors(const RowsParams& p, int32_t token)
{
    constexpr Type half = T == Type::F16 ? Type::F16 : Type::BF16;
    const int64_t bytes_a = device_bytes_of(p.type_a);
    const char* const a = static_cast<const char*>(p.a) + token * p.lda * bytes_a;
    dot_choices(
        p, token,
        [&](float(&v)[epilogue_vector], int32_t column) {
            load_vector<half>(v, a + column * bytes_a, p.type_a);
        },
        [&](float(&v)[epilogue_vector], int32_t row, int32_t column) {
            load_vector<half>(
                v, static_cast<const char*>(p.b) + (row * p.ldb + column) * device_bytes_of(T), T);
        });
}

__device__ inline void dot_elements(const RowsParams& p, int32_t token)
{
    dot_choices(
        p, token,
        [&](float(&v)[epilogue_vector], int32_t column) {
            load_elements(v, p.a, token * p.lda + column, p.columns - column, p.type_a);
        },
        [&](float(&v)[epilogue_vector], int32_t row, int32_t column) {
            load_elements(v, p.b, row * p.ldb + column, p.columns - column, p.type_b);
        });
}

// The whole kernel. Each warp takes a token at a time.
__device__ inline void dot_rows(const RowsParams& p)
{
#pragma unroll 1
    for (int64_t token = blockIdx.x * rows_warps + threadIdx.x / 32; token < p.units;
         token += gridDim.x * rows_warps) {
        const auto index = static_cast<int32_t>(token);
        if (p.width == 1)
            dot_elements(p, index);
        else if (p.type_b == Type::BF16)
            dot_vectors<Type::BF16>(p, index);
        else if (p.type_b == Type::F16)
            dot_vectors<Type::F16>(p, index);
        else
            dot_vectors<Type::F32>(p, index);
    }
}

}  // namespace hg
