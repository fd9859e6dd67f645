// From complete sums to the output, for everything that a plain tile store cannot do: any alignment, any
// type, C, bias, activation, aux, ragged edges. Where all rows are whole aligned vectors, a thread stores
// eight columns of some rows; elsewhere one column, with neighbouring lanes in neighbouring columns.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/params.hpp"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/warp.cuh"

namespace hg {

struct Scalars {
    float alpha, beta;
};

__device__ inline Scalars load_scalars(const OutputParams& p)
{
    return {p.alpha_device ? *p.alpha_device : p.alpha, p.beta_device ? *p.beta_device : p.beta};
}

// The base addresses of the output of problem z and of what its epilogue reads; null: absent.
struct OutputBases {
    char* d;
    const char* c;
    const char* bias;
    char* aux;
    bool vectors;  // vectors of eight elements are aligned in D, C and aux

    __device__ OutputBases(const OutputParams& p, const Scalars& s, int32_t z)
    {
        const int64_t bytes = device_bytes_of(p.type_d), bytes_c = device_bytes_of(p.type_c);
        const int64_t bytes_bias = device_bytes_of(p.type_bias);
        const bool reads_c = s.beta != 0.0f && (p.c || p.c_array);
        d = static_cast<char*>(problem_base(p.d, p.d_array, z, p.stride_d * bytes));
        c = reads_c ? static_cast<const char*>(problem_base(p.c, p.c_array, z, p.stride_c * bytes_c))
                    : nullptr;
        bias = static_cast<const char*>(p.bias) + z * p.stride_bias * bytes_bias;
        aux = p.aux ? static_cast<char*>(p.aux) + z * p.stride_aux * bytes : nullptr;
        uint64_t bits = address(d) | static_cast<uint64_t>(p.ldd * bytes);
        if (c)
            bits |= address(c) | static_cast<uint64_t>(p.ldc * bytes_c);
        if (aux)
            bits |= address(aux) | static_cast<uint64_t>(p.ldaux * bytes);
        vectors = bits % 16 == 0;
    }

    __device__ static uint64_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }
};

// Prefetches into L2 what the epilogue of `rows` x `columns` from (row, column) on will read. Called by
// thread `thread` of `threads`.
__device__ inline void prefetch_output(const OutputParams& p, const OutputBases& bases, int64_t row,
                                       int64_t column, int rows, int columns, int thread, int threads)
{
    constexpr uintptr_t line = 128;
    const auto prefetch = [](const char* first, int64_t bytes) {
        const auto begin = OutputBases::address(first);
#pragma unroll 1
        for (uintptr_t at = begin; at < begin + bytes; at = (at / line + 1) * line)
            ptx::prefetch_l2(reinterpret_cast<const void*>(at));
    };
    rows = static_cast<int>(min(p.m - row, int64_t{rows}));
    columns = static_cast<int>(min(p.n - column, int64_t{columns}));
    const int64_t bytes = device_bytes_of(p.type_c), bytes_bias = device_bytes_of(p.type_bias);
#pragma unroll 1
    for (int r = thread; r < rows && bases.c; r += threads)
        prefetch(bases.c + ((row + r) * p.ldc + column) * bytes, columns * bytes);
    if (thread == 0 && p.bias_along == BiasAlong::Columns)
        prefetch(bases.bias + column * bytes_bias, columns * bytes_bias);
    else if (thread == 0 && p.bias_along == BiasAlong::Rows)
        prefetch(bases.bias + row * bytes_bias, rows * bytes_bias);
}

// The rows i, i + step, ... that a thread stores, `rows` of them, in columns j ... j + 7.
struct ThreadRows {
    int64_t i, j;
    int step, rows;
};

// What a thread needs for every row of its eight columns. T: the type of the operands. Split-K kernels
// compute it before their main loop.
template <Type T>
struct OutputColumn {
    char* d;
    const char* c;           // null: C is not read
    int64_t step_d, step_c;  // bytes from a row to the next
    float bias[8];           // of the columns; without one -0.0, the neutral element

