#include "arch/host/gemm.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/host/epilogue.hpp"
#include "src/base/convert.hpp"

#include <algorithm>

namespace hg {
namespace {

constexpr int row_major = 101, no_trans = 111, trans = 112;  // CBLAS's values

// Equal blocks, so that a size just above the limit does not end in a sliver.
int64_t block_size(int64_t size, int64_t limit)
{
    const int64_t count = std::max<int64_t>(1, block_count(size, limit));
    return std::min(size, round_up(block_count(size, count), 16));
}

// The leading dimension is no multiple of 1 KiB: such lines would fall into the same few sets of a cache.
constexpr Panel panel(bool along_k, int64_t lines, int64_t length)
{
    const int64_t ld = length % 256 == 0 ? length + 16 : length;
    return {along_k, ld, static_cast<size_t>(round_up(lines * ld * 4, 256))};
}

Panel operand_panel(const Operand& x, int64_t rows, int64_t block_rows, int64_t block_depth)
{
    const bool along_k = x.k_stride == 1 || x.row_stride != 1 || rows == 1;
    return along_k ? panel(true, block_rows, block_depth) : panel(false, block_depth, block_rows);
}

// How many threads are worth waking for `elements`.
int useful_threads(int64_t elements, int threads)
{
    constexpr int64_t elements_per_thread = 16384;
    return static_cast<int>(std::clamp<int64_t>(elements / elements_per_thread, 1, threads));
}

// The state of one call of multiply().
struct Multiplication {
    const OpenBlas& blas;
    Pool& pool;
    const Problem& p;
    const int threads;
    const Blocks blocks = blocks_of(p);
    const Epilogue epilogue{p};
    float *a = nullptr, *b = nullptr, *sum = nullptr;  // panels; null where A * B is not wanted

    void place_panels(float* workspace);
    void convert(const Operand& x, int64_t z, int64_t row0, int64_t rows, int64_t k0, int64_t depth,
                 const Panel& to, float* values);
    void sgemm(int transa, int transb, int64_t m, int64_t n, int64_t k, float keep);
    void accumulate(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns);
    void store(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns);
};

void Multiplication::place_panels(float* workspace)
{
    a = workspace;
    b = a + blocks.a.bytes / sizeof(float);
    sum = b + blocks.b.bytes / sizeof(float);
}

void Multiplication::convert(const Operand& x, int64_t z, int64_t row0, int64_t rows, int64_t k0,
                             int64_t depth, const Panel& to, float* values)
{
    int64_t offset = 0;
    const void* source = base(x, z, offset);
    offset += row0 * x.row_stride + k0 * x.k_stride;
    const int64_t lines = to.along_k ? rows : depth, length = to.along_k ? depth : rows;
    const int64_t line_stride = to.along_k ? x.row_stride : x.k_stride;
    const int64_t stride = to.along_k ? x.k_stride : x.row_stride;
    const Type type = p.type_ab;
    pool.parallel_for(useful_threads(rows * depth, threads), lines, [=](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line)
            to_float(type, source, offset + line * line_stride, stride, length, values + line * to.ld);
    });
}

// sum = keep * sum + a * b, on panels. Sizes of a block fit an int.
void Multiplication::sgemm(int transa, int transb, int64_t m, int64_t n, int64_t k, float keep)
{
    const auto narrow = [](int64_t size) { return static_cast<int>(size); };
    blas.sgemm(row_major, transa, transb, narrow(m), narrow(n), narrow(k), 1.0f, a, narrow(blocks.a.ld), b,
               narrow(blocks.b.ld), keep, sum, narrow(blocks.sum.ld));
}

// Fills the panel of sums of one block of D, in ascending order of K.
void Multiplication::accumulate(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    for (int64_t k0 = 0; k0 < p.k; k0 += blocks.k) {
        const int64_t depth = std::min(blocks.k, p.k - k0);
        const bool a_is_there = blocks.k == p.k && j0 > 0;  // converted for the block of D on the left
        if (!a_is_there)
            convert(p.a, z, i0, rows, k0, depth, blocks.a, a);
        convert(p.b, z, j0, columns, k0, depth, blocks.b, b);
        sgemm(blocks.a.along_k ? no_trans : trans, blocks.b.along_k ? trans : no_trans, rows, columns,
              depth, k0 == 0 ? 0.0f : 1.0f);
    }
}

void Multiplication::store(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    const auto store_rows = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            if (sum)
                epilogue.store(z, i0 + i, j0, Along::Row, columns, sum + i * blocks.sum.ld);
            else
                epilogue.store_zeros(z, i0 + i, j0, Along::Row, columns);
    };
    pool.parallel_for(useful_threads(rows * columns, threads), rows, store_rows);
}

}  // namespace

Blocks blocks_of(const Problem& p)
{
    Blocks blocks{block_size(p.m, block_m), block_size(p.n, block_n), block_size(p.k, block_k), {}, {}, {}};
    if (p.k == 0)
        return blocks;
    blocks.a = operand_panel(p.a, p.m, blocks.m, blocks.k);
    blocks.b = operand_panel(p.b, p.n, blocks.n, blocks.k);
    blocks.sum = panel(false, blocks.m, blocks.n);
    return blocks;
}

size_t max_workspace()
{
    const auto larger = [](int64_t lines, int64_t length) {
        return std::max(panel(true, lines, length).bytes, panel(true, length, lines).bytes);
    };
    return larger(block_m, block_k) + larger(block_n, block_k) + panel(false, block_m, block_n).bytes;
}

void multiply(const OpenBlas& blas, Pool& pool, const Problem& problem, void* workspace, int threads)
{
    Multiplication multiplication{blas, pool, problem, threads};
    if (multiplication.epilogue.wants_sums())
        multiplication.place_panels(static_cast<float*>(workspace));
    const Blocks& blocks = multiplication.blocks;
    for (int64_t z = 0; z < problem.batch; ++z)
        for (int64_t i = 0; i < problem.m; i += blocks.m)
            for (int64_t j = 0; j < problem.n; j += blocks.n) {
                const int64_t rows = std::min(blocks.m, problem.m - i);
                const int64_t columns = std::min(blocks.n, problem.n - j);
                if (multiplication.sum)
                    multiplication.accumulate(z, i, rows, j, columns);
                multiplication.store(z, i, rows, j, columns);
            }
}

}  // namespace hg
