// The loops of host_packed for AMX: an instruction multiplies 16 rows of A by 16 columns of B, 32 K at a
// time.
#include "arch/host/packed/kernels.hpp"
#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#include <algorithm>
#include <atomic>
#include <cstring>

#define HGEMM_UNIT [[gnu::target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx2,fma,f16c")]]
#include "arch/host/units/avx512.inl"

namespace hg {
namespace {

#include "arch/host/packed/loops.inl"
#include "arch/host/units/pairs.inl"

using Pairs = PairsOf<false>;

constexpr int side = 16;            // rows of a register, and words of a row
constexpr int amx_side = 2 * side;  // rows and columns of D that four registers of sums have
constexpr int64_t lines_rows = 32;  // of A at a time, as they lie in memory
constexpr int64_t line = side * sizeof(float), columns_line = amx_side * sizeof(float);  // bytes

// What LDTILECFG reads: the shapes of the eight registers, which are all used whole.
struct alignas(64) Shapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes[16] = {line, line, line, line, line, line, line, line};
    uint8_t rows[16] = {side, side, side, side, side, side, side, side};
};
constexpr Shapes shapes;

// GCC's header does not say that loads of registers read memory.
void see_memory() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// 16 rows of A with 32 K each, `line` bytes apart.
struct Square {
    const void* words;
    int64_t line;
};

// 16 or 32 rows of D, and 16 or 32 columns. Registers 0 to 3 have its sums, 4 and 5 A, 6 and 7 B.
template <bool two_rows, bool two_columns>
struct Amx {
    HGEMM_INLINE static void begin()
    {
        see_memory();
        _tile_loadconfig(&shapes);
    }
    HGEMM_INLINE static void end() { _tile_release(); }

    HGEMM_INLINE void load(const PanelProduct& p, const float* sums)
    {
        const int64_t sums_line = p.sums_ld * static_cast<int64_t>(sizeof(float));
        const float* const below = sums + side * p.sums_ld;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        if (p.first)
            return;
        _tile_loadd(0, sums, sums_line);
        if (two_columns)
            _tile_loadd(1, sums + side, sums_line);
        if (two_rows)
            _tile_loadd(2, below, sums_line);
        if (two_rows && two_columns)
            _tile_loadd(3, below + side, sums_line);
    }

