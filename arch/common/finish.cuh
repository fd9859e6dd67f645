// From complete sums to the output, for everything that a plain tile store cannot do: any alignment, any
// type, C, bias, activation, aux, ragged edges. Where all lines are made of whole vectors, a thread keeps
// to eight columns; else to one, and the lanes of a warp walk the rows side by side.
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

template <typename T>
__device__ inline T* problem_base(T* ptr, T* const* array, int64_t element_offset, int64_t element_bytes,
                                  int32_t z)
{
    return array ? array[z]
                 : reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(ptr) + element_offset * element_bytes);
}

// Where the output of problem z lies, and what goes with it; null: not there.
struct OutputBases {
    char* d;
    const char* c;
    const char* bias;
    char* aux;
    bool vectors;  // vectors of eight are aligned in all matrices

    __device__ OutputBases(const OutputParams& p, const Scalars& s, int32_t z)
    {
        const int64_t bytes = device_bytes_of(p.type_d), bytes_c = device_bytes_of(p.type_c);
        const int64_t bytes_bias = device_bytes_of(p.type_bias);
        const bool reads_c = s.beta != 0.0f && (p.c || p.c_array);
        d = static_cast<char*>(problem_base(p.d, p.d_array, z * p.stride_d, bytes, z));
        c = reads_c ? static_cast<const char*>(problem_base(p.c, p.c_array, z * p.stride_c, bytes_c, z))
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

// Asks L2 for what the epilogue of `rows` x `columns` from (row, column) on will read. Thread number
// `thread` of `threads`.
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

// A thread's rows i, i + step, ... of the output, `rows` of them, all in the columns j ... j + 7.
struct RowsOfThread {
    int64_t i, j;
    int step, rows;
};

// What a thread needs for every row of its eight columns; T: the type of the operands. Where there is a
// product to wait for, found before it.
template <Type T>
struct OutputColumn {
    char* d;
    const char* c;           // null: not read
    int64_t step_d, step_c;  // bytes from a row to the next
    float bias[8];           // of the columns; -0.0, to which adding changes nothing, where it has none

    OutputColumn() = default;

    __device__ OutputColumn(const OutputParams& p, const OutputBases& bases, const RowsOfThread& at)
    {
        const int64_t bytes = device_bytes_of(p.type_d), bytes_c = device_bytes_of(p.type_c);
        d = bases.d + (at.i * p.ldd + at.j) * bytes;
        step_d = at.step * p.ldd * bytes;
        c = bases.c ? bases.c + (at.i * p.ldc + at.j) * bytes_c : nullptr;
        step_c = at.step * p.ldc * bytes_c;
        forget_bias();
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

    __device__ void forget_bias()
    {
#pragma unroll
        for (float& b : bias)
            b = -0.0f;
    }

    // alpha times the sums, and the bias.
    __device__ void scale(float (&v)[8], float alpha) const
    {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            v[e] = __fadd_rn(__fmul_rn(alpha, v[e]), bias[e]);
    }
};

// A vector of C, as it lies in memory.
template <Type C>
struct VectorOfC {
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

// alpha times the sums and beta times C of type C, to where the sums were. C of some rows, as many as there
// are registers for, is asked for together, since each would be waited for.
template <Type C, Type T, typename Sums>
__device__ inline void add_c(const Scalars& s, const OutputColumn<T>& column, int rows, Sums sums)
{
    constexpr int at_once = Sums::vectors_of_c / VectorOfC<C>::words;
    const char* next = column.c;
#pragma unroll 1
    for (int r = 0; r < rows; r += at_once, next += at_once * column.step_c) {
        VectorOfC<C> c[at_once];
#pragma unroll
        for (int q = 0; q < at_once; ++q)
            if (r + q < rows)
                c[q].load(next + q * column.step_c);
#pragma unroll
        for (int q = 0; q < at_once; ++q) {
            if (r + q >= rows)
                break;
            float v[8], of_c[8];
            sums.get(v, r + q);
            c[q].get(of_c);
#pragma unroll
            for (int e = 0; e < 8; ++e)
                v[e] = fmaf(s.beta, of_c[e], __fmul_rn(s.alpha, v[e]));
            sums.put(v, r + q);
        }
    }
}

// alpha times the sums and any bias, to where the sums were and to aux.
template <Type T, typename Sums>
__device__ inline void store_aux(const OutputParams& p, float alpha, const OutputBases& bases,
                                 const OutputColumn<T>& column, const RowsOfThread& at, Sums sums)
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
        for_each_of(v, [&](float x) { return __fadd_rn(x, bias); });
        sums.put(v, r);
        if (bases.aux)
            store_vector<T>(v, aux, p.type_d);
    }
}

// The last of it: alpha, the bias of the columns and an activation, to D.
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
        for_each_of(v, function);
        store_vector<T>(v, d, type);
    }
}

// Whole vectors in memory that has them aligned. sums.get(v, r) gives a thread's sums of its r-th row,
// sums.put(v, r) keeps others, Sums::vectors_of_c is how many vectors of C it has registers for, at least
// two; where() says OutputBases and RowsOfThread, which are seldom asked for. A warp is alone with this, so
// that every instruction is waited for, branches and those that it has to fetch most: hence a short loop
// for each step and each activation.
template <Type T, typename Sums, typename Where>
__device__ inline void finish_vectors(const OutputParams& p, const Scalars& s, OutputColumn<T> column,
                                      int rows, Sums sums, Where where)
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
        const auto [bases, at] = where();
        store_aux<T>(p, alpha, bases, column, at, sums);
        alpha = 1.0f;
        column.forget_bias();
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

// One element, to which C has been added.
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

// Likewise, and C is yet to be added.
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

// The sums of a column, in rows first, first + step, ..., with C, whose rows begin at `c`. Elements of
// several rows are asked for at once: D may be C, so that no load passes a store.
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
            float of_c;
            if constexpr (sizeof(Bits) == 4)
                of_c = bits[q];
            else
                of_c = to_float(bits[q], p.type_c);
            v = fmaf(s.beta, of_c, __fmul_rn(s.alpha, v));
        }
    }
}

// A column of the output from row i on: rows first, first + step, ... of `rows`.
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

// `rows` by `columns` that exist from (i, j) on, by warps side by side: `warp` of `warps` takes rows in
// turn, several at once where fewer than 32 columns are left. The lanes store neighbours, so that L2 gets
// whole sectors: eight columns a lane are eight times as many pieces. sum(row, column) is where the sums
// are; C is added there.
template <typename Sum>
__device__ inline void finish_elements(const OutputParams& p, const Scalars& s, const OutputBases& bases,
                                       int64_t i, int64_t j, int rows, int columns, int warp, int warps,
                                       Sum sum)
{
    const int lane = threadIdx.x % 32, left = columns % 32;
    int column = lane;
#pragma unroll 1
    for (; column < columns - left; column += 32)
        finish_column(p, s, bases, i, j + column, rows, warp, warps,
                      [&](int row) -> float& { return sum(row, column); });
    if (left == 0)
        return;
    // A loop of its own: the one above is 2 % faster with a step that the compiler knows.
    const int across = 1 << (32 - __clz(left - 1)), rows_at_once = 32 / across;
    column = columns - left + lane % across;
    if (column < columns)
        finish_column(p, s, bases, i, j + column, rows, warp * rows_at_once + lane / across,
                      warps * rows_at_once, [&](int row) -> float& { return sum(row, column); });
}

}  // namespace hg
