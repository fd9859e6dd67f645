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
    bool by_lines;  // `along` is few, and the rows of `down` are multiplied as they lie in memory

    Directions(const PackedKernels& kernels, const Problem& p) : Directions(kernels, p, swaps(kernels, p))
    {
    }

private:
    static constexpr int64_t few = 64;

    // Panels by rows are copied from lines along K, other panels from lines across it. The transpose of D
    // is computed only if D has few rows or columns, since its elements are stored in shorter runs.
    static bool swaps(const PackedKernels& kernels, const Problem& p)
    {
        if (!kernels.has_squares)
            return p.n < p.m && p.n <= few;
        const bool b_is_large = p.m < p.n;
        return std::min(p.m, p.n) <= few && b_is_large == ((b_is_large ? p.b : p.a).k_stride == 1);
    }

    Directions(const PackedKernels& kernels, const Problem& p, bool swap)
        : swapped(swap), down(swap ? p.n : p.m), along(swap ? p.m : p.n),
          by_lines(kernels.multiply_lines && along <= few && (swap ? p.b : p.a).k_stride == 1)
    {
    }
};

// Equal blocks, so that a size just above the limit does not end in a sliver.
int64_t block_size(int64_t size, int64_t limit, int64_t multiple)
{
    size = std::max<int64_t>(size, 1);
    return round_up(ceil_div(size, ceil_div(size, limit)), multiple);
}

// The largest block, and the K that is packed at a time.
struct Cut {
    int64_t down, along, depth;
};

constexpr int64_t lines_down = 64;

// AMX's order of sums has no slices of K. Rows that are multiplied as they lie in memory are read the
// faster the longer they are; half a megabyte is for the operand that is packed. Where a megabyte has room
// for all K, the panels of B serve all blocks below each other: with one thread 1024^3 takes 2.6 ms in
// place of 3.1, 2048^3 23.9 in place of 25.3, with blocks of 256 x 256 2.8 and 25.0 (Xeon with 2 MiB of L2
// a core).
Cut cut_of(const PackedKernels& kernels, const Directions& sides, int64_t k, double parts)
{
    constexpr int64_t elements = int64_t{1} << 19, most_k = 2048;
    if (sides.by_lines)
        return {lines_down, packed_columns, elements / 2 / round_up(sides.along, kernels.tile_columns)};
    if (kernels.has_squares && k > packed_depth && k <= most_k)
        return parts > 1 ? Cut{256, 256, k}
                         : Cut{128, elements / k / kernels.tile_columns * kernels.tile_columns, k};
    return {packed_rows / kernels.tile_rows * kernels.tile_rows, packed_columns, packed_depth};
}

constexpr int64_t square = 16;  // of words and rows, in panels that have them

// A panel's words do not begin at multiples of a page, which would fall into few sets of a cache.
int64_t panel_words(int64_t ld, int64_t words) { return ld * words + square; }

// Where a part's panels and sums lie, in floats from its workspace on.
struct Layout {
    Panels a, b;
    int64_t b_at, sums_at, sums_ld, size;

    Layout(const PackedKernels& kernels, int64_t down, int64_t along, int64_t depth, bool by_lines)
    {
        constexpr uint16_t minus_zero = 0x8000, zero = 0;
        const bool whole = kernels.has_squares;
        const int64_t words = round_up(ceil_div(depth, kernels.per_word), whole ? square : 1);
        const int64_t a_panels = ceil_div(down, kernels.tile_rows), columns = kernels.tile_columns;
        const int64_t a_rows = round_up(ceil_div(down, a_panels), kernels.row_step);
        const int64_t a_ld = whole ? a_rows : kernels.row_ld;
        a = {a_rows, a_ld, panel_words(a_ld, words), minus_zero, whole, whole};
        b = {columns, columns, panel_words(columns, words), zero, false, whole};
        const auto aligned = [](int64_t floats) { return round_up(floats, 64); };
        sums_ld = round_up(along, columns);
        b_at = by_lines ? 0 : aligned(a_panels * a.words);
        sums_at = b_at + aligned(sums_ld / columns * b.words);
        size = sums_at + aligned(round_up(down, kernels.row_step) * sums_ld);
    }
};

// One call of multiply_packed().
struct PackedMultiplication {
    const Problem& p;
    const PackedKernels& kernels;
    const PackedBlocks& blocks;
    float* const workspace;
    const Directions sides{kernels, p};
    const Epilogue epilogue{p};
    const int64_t block_down = sides.swapped ? blocks.n : blocks.m;
    const int64_t block_along = sides.swapped ? blocks.m : blocks.n;
    const int64_t down_count = ceil_div(sides.down, block_down);
    const int64_t along_count = ceil_div(sides.along, block_along);
    const Layout layout{kernels, block_down, block_along, blocks.depth, sides.by_lines};
    const PackedKernels::Pack pack = kernels.pack(p.type_ab);

    // A block of D, or of its transpose.
    struct Block {
        int64_t z, i, j, rows, columns;
    };

    void run_part(int64_t part, std::atomic<int64_t>& next) const;
    Block block(int64_t index) const;
    void accumulate(const Block& now, float* floats, bool b_is_there, int& b_exponent) const;
    bool add_slices(const Block& now, float* floats, bool b_is_there, int& b_exponent, bool exactly) const;
    bool may_flush(int a_exponent, int b_exponent) const
    {
        return a_exponent == 0 || b_exponent == 0 || a_exponent + b_exponent < kernels.least_exponents;
    }
    void store(const Block& now, float* sums) const;
    void store_rows_of_transpose(const Block& now, const float* sums) const;
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
        const bool b_is_there = now.z == before.z && now.j == before.j && p.k <= blocks.depth;
        if (epilogue.wants_sums())
            accumulate(now, floats, b_is_there, b_exponent);
        else
            store(now, nullptr);
        before = now;
    }
}

