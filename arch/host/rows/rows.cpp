#include "arch/host/rows/rows.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/host/epilogue.hpp"
#include "src/base/convert.hpp"

#include <algorithm>

namespace hg {
namespace {

// Floats on a thread's stack: the sums of a chunk of columns, and a slice of the few rows.
constexpr int64_t sums_room = 4096, few_room = 8192;

// The operand of few rows and the large one. The rows of `few` are rows of D if few_is_a, else its columns.
struct Sides {
    const Operand &few, &many;
    int rows;
    int64_t columns;
    bool few_is_a;

    Sides(const Problem& p, bool a)
        : few(a ? p.a : p.b), many(a ? p.b : p.a),
          rows(static_cast<int>(std::min<int64_t>(a ? p.m : p.n, INT32_MAX))), columns(a ? p.n : p.m),
          few_is_a(a)
    {
    }
    bool serve() const { return rows <= few_rows && (many.k_stride == 1 || many.row_stride == 1); }
    bool along_k() const { return many.k_stride == 1 && (many.row_stride != 1 || columns == 1); }
};

// With few rows on both sides, the operand with more of them is the large one.
Sides sides_of(const Problem& p)
{
    const Sides a(p, true), b(p, false);
    return a.serve() && (p.m <= p.n || !b.serve()) ? a : b;
}

// One call of multiply_rows().
struct RowsMultiplication {
    const Problem& p;
    const Sides sides = sides_of(p);
    const Epilogue epilogue{p};
    const RowsKernels::Loop loop;
    // K is cut into equal slices, the last one shorter, such that a slice of the few rows fits few_room.
    const int64_t max_depth = few_room / sides.rows / rows_padding * rows_padding;
    const int64_t slices = std::max<int64_t>(1, (p.k + max_depth - 1) / max_depth);
    const int64_t depth = round_up((p.k + slices - 1) / slices, rows_padding);
    const int64_t chunk = sums_room / sides.rows / rows_padding * rows_padding;
    const int64_t units = (sides.columns + rows_padding - 1) / rows_padding;  // of 16 columns, of a problem

    void run(int64_t begin, int64_t end) const;
    void run_columns(int64_t z, int64_t begin, int64_t end) const;
    void add_terms(int64_t z, int64_t begin, int64_t count, float* sums, int64_t sums_ld) const;
    void widen_few(int64_t z, int64_t k0, int64_t length, float* few) const;
};

// `begin` and `end` count units, of one problem of the batch after the other.
void RowsMultiplication::run(int64_t begin, int64_t end) const
{
    while (begin < end) {
        const int64_t z = begin / units, first = begin % units;
        const int64_t last = std::min(units, first + end - begin);
        run_columns(z, first * rows_padding, std::min(last * rows_padding, sides.columns));
        begin += last - first;
    }
}

void RowsMultiplication::run_columns(int64_t z, int64_t begin, int64_t end) const
{
    alignas(64) float sums[sums_room];
    for (; begin < end; begin += chunk) {
        const int64_t count = std::min(chunk, end - begin), sums_ld = round_up(count, rows_padding);
        std::fill_n(sums, sides.rows * sums_ld, 0.0f);
        if (epilogue.wants_sums())
            add_terms(z, begin, count, sums, sums_ld);
        for (int i = 0; i < sides.rows; ++i)
            epilogue.store(z, sides.few_is_a ? i : begin, sides.few_is_a ? begin : i,
                           sides.few_is_a ? Along::Row : Along::Column, count, sums + i * sums_ld);
    }
}

void RowsMultiplication::add_terms(int64_t z, int64_t begin, int64_t count, float* sums,
                                   int64_t sums_ld) const
{
    alignas(64) float few[few_room];
    int64_t offset = 0;
    const void* const many = base(sides.many, z, offset);
    offset += begin * sides.many.row_stride;
    for (int64_t k0 = 0; k0 < p.k; k0 += depth) {
        const int64_t length = std::min(depth, p.k - k0);
        widen_few(z, k0, length, few);
        loop({static_cast<const uint16_t*>(many) + offset + k0 * sides.many.k_stride,
              sides.along_k() ? sides.many.row_stride : sides.many.k_stride, count, length, few, depth,
              sides.rows, sums, sums_ld});
    }
}

void RowsMultiplication::widen_few(int64_t z, int64_t k0, int64_t length, float* few) const
{
    int64_t offset = 0;
    const void* const source = base(sides.few, z, offset);
    for (int i = 0; i < sides.rows; ++i) {
        float* const row = few + i * depth;
        to_float(p.type_ab, source, offset + i * sides.few.row_stride + k0 * sides.few.k_stride,
                 sides.few.k_stride, length, row);
        std::fill(row + length, row + round_up(length, rows_padding), 0.0f);
    }
}

}  // namespace

bool is_few_rows(const Problem& problem) { return sides_of(problem).serve(); }

void multiply_rows(Pool& pool, const RowsKernels& kernels, const Problem& problem, int threads)
{
    const Sides sides = sides_of(problem);
    const RowsMultiplication multiplication{.p = problem,
                                            .loop = kernels.loop(problem.type_ab, sides.along_k())};
    // How many threads are worth waking, by the elements of the large operand.
    constexpr double elements_per_thread = 65536;
    const double elements = static_cast<double>(problem.batch) * static_cast<double>(sides.columns) *
                            static_cast<double>(problem.k);
    const int useful = static_cast<int>(std::clamp(elements / elements_per_thread, 1.0, double(threads)));
    pool.parallel_for(useful, problem.batch * multiplication.units,
                      [&](int64_t begin, int64_t end) { multiplication.run(begin, end); });
}

}  // namespace hg