    OutputColumn() = default;

    __device__ OutputColumn(const OutputParams& p, const OutputBases& bases, const ThreadRows& at)
    {
        const int64_t bytes = device_bytes_of(p.type_d), bytes_c = device_bytes_of(p.type_c);
        d = bases.d + (at.i * p.ldd + at.j) * bytes;
        step_d = at.step * p.ldd * bytes;
        c = bases.c ? bases.c + (at.i * p.ldc + at.j) * bytes_c : nullptr;
        step_c = at.step * p.ldc * bytes_c;
        clear_bias();
        if (p.bias_along == BiasAlong::Columns)
            load_bias(bases.bias + at.j * device_bytes_of(p.type_bias), p.type_bias);
    }

    __device__ void load_bias(const char* from, Type type)
    {
        if (OutputBases::address(from) % 16 == 0) {
            load_vector<T>(bias, from, type);
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e)
                bias[e] = load_element(from, e, type);
        }
    }

    __device__ void clear_bias()
    {
#pragma unroll
        for (float& b : bias)
            b = -0.0f;
    }

    // alpha times the sums plus the bias.
    __device__ void scale(float (&v)[8], float alpha) const
    {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = __fadd_rn(__fmul_rn(alpha, v[e]), bias[e]);
    }
};

// Eight elements of C as they lie in memory.
template <Type C>
struct CVector {
    static constexpr int words = C == Type::F32 ? 2 : 1;
    uint4 bits[words];

    __device__ void load(const char* from)
    {
#pragma unroll
        for (int i = 0; i < words; ++i)
            bits[i] = ptx::load_global_cg_v4(from + 16 * i);
    }

    __device__ void get(float (&v)[8]) const
    {
        if constexpr (C == Type::F32) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                v[4 * i] = __uint_as_float(bits[i].x), v[4 * i + 1] = __uint_as_float(bits[i].y);
                v[4 * i + 2] = __uint_as_float(bits[i].z), v[4 * i + 3] = __uint_as_float(bits[i].w);
            }
        } else {
            to_floats<C>(v, bits[0]);
        }
    }
};

// Replaces sums by alpha times the sums plus beta times C of type C. It loads C for several rows, as many
// as there are registers for, before using any: a thread would wait for each load.
template <Type C, Type T, typename Sums>
__device__ inline void add_c(const Scalars& s, const OutputColumn<T>& column, int rows, Sums sums)
{
    constexpr int at_once = Sums::vectors_of_c / CVector<C>::words;
    const char* next = column.c;
#pragma unroll 1
    for (int r = 0; r < rows; r += at_once, next += at_once * column.step_c) {
        CVector<C> c[at_once];
#pragma unroll
        for (int q = 0; q < at_once; ++q)
            if (r + q < rows)
                c[q].load(next + q * column.step_c);
#pragma unroll
        for (int q = 0; q < at_once; ++q) {
            if (r + q >= rows)
                break;
            float v[8], c_values[8];
            sums.get(v, r + q);
            c[q].get(c_values);
#pragma unroll
            for (int e = 0; e < 8; ++e)
                v[e] = fmaf(s.beta, c_values[e], __fmul_rn(s.alpha, v[e]));
            sums.put(v, r + q);
        }
    }
}

// Replaces sums by alpha times the sums plus the bias, and stores them to aux, if there is one.
template <Type T, typename Sums>
__device__ inline void store_aux(const OutputParams& p, float alpha, const OutputBases& bases,
                                 const OutputColumn<T>& column, const ThreadRows& at, Sums sums)
{
    char* aux = bases.aux + (at.i * p.ldaux + at.j) * device_bytes_of(p.type_d);
    const int64_t step = at.step * p.ldaux * device_bytes_of(p.type_d);
#pragma unroll 1
    for (int r = 0; r < at.rows; ++r, aux += step) {
        float v[8];
        sums.get(v, r);
        column.scale(v, alpha);
        const float bias = p.bias_along == BiasAlong::Rows
                               ? load_element(bases.bias, at.i + r * at.step, p.type_bias)
                               : -0.0f;
        transform(v, [&](float x) { return __fadd_rn(x, bias); });
        sums.put(v, r);
        if (bases.aux)
            store_vector<T>(v, aux, p.type_d);
    }
}