void PackedMultiplication::accumulate(const Block& now, float* floats, bool b_is_there,
                                      int& b_exponent) const
{
    if (!add_slices(now, floats, b_is_there, b_exponent, false))
        add_slices(now, floats, b_is_there, b_exponent, true);
    store(now, floats + layout.sums_at);
}

// Packs and multiplies slices of K in ascending order. False if sums are wrong that had not to be exact.
bool PackedMultiplication::add_slices(const Block& now, float* floats, bool b_is_there, int& b_exponent,
                                      bool exactly) const
{
    const Operand &a = sides.swapped ? p.b : p.a, &b = sides.swapped ? p.a : p.b;
    for (int64_t k = 0; k < p.k; k += blocks.depth) {
        const int64_t depth = std::min(blocks.depth, p.k - k);
        const PackSource rows = source(a, now.z, now.i, now.rows, k, depth);
        const PanelProduct product{floats,
                                   floats + layout.b_at,
                                   layout.a,
                                   layout.b,
                                   now.rows,
                                   now.columns,
                                   ceil_div(depth, kernels.per_word),
                                   floats + layout.sums_at,
                                   layout.sums_ld,
                                   k == 0};
        if (!b_is_there)
            b_exponent =
                pack(source(b, now.z, now.j, now.columns, k, depth), layout.b, floats + layout.b_at);
        if (sides.by_lines) {
            const auto multiply = exactly ? kernels.multiply_lines_exactly : kernels.multiply_lines;
            if (may_flush(multiply(rows, product), b_exponent) && !exactly)
                return false;
            continue;
        }
        // Sums that were exact once may be subnormal, and what comes after would add to zero.
        const int a_exponent = pack(rows, layout.a, floats);
        exactly = exactly || may_flush(a_exponent, b_exponent);
        (exactly ? kernels.multiply_exactly : kernels.multiply)(product);
    }
    return true;
}

// In runs that are as long as the block allows.
void PackedMultiplication::store(const Block& now, float* sums) const
{
    if (sums && sides.swapped && now.rows >= now.columns) {
        store_rows_of_transpose(now, sums);
        return;
    }
    const Along along = sides.swapped ? Along::Column : Along::Row;
    for (int64_t r = 0; r < now.rows; ++r) {
        const int64_t i = sides.swapped ? now.j : now.i + r, j = sides.swapped ? now.i + r : now.j;
        if (sums)
            epilogue.store(now.z, i, j, along, now.columns, sums + r * layout.sums_ld);
        else
            epilogue.store_zeros(now.z, i, j, along, now.columns);
    }
}

void PackedMultiplication::store_rows_of_transpose(const Block& now, const float* sums) const
{
    float row[lines_down];
    for (int64_t r = 0; r < now.rows; r += lines_down) {
        const int64_t count = std::min(lines_down, now.rows - r);
        for (int64_t c = 0; c < now.columns; ++c) {
            for (int64_t e = 0; e < count; ++e)
                row[e] = sums[(r + e) * layout.sums_ld + c];
            epilogue.store(now.z, now.j + c, now.i + r, Along::Row, count, row);
        }
    }
}

double real(int64_t x) { return static_cast<double>(x); }

// How many threads are worth waking.
double useful_parts(const PackedKernels& kernels, const Problem& p, int threads)
{
    const double products = real(p.batch) * real(p.m) * real(p.n) * real(std::max<int64_t>(p.k, 16));
    return std::floor(std::clamp(products / kernels.work, 1.0, real(threads)));
}

}  // namespace

bool reads_lines(const PackedKernels& kernels, const Problem& problem)
{
    return Directions(kernels, problem).by_lines;
}

PackedBlocks packed_blocks(const PackedKernels& kernels, const Problem& p, int threads, size_t workspace)
{
    constexpr double busy = 0.8;  // of the threads' time; smaller blocks are packed more often
    const Directions sides(kernels, p);
    const double parts = useful_parts(kernels, p, threads);
    auto [down_limit, along_limit, depth_limit] = cut_of(kernels, sides, p.k, parts);
    for (;;) {
        const int64_t down = block_size(sides.down, down_limit, kernels.row_step);
        const int64_t along = block_size(sides.along, along_limit, kernels.tile_columns);
        const double count =
            real(p.batch) * real(ceil_div(sides.down, down)) * real(ceil_div(sides.along, along));
        const bool can_halve_along = along > 2 * kernels.tile_columns && along >= down;
        if (count < busy * parts * std::ceil(count / parts) &&
            (can_halve_along || down > 2 * kernels.tile_rows)) {
            (can_halve_along ? along_limit : down_limit) = (can_halve_along ? along : down) / 2;
            continue;
        }
        const int64_t depth = std::min(p.k, depth_limit);
        const auto floats = p.k > 0 ? Layout(kernels, down, along, depth, sides.by_lines).size : 0;
        PackedBlocks blocks{sides.swapped ? along : down, sides.swapped ? down : along, depth,
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
    constexpr Cut deepest{256, 256, 2048};
    int64_t floats = Layout(kernels, packed_rows, packed_columns, packed_depth, false).size;
    if (kernels.has_squares)
        floats = std::max(floats, Layout(kernels, deepest.down, deepest.along, deepest.depth, false).size);
    return static_cast<size_t>(threads) * sizeof(float) * static_cast<size_t>(floats);
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
