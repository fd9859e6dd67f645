#include "arch/host/gemm.hpp"

#include "arch/host/convert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hg {
namespace {

constexpr int64_t epilogue_chunk = 512;                      // elements that the epilogue takes at a time
constexpr int row_major = 101, no_trans = 111, trans = 112;  // CBLAS's values

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Equal blocks, so that a size just above the limit does not end in a sliver.
int64_t block_size(int64_t size, int64_t limit)
{
    const int64_t count = std::max<int64_t>(1, block_count(size, limit));
    return std::min(size, round_up(block_count(size, count), 16));
}

// Lines that are a multiple of 1 KiB apart fall into the same few sets of a cache.
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

// Threads that are worth waking for so many elements.
int useful_threads(int64_t elements, int threads)
{
    constexpr int64_t elements_per_thread = 16384;
    return static_cast<int>(std::clamp<int64_t>(elements / elements_per_thread, 1, threads));
}

// Where problem z of a batch lies: what element offsets count from.
template <class View>
auto* base(const View& x, int64_t z, int64_t& offset)
{
    offset = x.array ? 0 : z * x.batch_stride;
    return x.array ? x.array[z] : x.ptr;
}

// One call of multiply(): the problem, its scalars and its place in the workspace.
struct Product {
    HostState& state;
    const Problem& p;
    const int threads;
    const Blocks blocks = blocks_of(p);
    float alpha = p.alpha_device ? *p.alpha_device : p.alpha;
    const float beta = p.beta_device ? *p.beta_device : p.beta;
    float *a = nullptr, *b = nullptr, *sum = nullptr;  // panels; null where A * B is not wanted

    void place_panels(float* workspace);
    void convert(const Operand& x, int64_t z, int64_t row0, int64_t rows, int64_t k0, int64_t depth,
                 const Panel& to, float* values);
    void sgemm(int transa, int transb, int64_t m, int64_t n, int64_t k, float keep);
    void accumulate(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns);
    void store(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns);
    void store_chunk(int64_t z, int64_t i, int64_t j, int64_t count, float* values);
};

void Product::place_panels(float* workspace)
{
    a = workspace;
    b = a + blocks.a.bytes / sizeof(float);
    sum = b + blocks.b.bytes / sizeof(float);
}

void Product::convert(const Operand& x, int64_t z, int64_t row0, int64_t rows, int64_t k0, int64_t depth,
                      const Panel& to, float* values)
{
    int64_t offset = 0;
    const void* source = base(x, z, offset);
    offset += row0 * x.row_stride + k0 * x.k_stride;
    const int64_t lines = to.along_k ? rows : depth, length = to.along_k ? depth : rows;
    const int64_t line_stride = to.along_k ? x.row_stride : x.k_stride;
    const int64_t stride = to.along_k ? x.k_stride : x.row_stride;
    const Type type = p.type_ab;
    state.pool->parallel_for(useful_threads(rows * depth, threads), lines, [=](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line)
            to_float(type, source, offset + line * line_stride, stride, length, values + line * to.ld);
    });
}

// The panels of A and B into the one of sums. No size of a block is near the limit of an int.
void Product::sgemm(int transa, int transb, int64_t m, int64_t n, int64_t k, float keep)
{
    const auto narrow = [](int64_t size) { return static_cast<int>(size); };
    state.blas.sgemm(row_major, transa, transb, narrow(m), narrow(n), narrow(k), 1.0f, a,
                     narrow(blocks.a.ld), b, narrow(blocks.b.ld), keep, sum, narrow(blocks.sum.ld));
}

// The sum panel of one block of D, in ascending order of k.
void Product::accumulate(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    for (int64_t k0 = 0; k0 < p.k; k0 += blocks.k) {
        const int64_t depth = std::min(blocks.k, p.k - k0);
        const bool a_is_there = blocks.k == p.k && j0 > 0;  // from the block of D on the left
        if (!a_is_there)
            convert(p.a, z, i0, rows, k0, depth, blocks.a, a);
        convert(p.b, z, j0, columns, k0, depth, blocks.b, b);
        sgemm(blocks.a.along_k ? no_trans : trans, blocks.b.along_k ? trans : no_trans, rows, columns,
              depth, k0 == 0 ? 0.0f : 1.0f);
    }
}