// The last step: alpha, the bias of the columns and the activation; stores to D.
template <Type T, typename Sums, typename Function>
__device__ inline void store_rows(Type type, float alpha, const OutputColumn<T>& column, int rows,
                                  Sums sums, Function function)
{
    char* d = column.d;
#pragma unroll 1
    for (int r = 0; r < rows; ++r, d += column.step_d) {
        float v[8];
        sums.get(v, r);
        column.scale(v, alpha);
        transform(v, function);
        store_vector<T>(v, d, type);
    }
}

// Finishes whole aligned vectors. sums.get(v, r) returns a thread's sums of its r-th row, sums.put(v, r)
// replaces them; Sums::vectors_of_c, at least two, is the number of vectors of C that fit in registers;
// locate() returns the OutputBases and ThreadRows, which only aux and a bias along rows need. Few warps run
// this at a time and hide little latency, least of all that of branches and instruction fetches: hence a
// short loop for each step and each activation.
template <Type T, typename Sums, typename Locate>
__device__ inline void finish_vectors(const OutputParams& p, const Scalars& s, OutputColumn<T> column,
                                      int rows, Sums sums, Locate locate)
{
    constexpr Type other = T == Type::F16 ? Type::BF16 : Type::F16;
    float alpha = s.alpha;
    if (column.c) {
        if (p.type_c == T)
            add_c<T>(s, column, rows, sums);
        else if (p.type_c == Type::F32)
            add_c<Type::F32>(s, column, rows, sums);
        else
            add_c<other>(s, column, rows, sums);
        alpha = 1.0f;
    }
    if (p.aux || p.bias_along == BiasAlong::Rows) {
        const auto [bases, at] = locate();
        store_aux<T>(p, alpha, bases, column, at, sums);
        alpha = 1.0f;
        column.clear_bias();
    }
    const auto type = static_cast<Type>(ptx::mov_b32(static_cast<uint32_t>(p.type_d)));
    if (p.activation == Activation::None)
        store_rows<T>(type, alpha, column, rows, sums, [](float x) { return x; });
    else if (p.activation == Activation::Relu)
        store_rows<T>(type, alpha, column, rows, sums, [](float x) { return relu(x); });
    else if (p.activation == Activation::GeluTanh)
        store_rows<T>(type, alpha, column, rows, sums, [](float x) { return gelu_tanh(x); });
    else if (p.activation == Activation::GeluErf)
        store_rows<T>(type, alpha, column, rows, sums, [](float x) { return gelu_erf(x); });
    else
        store_rows<T>(type, alpha, column, rows, sums, [](float x) { return silu(x); });
}

// Finishes one element, to which C has been added.
__device__ inline void finish_element(const OutputParams& p, const OutputBases& bases, float alpha,
                                      int64_t i, int64_t j, float sum)
{
    float v = __fmul_rn(alpha, sum);
    if (p.bias_along != BiasAlong::None)
        v = __fadd_rn(v, load_element(bases.bias, p.bias_along == BiasAlong::Rows ? i : j, p.type_bias));
    if (bases.aux)
        store_element(v, bases.aux, i * p.ldaux + j, p.type_d);
    store_element(activate(v, p.activation), bases.d, i * p.ldd + j, p.type_d);
}

