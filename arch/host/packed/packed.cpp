#include "arch/host/packed/packed.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/host/epilogue.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace hg {
namespace {

// The two sides of the sums. Those of `down` become rows of a tile, those of `along` its columns, which are
// computed as whole vectors.
struct Directions {
    bool swapped;  // `down` is B
    int64_t down, along;

    explicit Directions(const Problem& p) : Directions(p, p.n < p.m && p.n <= 64) {}
    Directions(const Problem& p, bool swap) : swapped(swap), down(swap ? p.n : p.m), along(swap ? p.m : p.n)
    {
    }
};

// Equal blocks, so that a size just above the limit does not end in a sliver.
int64_t block_size(int64_t size, int64_t limit, int64_t multiple)
{
    size = std::max<int64_t>(size, 1);
    return round_up(ceil_div(size, ceil_div(size, limit)), multiple);
}

// A panel's words do not begin at multiples of a page, which would fall into few sets of a cache.
Panels panels_of(int64_t rows, int64_t ld, int64_t words, uint16_t missing)
{
    return {rows, ld, ld * words + 16, missing};
}

// Where a part's panels and sums lie, in floats from its workspace on.
struct Layout {
    Panels a, b;
    int64_t b_at, sums_at, sums_ld, size;

    Layout(const PackedKernels& kernels, int64_t down, int64_t along, int64_t k)
    {
        const int64_t words = ceil_div(std::min(k, packed_depth), kernels.per_word);
        const int64_t a_panels = ceil_div(down, kernels.tile_rows);
        constexpr uint16_t minus_zero = 0x8000, zero = 0;
        a = panels_of(ceil_div(down, a_panels), kernels.row_ld, words, minus_zero);
        b = panels_of(kernels.tile_columns, kernels.tile_columns, words, zero);
        const auto aligned = [](int64_t floats) { return round_up(floats, 64); };
        sums_ld = round_up(along, kernels.tile_columns);
        b_at = aligned(a_panels * a.words);
        sums_at = b_at + aligned(sums_ld / kernels.tile_columns * b.words);
        size = sums_at + aligned(down * sums_ld);
    }
};

// One call of multiply_packed().
struct PackedMultiplication {
    const Problem& p;
    const PackedKernels& kernels;
    const PackedBlocks& blocks;
    float* const workspace;
    const Directions sides{p};
    const Epilogue epilogue{p};
    const int64_t block_down = sides.swapped ? blocks.n : blocks.m;
    const int64_t block_along = sides.swapped ? blocks.m : blocks.n;
    const int64_t down_count = ceil_div(sides.down, block_down);
    const int64_t along_count = ceil_div(sides.along, block_along);
    const Layout layout{kernels, block_down, block_along, p.k};
    const PackedKernels::Pack pack = kernels.pack(p.type_ab);

    // A block of D, or of its transpose.
    struct Block {
        int64_t z, i, j, rows, columns;
    };

