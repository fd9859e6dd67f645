// What kernels ask of a problem, found once and handed down: facts about its operands and its output.
#pragma once

#include "arch/common/types.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstdint>

namespace hg {

// Tensor maps have 32-bit coordinates; a tile may start before the end and reach past it.
constexpr int64_t max_tma_extent = INT32_MAX - 1024;

constexpr Major major_of(const Operand& o) { return o.k_stride == 1 ? Major::K : Major::MN; }

// The stride between lines of contiguous elements; 0 when no dimension is contiguous.
constexpr int64_t line_stride(const Operand& o)
{
    return o.k_stride == 1 ? o.row_stride : o.row_stride == 1 ? o.k_stride : 0;
}

// Can 16-byte accesses reach every line of a matrix? `line` and `batch` are strides in elements.
inline bool is_vector_aligned(const void* ptr, int64_t line, int64_t batch, int64_t element_bytes)
{
    return reinterpret_cast<uintptr_t>(ptr) % 16 == 0 && line * element_bytes % 16 == 0 &&
           batch * element_bytes % 16 == 0;
}

// The pointer that kernels take beside an array, if there is one: see problem_base().
template <typename T>
T* base_of(const Operand& o)
{
    return static_cast<T*>(o.array ? reinterpret_cast<const void*>(2 * o.offset) : o.ptr);
}
template <typename T>
T* base_of(const Matrix& m)
{
    return static_cast<T*>(m.array ? reinterpret_cast<void*>(bytes_of(m.type) * m.offset) : m.ptr);
}

struct OperandFacts {
    Major major;   // the contiguous dimension
    int64_t line;  // line_stride()
    bool vectors;  // 16-byte accesses can walk its lines: contiguous in one dimension, aligned, no array
    bool tma;      // a tensor map can describe it

    OperandFacts(const Operand& o, int64_t batch) : major(major_of(o)), line(line_stride(o))
    {
        constexpr int64_t max_stride = int64_t{1} << 39;  // of tensor maps: below 2^40 bytes
        const int64_t step = batch > 1 ? o.batch_stride : 0;
        vectors = line > 0 && !o.array && is_vector_aligned(o.ptr, line, step, 2);
        tma = vectors && line < max_stride && step >= 0 && step < max_stride;
    }
};

struct OutputFacts {
    int64_t columns;  // Problem::columns()
    bool reads_c, aux, bias;
    bool simple;    // D = alpha * A * B, and a bias at most
    bool plain;     // D = alpha * A * B
    bool vectors;   // simple, in rows of D that are whole aligned vectors of eight
    bool elements;  // simple, in rows where vectors do not fit: one column a lane is best
    bool tma;       // TMA can store D
    bool own_type;  // D is of floats or of the operands' type
    bool fusible;   // TMA stores D, and loads C and stores aux where there are such

    explicit OutputFacts(const Problem& p);
};

struct Facts {
    const Problem& problem;
    OperandFacts a, b;
    OutputFacts output;

    Facts(const Problem& p) : problem(p), a(p.a, p.batch), b(p.b, p.batch), output(p) {}

    // Of the operand that the MMA takes for its A.
    const OperandFacts& mma_a(bool swap_ab) const { return swap_ab ? b : a; }
    const OperandFacts& mma_b(bool swap_ab) const { return swap_ab ? a : b; }
};

// Can a tensor map describe an output, C or aux?
inline bool is_tma_matrix(const Matrix& matrix, int64_t batch)
{
    constexpr int64_t max_bytes = int64_t{1} << 40;
    const int64_t bytes = bytes_of(matrix.type), batch_stride = batch > 1 ? matrix.batch_stride : 0;
    return !matrix.array && matrix.ld > 0 && batch_stride >= 0 &&
           is_vector_aligned(matrix.ptr, matrix.ld, batch_stride, bytes) && matrix.ld * bytes < max_bytes &&
           batch_stride * bytes < max_bytes;
}

inline OutputFacts::OutputFacts(const Problem& p)
    : columns(p.columns()), reads_c(p.c.exists()), aux(p.aux.ptr), bias(p.bias.along != BiasAlong::None)
{
    const int64_t bytes = bytes_of(p.d.type);
    const bool aligned_rows = is_vector_aligned(p.d.ptr, p.d.ld, p.batch > 1 ? p.d.batch_stride : 0, bytes);
    simple = !reads_c && !aux && p.activation == Activation::None && !p.is_gated();
    plain = simple && !bias;
    vectors = simple && !p.d.array && columns % 8 == 0 && p.d.ld > 0 && aligned_rows;
    elements = simple && !p.d.array && !aligned_rows;
    // A TMA store writes whole 16-byte units: one that reaches past the last column would overwrite what
    // lies there.
    tma = is_tma_matrix(p.d, p.batch) && columns * bytes % 16 == 0;
    own_type = p.d.type == Type::F32 || p.d.type == p.type_ab;
    // All problems may share C: a tensor map has no stride of 0.
    const bool c_fits = is_tma_matrix(p.c, p.batch) && (p.batch == 1 || p.c.batch_stride > 0) &&
                        (p.c.type == Type::F32 || p.c.type == p.type_ab);
    // aux is of D's type, and has as many columns unless there are gates.
    const bool aux_fits = is_tma_matrix(p.aux, p.batch) && p.d.type == p.type_ab;
    fusible = tma && own_type && !p.is_gated() && p.activation != Activation::GeluErf &&
              (!aux || aux_fits) && (!reads_c || c_fits);
}

// The problem with as many matrices A and D as there are in memory: contiguous groups share one.
inline Problem rows_of_groups(const Problem& p)
{
    Problem rows = p;
    if (p.groups.contiguous())
        rows.batch = 1;
    return rows;
}

// Why TMA cannot address a problem of such sizes; null where it can.
inline const char* extent_refusal(const Problem& p)
{
    return std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent ? "a size is 2^31 or more" : nullptr;
}

// Why kernels that read A and B by TMA cannot serve a problem; null where they can.
inline const char* tma_refusal(const Facts& f)
{
    if (const char* const why_not = extent_refusal(f.problem))
        return why_not;
    if (!f.a.tma || !f.b.tma)
        return "TMA cannot address A or B: one contiguous dimension and 16-byte alignment are needed";
    return nullptr;
}

}  // namespace hg