// Adds C to one element and finishes it.
__device__ inline void finish_element(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                      int64_t i, int64_t j, float sum)
{
    if (bases.c) {
        const float c = load_element(bases.c, i * p.ldc + j, p.type_c);
        finish_element(p, bases, 1.0f, i, j, fmaf(s.beta, c, __fmul_rn(s.alpha, sum)));
    } else {
        finish_element(p, bases, s.alpha, i, j, sum);
    }
}

// Adds C, whose rows begin at `c`, to the sums of a column in rows first, first + step, ... It loads the
// elements of several rows before storing any: D may be C, so that the compiler moves no load past a store.
template <typename Bits, typename Sum>
__device__ inline void add_c_to_column(const OutputParams& p, const Scalars& s, const Bits* c, int rows,
                                       int first, int step, Sum sum)
{
    constexpr int at_once = 4;
#pragma unroll 1
    for (int row = first; row < rows; row += at_once * step, c += at_once * step * p.ldc) {
        Bits bits[at_once];
#pragma unroll
        for (int q = 0; q < at_once; ++q)
            if (row + q * step < rows)
                bits[q] = c[q * step * p.ldc];
#pragma unroll
        for (int q = 0; q < at_once; ++q) {
            if (row + q * step >= rows)
                break;
            float& v = sum(row + q * step);
            float c_values;
            if constexpr (sizeof(Bits) == 4)
                c_values = bits[q];
            else
                c_values = to_float(bits[q], p.type_c);
            v = fmaf(s.beta, c_values, __fmul_rn(s.alpha, v));
        }
    }
}

// Finishes a column of the output from row i on: rows first, first + step, ... of `rows`.
template <typename Sum>
__device__ inline void finish_column(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                     int64_t i, int64_t j, int rows, int first, int step, Sum of_row)
{
    const bool plain = p.bias_along == BiasAlong::None && !bases.aux && p.activation == Activation::None;
    const float alpha = bases.c ? 1.0f : s.alpha;
    const char* const c = bases.c + ((i + first) * p.ldc + j) * device_bytes_of(p.type_c);
    if (bases.c && p.type_c == Type::F32)
        add_c_to_column(p, s, reinterpret_cast<const float*>(c), rows, first, step, of_row);
    else if (bases.c)
        add_c_to_column(p, s, reinterpret_cast<const uint16_t*>(c), rows, first, step, of_row);
    int row = first;
    if (plain)
#pragma unroll 4
        for (; row < rows; row += step)
            store_element(__fmul_rn(alpha, of_row(row)), bases.d, (i + row) * p.ldd + j, p.type_d);
#pragma unroll 1
    for (; row < rows; row += step)
        finish_element(p, bases, alpha, i + row, j, of_row(row));
}

// Finishes `rows` x `columns` existing elements from (i, j) on. Warp `warp` of `warps` takes every warps-th
// row, or several rows at once for the last columns, if fewer than 32. Neighbouring lanes store
// neighbouring elements, so that L2 gets whole sectors; with eight columns per lane it would get eight
// times as many requests. sum(row, column) is a reference to a sum; C is added there.
template <typename Sum>
__device__ inline void finish_elements(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                       int64_t i, int64_t j, int rows, int columns, int warp, int warps,
                                       Sum sum)
{
    const int lane = threadIdx.x % 32, rest = columns % 32;
    int column = lane;
#pragma unroll 1
    for (; column < columns - rest; column += 32)
        finish_column(p, s, bases, i, j + column, rows, warp, warps,
                      [&](int row) -> float& { return sum(row, column); });
    if (rest == 0)
        return;
    // The last columns have a loop of their own: the one above is 2 % faster with a constant step.
    const int side_by_side = 1 << (32 - __clz(rest - 1)), rows_at_once = 32 / side_by_side;
    column = columns - rest + lane % side_by_side;
    if (column < columns)
        finish_column(p, s, bases, i, j + column, rows, warp * rows_at_once + lane / side_by_side,
                      warps * rows_at_once, [&](int row) -> float& { return sum(row, column); });
}

}  // namespace hg