    void run_part(int64_t part, std::atomic<int64_t>& next) const;
    Block block(int64_t index) const;
    void accumulate(const Block& now, float* floats, bool b_is_there, int& b_exponent) const;
    void multiply_panels(const Block& now, const PackedKernels::Tile* tiles, int64_t words, float* floats,
                         bool first) const;
    void store(const Block& now, float* sums) const;
    PackSource source(const Operand& x, int64_t z, int64_t row, int64_t rows, int64_t k,
                      int64_t depth) const;
};

PackSource PackedMultiplication::source(const Operand& x, int64_t z, int64_t row, int64_t rows, int64_t k,
                                        int64_t depth) const
{
    int64_t offset = 0;
    const void* const elements = base(x, z, offset);
    return {static_cast<const uint16_t*>(elements) + offset + row * x.row_stride + k * x.k_stride,
            x.row_stride, x.k_stride, rows, depth};
}

// Blocks one below the other follow each other.
PackedMultiplication::Block PackedMultiplication::block(int64_t index) const
{
    const int64_t i = index % down_count * block_down, rest = index / down_count;
    const int64_t j = rest % along_count * block_along;
    return {rest / along_count, i, j, std::min(block_down, sides.down - i),
            std::min(block_along, sides.along - j)};
}

// Takes block after block, as other threads do: a thread that is held up leaves more of them to the others.
void PackedMultiplication::run_part(int64_t part, std::atomic<int64_t>& next) const
{
    float* const floats = workspace + part * static_cast<int64_t>(blocks.part_bytes / sizeof(float));
    const int64_t count = p.batch * along_count * down_count;
    int b_exponent = 0;
    Block before{-1, -1, -1, 0, 0};
    for (int64_t index = next++; index < count; index = next++) {
        const Block now = block(index);
        const bool b_is_there = now.z == before.z && now.j == before.j && p.k <= packed_depth;
        if (epilogue.wants_sums())
            accumulate(now, floats, b_is_there, b_exponent);
        else
            store(now, nullptr);
        before = now;
    }
}

// Packs and multiplies slices of K in ascending order, then stores the block.
void PackedMultiplication::accumulate(const Block& now, float* floats, bool b_is_there,
                                      int& b_exponent) const
{
    const Operand &a = sides.swapped ? p.b : p.a, &b = sides.swapped ? p.a : p.b;
    for (int64_t k = 0; k < p.k; k += packed_depth) {
        const int64_t depth = std::min(packed_depth, p.k - k);
        if (!b_is_there)
            b_exponent =
                pack(source(b, now.z, now.j, now.columns, k, depth), layout.b, floats + layout.b_at);
        const int a_exponent = pack(source(a, now.z, now.i, now.rows, k, depth), layout.a, floats);
        const bool fast =
            a_exponent > 0 && b_exponent > 0 && a_exponent + b_exponent >= kernels.least_exponents;
        multiply_panels(now, fast ? kernels.tiles : kernels.exact_tiles, ceil_div(depth, kernels.per_word),
                        floats, k == 0);
    }
    store(now, floats + layout.sums_at);
}

void PackedMultiplication::multiply_panels(const Block& now, const PackedKernels::Tile* tiles,
                                           int64_t words, float* floats, bool first) const
{
    const float* b = floats + layout.b_at;
    for (int64_t j = 0; j < now.columns; j += layout.b.rows, b += layout.b.words) {
        const float* a = floats;
        float* const sums = floats + layout.sums_at + j;
        for (int64_t i = 0; i < now.rows; i += layout.a.rows, a += layout.a.words)
            tiles[std::min(layout.a.rows, now.rows - i) - 1](a, b, words, sums + i * layout.sums_ld,
                                                             layout.sums_ld, first);
    }
}

void PackedMultiplication::store(const Block& now, float* sums) const
{
    const Along along = sides.swapped ? Along::Column : Along::Row;
    for (int64_t r = 0; r < now.rows; ++r) {
        const int64_t i = sides.swapped ? now.j : now.i + r, j = sides.swapped ? now.i + r : now.j;
        if (sums)
            epilogue.store(now.z, i, j, along, now.columns, sums + r * layout.sums_ld);
        else
            epilogue.store_zeros(now.z, i, j, along, now.columns);
    }
}

double real(int64_t x) { return static_cast<double>(x); }

// How many threads are worth waking.
double useful_parts(const Problem& p, int threads)
{
    constexpr double products_per_part = 4e6;
    const double products = real(p.batch) * real(p.m) * real(p.n) * real(std::max<int64_t>(p.k, 16));
    return std::floor(std::clamp(products / products_per_part, 1.0, real(threads)));
}

}  // namespace

PackedBlocks packed_blocks(const PackedKernels& kernels, const Problem& p, int threads, size_t workspace)
{
    constexpr double busy = 0.8;  // of the threads' time; smaller blocks are packed more often
    const Directions sides(p);
    const double parts = useful_parts(p, threads);
    int64_t down_limit = packed_rows, along_limit = packed_columns;
    for (;;) {
        const int64_t down = block_size(sides.down, down_limit, 1);
        const int64_t along = block_size(sides.along, along_limit, kernels.tile_columns);
        const double count =
            real(p.batch) * real(ceil_div(sides.down, down)) * real(ceil_div(sides.along, along));
        const bool can_halve_along = along > 2 * kernels.tile_columns && along >= down;
        if (count < busy * parts * std::ceil(count / parts) &&
            (can_halve_along || down > 2 * kernels.tile_rows)) {
            (can_halve_along ? along_limit : down_limit) = (can_halve_along ? along : down) / 2;
            continue;
        }
        const auto floats = p.k > 0 ? Layout(kernels, down, along, p.k).size : 0;
        PackedBlocks blocks{sides.swapped ? along : down, sides.swapped ? down : along,
                            static_cast<int64_t>(std::min(parts, std::max(count, 1.0))),
                            static_cast<size_t>(floats) * sizeof(float)};
        if (blocks.part_bytes > 0)
            blocks.parts =
                std::clamp<int64_t>(static_cast<int64_t>(workspace / blocks.part_bytes), 1, blocks.parts);
        return blocks;
    }
}

size_t max_packed_workspace(const PackedKernels& kernels, int threads)
{
    return static_cast<size_t>(threads) * sizeof(float) *
           static_cast<size_t>(Layout(kernels, packed_rows, packed_columns, packed_depth).size);
}

void multiply_packed(Pool& pool, const PackedKernels& kernels, const Problem& problem,
                     const PackedBlocks& blocks, void* workspace)
{
    const PackedMultiplication multiplication{problem, kernels, blocks, static_cast<float*>(workspace)};
    std::atomic<int64_t> next = 0;
    pool.parallel_for(static_cast<int>(blocks.parts), blocks.parts, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part)
            multiplication.run_part(part, next);
    });
}

}  // namespace hg