    HGEMM_INLINE void add(const Square& rows, const Square& rows_below, const float* columns)
    {
        _tile_loadd(6, columns, columns_line);
        _tile_loadd(4, rows.words, rows.line);
        _tile_dpbf16ps(0, 4, 6);
        if (two_columns) {
            _tile_loadd(7, columns + side, columns_line);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (two_rows) {
            _tile_loadd(5, rows_below.words, rows_below.line);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (two_rows && two_columns)
            _tile_dpbf16ps(3, 5, 7);
    }

    HGEMM_INLINE void store(const PanelProduct& p, float* sums) const
    {
        const int64_t sums_line = p.sums_ld * static_cast<int64_t>(sizeof(float));
        float* const below = sums + side * p.sums_ld;
        _tile_stored(0, sums, sums_line);
        if (two_columns)
            _tile_stored(1, sums + side, sums_line);
        if (two_rows)
            _tile_stored(2, below, sums_line);
        if (two_rows && two_columns)
            _tile_stored(3, below + side, sums_line);
    }
};

// The same without AMX, and without taking subnormal numbers for zero. In the order of the instruction: of
// 32 K the products of even K are added in ascending order, and those of odd K; then both sums, and what is
// there.
template <bool two_rows, bool two_columns>
class Model {
public:
    HGEMM_INLINE static void begin() {}
    HGEMM_INLINE static void end() {}

    HGEMM_INLINE void load(const PanelProduct& p, const float* sums)
    {
        for (int r = 0; r < rows_; ++r)
            for (int v = 0; v < vectors_; ++v)
                sums_[r][v] = p.first ? zero() : hg::load(sums + r * p.sums_ld + v * lanes);
    }

    HGEMM_INLINE void add(const Square& rows, const Square& rows_below, const float* columns)
    {
        for (int r = 0; r < rows_; ++r) {
            const Square& square = r < side ? rows : rows_below;
            add_row(static_cast<const char*>(square.words) + r % side * square.line, columns, sums_[r]);
        }
    }

    HGEMM_INLINE void store(const PanelProduct& p, float* sums) const
    {
        for (int r = 0; r < rows_; ++r)
            for (int v = 0; v < vectors_; ++v)
                hg::store(sums + r * p.sums_ld + v * lanes, sums_[r][v]);
    }

private:
    static constexpr int rows_ = two_rows ? amx_side : side, vectors_ = two_columns ? 2 : 1;

    HGEMM_UNIT static void add_row(const char* words, const float* columns, Vector (&sums)[vectors_])
    {
        Vector even[vectors_], odd[vectors_];
        for (int v = 0; v < vectors_; ++v)
            even[v] = odd[v] = zero();
        for (int i = 0; i < side; ++i, columns += amx_side) {
            int word;
            std::memcpy(&word, words + i * sizeof word, sizeof word);
            const Vector row = _mm512_castsi512_ps(_mm512_set1_epi32(word));
            for (int v = 0; v < vectors_; ++v) {
                const Vector column = hg::load(columns + v * lanes);
                even[v] = multiply_add(lower(column), lower(row), even[v]);
                odd[v] = multiply_add(upper(column), upper(row), odd[v]);
            }
        }
        for (int v = 0; v < vectors_; ++v)
            sums[v] = hg::add(sums[v], hg::add(even[v], odd[v]));
    }

    Vector sums_[rows_][vectors_];
};

// Rows that are packed.
struct PackedRows {
    const float* words;
    int64_t ld;

    HGEMM_INLINE Square square(bool below, int64_t word)
    {
        return {words + word * ld + (below ? side * side : 0), line};
    }
};

// Rows as they lie in memory. What there is of a square at the ends is copied, and followed by zeros.
struct Lines {
    PackSource a;
    int64_t row;
    bool are_known;  // else the format has to look at them
    Pairs format;
    Vector (*copies)[side];

    HGEMM_INLINE Square square(bool below, int64_t word)
    {
        constexpr int64_t most_k = 2 * side, bytes = sizeof(uint16_t);
        const int64_t first = row + (below ? side : 0), k = 2 * word;
        const int64_t rows = std::min<int64_t>(side, a.rows - first), depth = std::min(most_k, a.depth - k);
        const uint16_t* const elements = a.elements + first * a.row_stride + k;
        const bool whole = rows == side && depth == most_k;
        if (!whole || !are_known)
            for (int r = 0; r < side; ++r) {
                const Vector words = r < rows ? format.along_k(elements + r * a.row_stride, depth) : zero();
                if (!whole)
                    copies[below][r] = words;
            }
        if (whole)
            return {elements, a.row_stride * bytes};
        see_memory();
        return {copies[below], line};
    }
};

template <template <bool, bool> class Tile, bool two_rows, bool two_columns, class Rows>
HGEMM_UNIT void multiply_tile(const PanelProduct& p, Rows& rows, const float* b, float* sums)
{
    Rows local = rows;  // so that registers have what a format sees
    Tile<two_rows, two_columns> tile;
    tile.load(p, sums);
    for (int64_t word = 0; word < p.words; word += side, b += side * amx_side) {
        const Square above = local.square(false, word);
        tile.add(above, two_rows ? local.square(true, word) : above, b);
    }
    tile.store(p, sums);
    rows = local;
}

template <template <bool, bool> class Tile, class Rows>
void multiply_rows(const PanelProduct& p, Rows& rows, int64_t i, int64_t j, int64_t row_count,
                   const float* b)
{
    constexpr decltype(&multiply_tile<Tile, true, true, Rows>) of[2][2] = {
        {multiply_tile<Tile, false, false, Rows>, multiply_tile<Tile, false, true, Rows>},
        {multiply_tile<Tile, true, false, Rows>, multiply_tile<Tile, true, true, Rows>}};
    of[row_count > side][p.columns - j > side](p, rows, b, p.sums + i * p.sums_ld + j);
}

template <template <bool, bool> class Tile>
HGEMM_UNIT void multiply_squares(const PanelProduct& p)
{
    Tile<true, true>::begin();
    const float* b = p.b;
    for (int64_t j = 0; j < p.columns; j += p.b_panels.rows, b += p.b_panels.words) {
        const float* a = p.a;
        for (int64_t i = 0; i < p.rows; i += p.a_panels.rows, a += p.a_panels.words) {
            PackedRows rows{a, p.a_panels.ld};
            multiply_rows<Tile>(p, rows, i, j, std::min(p.a_panels.rows, p.rows - i), b);
        }
    }
    Tile<true, true>::end();
}

// All panels of B for some rows before the next rows, which are read from memory once.
template <template <bool, bool> class Tile>
HGEMM_UNIT int multiply_lines(const PackSource& a, const PanelProduct& p)
{
    constexpr uint16_t minus_zero = 0x8000;
    Vector copies[2][side];
    Pairs format(minus_zero);
    Tile<true, true>::begin();
    for (int64_t i = 0; i < a.rows; i += lines_rows) {
        const float* b = p.b;
        for (int64_t j = 0; j < p.columns; j += p.b_panels.rows, b += p.b_panels.words) {
            Lines rows{a, i, j > 0, format, copies};
            multiply_rows<Tile>(p, rows, i, j, std::min(lines_rows, a.rows - i), b);
            format = rows.format;
        }
    }
    Tile<true, true>::end();
    return format.lowest();
}

// Do the instructions round as the model does? Intel's manual says so.
bool adds_as_documented()
{
    constexpr int64_t words = 2 * side;
    alignas(64) static uint32_t a[amx_side * words], b[amx_side * words];
    alignas(64) static float sums[2][amx_side * amx_side];
    uint32_t random = 1;
    for (uint32_t* const operand : {a, b})
        for (int i = 0; i < amx_side * words; ++i) {
            random = random * 1664525 + 1013904223;
            operand[i] = (random & 0x8fff8fff) | 0x30003000;  // magnitudes from 2^-31 to 2^1
        }
    constexpr Panels panels{amx_side, amx_side, amx_side * words, 0, true, true};
    for (const bool first : {true, false})
        for (const bool by_amx : {true, false})
            (by_amx ? multiply_squares<Amx>
                    : multiply_squares<Model>)({reinterpret_cast<const float*>(a),
                                                reinterpret_cast<const float*>(b), panels, panels, amx_side,
                                                amx_side, words, sums[by_amx], amx_side, first});
    return std::memcmp(sums[0], sums[1], sizeof sums[0]) == 0;
}

bool has_amx()
{
    static const bool found = cpu_may_use_amx_bf16() && adds_as_documented();
    return found;
}

}  // namespace

extern const PackedKernels packed_amx;
const PackedKernels packed_amx = {.name = "amx",
                                  .runs_here = has_amx,
                                  .leads = true,
                                  .per_word = Pairs::per_word,
                                  .tile_rows = amx_side,
                                  .tile_columns = amx_side,
                                  .row_step = side,
                                  .row_ld = amx_side,
                                  .has_squares = true,
                                  .work = 2 * work,
                                  .pack_f16 = nullptr,
                                  .pack_bf16 = pack<Pairs>,
                                  .multiply = multiply_squares<Amx>,
                                  .multiply_exactly = multiply_squares<Model>,
                                  .multiply_lines = multiply_lines<Amx>,
                                  .multiply_lines_exactly = multiply_lines<Model>,
                                  .least_exponents = least_exponents};

}  // namespace hg
#endif