// Minus infinity, of which the activations would make infinity times 0, as a number that they take to its
// limit. NaN stays NaN.
float bounded(float x) { return std::max(x, std::numeric_limits<float>::lowest()); }

void activate(Activation activation, float* values, int64_t count)
{
    const auto apply = [=](auto function) { std::transform(values, values + count, values, function); };
    switch (activation) {
    case Activation::None: break;
    // NaN stays NaN.
    case Activation::Relu: apply([](float x) { return x <= 0.0f ? 0.0f : x; }); break;
    // 0.5 * (1 + tanh(u)) as a logistic function and 0.5 * (1 + erf(u)) as erfc: no cancellation at x < 0.
    case Activation::GeluTanh:
        apply([](float x) {
            x = bounded(x);
            return x / (1.0f + std::exp(-1.5957691216f * (x + 0.044715f * x * x * x)));  // 2 sqrt(2 / pi)
        });
        break;
    case Activation::GeluErf:
        apply([](float x) {
            x = bounded(x);
            return 0.5f * x * std::erfc(-0.70710678119f * x);  // sqrt(1 / 2)
        });
        break;
    case Activation::Silu: apply([](float x) { return bounded(x) / (1.0f + std::exp(-x)); }); break;
    }
}

// The epilogue of `count` elements of row i from column j on; `values` holds their sums.
void Product::store_chunk(int64_t z, int64_t i, int64_t j, int64_t count, float* values)
{
    float operand[epilogue_chunk];
    int64_t offset = 0;
    for (int64_t e = 0; e < count; ++e)
        values[e] *= alpha;
    if (beta != 0.0f) {
        const void* c = base(p.c, z, offset);
        to_float(p.c.type, c, offset + i * p.c.ld + j, 1, count, operand);
        for (int64_t e = 0; e < count; ++e)
            values[e] += beta * operand[e];
    }
    if (p.bias.along != BiasAlong::None) {
        const bool columns = p.bias.along == BiasAlong::Columns;
        to_float(p.bias.type, p.bias.ptr, z * p.bias.batch_stride + (columns ? j : i), columns ? 1 : 0,
                 count, operand);
        for (int64_t e = 0; e < count; ++e)
            values[e] += operand[e];
    }
    if (p.aux.ptr || p.aux.array) {
        void* aux = base(p.aux, z, offset);
        from_float(p.aux.type, values, count, aux, offset + i * p.aux.ld + j);
    }
    activate(p.activation, values, count);
    void* d = base(p.d, z, offset);
    from_float(p.d.type, values, count, d, offset + i * p.d.ld + j);
}

void Product::store(int64_t z, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    const auto store_rows = [&](int64_t begin, int64_t end) {
        float values[epilogue_chunk];
        for (int64_t i = begin; i < end; ++i)
            for (int64_t j = 0; j < columns; j += epilogue_chunk) {
                const int64_t count = std::min(epilogue_chunk, columns - j);
                if (sum)
                    std::copy_n(sum + i * blocks.sum.ld + j, count, values);
                else
                    std::fill_n(values, count, 0.0f);
                store_chunk(z, i0 + i, j0 + j, count, values);
            }
    };
    state.pool->parallel_for(useful_threads(rows * columns, threads), rows, store_rows);
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

size_t largest_workspace()
{
    const auto larger = [](int64_t lines, int64_t length) {
        return std::max(panel(true, lines, length).bytes, panel(true, length, lines).bytes);
    };
    return larger(block_m, block_k) + larger(block_n, block_k) + panel(false, block_m, block_n).bytes;
}

void multiply(HostState& state, const Problem& problem, void* workspace, int threads)
{
    Product product{state, problem, threads};
    if (problem.k > 0 && product.alpha != 0.0f)
        product.place_panels(static_cast<float*>(workspace));
    else
        product.alpha = 0.0f;  // not an infinity or NaN, which would make something of the sum 0
    const Blocks& blocks = product.blocks;
    for (int64_t z = 0; z < problem.batch; ++z)
        for (int64_t i = 0; i < problem.m; i += blocks.m)
            for (int64_t j = 0; j < problem.n; j += blocks.n) {
                const int64_t rows = std::min(blocks.m, problem.m - i);
                const int64_t columns = std::min(blocks.n, problem.n - j);
                if (product.sum)
                    product.accumulate(z, i, rows, j, columns);
                product.store(z, i, rows, j, columns);
            }
}

}  // namespace hg
