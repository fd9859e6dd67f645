// The loops of PackedKernels in terms of one vector unit, included once by each file that defines it:
//   what rows/loops.inl wants
//   tile_rows, tile_vectors   rows and vectors of the largest tile: what registers hold
//   transpose(v)              of `lanes` vectors
// Words are moved as fp32, also those that have two bf16. A Format says what words there are:
//   per_word                            K in a word
//   along_k(p, n)                       `lanes` words of one row: n elements, then zeros
//   across(p, k_stride, in_word, rows)  a word of each of up to `lanes` rows that are neighbours in memory,
//                                       with `in_word` elements of each
//   lowest()                            what Pack returns

// What a Format has seen stays in registers only where its functions are inlined into pack().
#define HGEMM_INLINE [[gnu::always_inline]] HGEMM_UNIT inline

constexpr int64_t cache_line = 32, lines_ahead = 8;  // elements; K
constexpr int row_ld = (tile_rows + lanes - 1) / lanes * lanes;

// Words with one K, as fp32.
template <class Element>
struct Widened {
    static constexpr int per_word = 1;

    HGEMM_UNIT explicit Widened(uint16_t) {}
    HGEMM_UNIT Vector along_k(const uint16_t* elements, int64_t count)
    {
        return count == lanes ? Element::load(elements) : Element::load_part(elements, count);
    }
    HGEMM_UNIT Vector across(const uint16_t* elements, int64_t, int64_t, int64_t rows)
    {
        return along_k(elements, rows);
    }
    HGEMM_UNIT int lowest() const { return 0; }
};

// Where the words of row `row` of a panel begin, from its word `word` on: both are multiples of `lanes`.
inline int64_t place(const Panels& panels, int64_t row, int64_t word)
{
    return word * panels.ld + row * (panels.by_rows ? lanes : 1);
}

// `lanes` words of each of as many rows.
HGEMM_UNIT inline void store_square(const Panels& panels, Vector (&v)[lanes], int64_t count, float* words)
{
    if (!panels.by_rows)
        transpose(v);
    const int64_t ld = panels.by_rows ? lanes : panels.ld, lines = panels.whole ? lanes : count;
    for (int i = 0; i < lanes; ++i)
        if (i < lines)
            store(words + i * ld, v[i]);
}

// Up to `lanes` rows whose elements are contiguous along K; `step` elements of each at most.
template <class Format, bool whole>
HGEMM_INLINE void pack_square(Format& format, const Panels& panels, const uint16_t* elements,
                              int64_t row_stride, int64_t rows, int64_t depth, float* words)
{
    Vector v[lanes];
    for (int r = 0; whole && r < lanes; ++r)
        __builtin_prefetch(elements + (lanes + r) * row_stride, 0, 2);
    for (int r = 0; r < lanes; ++r)
        v[r] = whole ? format.along_k(elements + r * row_stride, lanes * Format::per_word)
                     : (r < rows ? format.along_k(elements + r * row_stride, depth) : zero());
    store_square(panels, v, whole ? lanes : (depth + Format::per_word - 1) / Format::per_word, words);
}

template <class Format>
HGEMM_INLINE void pack_along_k(Format& format, const Panels& panels, const PackSource& s, int64_t rows,
                               float* words)
{
    constexpr int64_t step = lanes * Format::per_word;
    int64_t k = 0;
    if (rows == lanes)
        for (; k + step <= s.depth; k += step)
            pack_square<Format, true>(format, panels, s.elements + k, s.row_stride, lanes, step,
                                      words + place(panels, 0, k / Format::per_word));
    for (; k < s.depth; k += step)
        pack_square<Format, false>(format, panels, s.elements + k, s.row_stride, rows,
                                   s.depth - k < step ? s.depth - k : step,
                                   words + place(panels, 0, k / Format::per_word));
}

// Rows that are contiguous in no direction: as above, on copies.
template <class Format>
HGEMM_INLINE void pack_scattered(Format& format, const Panels& panels, const PackSource& s, int64_t rows,
                                 float* words)
{
    constexpr int64_t step = lanes * Format::per_word;
    uint16_t copies[lanes * step];
    for (int64_t k = 0; k < s.depth; k += step) {
        const int64_t depth = s.depth - k < step ? s.depth - k : step;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < depth; ++i)
                copies[r * step + i] = s.elements[r * s.row_stride + (k + i) * s.k_stride];
        pack_square<Format, false>(format, panels, copies, step, rows, depth,
                                   words + place(panels, 0, k / Format::per_word));
    }
}

// Up to `lanes` rows that are neighbours in memory, from their first K on, to panels by rows.
template <class Format>
HGEMM_INLINE void pack_turned(Format& format, const Panels& panels, const PackSource& s, int64_t rows,
                              float* words)
{
    constexpr int64_t step = lanes * Format::per_word;
    for (int64_t k = 0; k < s.depth; k += step) {
        Vector v[lanes];
        for (int i = 0; i < lanes; ++i) {
            const int64_t at = k + i * Format::per_word, left = s.depth - at;
            v[i] = left > 0 && rows > 0
                       ? format.across(s.elements + at * s.k_stride, s.k_stride,
                                       left < Format::per_word ? left : Format::per_word, rows)
                       : zero();
        }
        transpose(v);
        store_square(panels, v, lanes, words + place(panels, 0, k / Format::per_word));
    }
}

// Of all panels, from word `word` on.
HGEMM_UNIT inline void clear_last_words(const Panels& panels, int64_t rows, int64_t word, float* words)
{
    for (int64_t row = 0; row < rows; row += panels.rows, words += panels.words)
        for (int64_t i = word; i % lanes != 0; ++i)
            for (int64_t r = 0; r < panels.ld; r += lanes)
                store(words + i * panels.ld + r, zero());
}

// Rows that are neighbours in memory: a line has the elements of one K.
template <class Format>
HGEMM_INLINE void pack_across(Format& format, const PackSource& s, const Panels& panels, float* words)
{
    for (int64_t k = 0; k < s.depth; k += Format::per_word) {
        const int64_t in_word = s.depth - k < Format::per_word ? s.depth - k : Format::per_word;
        const uint16_t* const line = s.elements + k * s.k_stride;
        float* panel = words + k / Format::per_word * panels.ld;
        for (int64_t row = 0; row < s.rows; row += panels.rows, panel += panels.words) {
            const int64_t rows = s.rows - row < panels.rows ? s.rows - row : panels.rows;
            // Lines are too short for the processor to see where the next ones are.
            for (int64_t r = 0; r < rows; r += cache_line)
                for (int64_t i = 0; i < Format::per_word && k + lines_ahead + i < s.depth; ++i)
                    __builtin_prefetch(line + row + r + (lines_ahead + i) * s.k_stride);
            for (int64_t r = 0; r < panels.ld; r += lanes)
                store(panel + r, r < rows ? format.across(line + row + r, s.k_stride, in_word,
                                                          rows - r < lanes ? rows - r : lanes)
                                          : zero());
        }
    }
    if (panels.whole)
        clear_last_words(panels, s.rows, (s.depth + Format::per_word - 1) / Format::per_word, words);
}

template <class Format>
HGEMM_UNIT int pack(const PackSource& source, const Panels& panels, float* words)
{
    Format format(panels.missing);
    const bool are_neighbours = source.row_stride == 1 && source.k_stride != 1;
    if (are_neighbours && !panels.by_rows) {
        pack_across(format, source, panels, words);
        return format.lowest();
    }
    for (int64_t row = 0; row < source.rows; row += panels.rows, words += panels.words)
        for (int64_t r = 0; r < panels.ld; r += lanes) {
            const int64_t all = source.rows - row < panels.rows ? source.rows - row : panels.rows;
            const int64_t rows = all - r < 0 ? 0 : all - r < lanes ? all - r : lanes;
            PackSource part = source;
            part.elements += (rows > 0 ? row + r : 0) * source.row_stride;
            float* const to = words + place(panels, r, 0);
            if (source.k_stride == 1)
                pack_along_k(format, panels, part, rows, to);
            else if (are_neighbours)
                pack_turned(format, panels, part, rows, to);
            else
                pack_scattered(format, panels, part, rows, to);
        }
    return format.lowest();
}

struct MultiplyAdd {
    HGEMM_UNIT static Vector apply(Vector a, Vector b, Vector sum) { return multiply_add(b, a, sum); }
};

// GCC keeps the sums in registers only where it unrolls all loops over them.
template <class Multiply, int rows>
HGEMM_UNIT void tile(const float* a, const float* b, int64_t words, float* sums, int64_t ld, bool first)
{
    Vector sum[rows][tile_vectors];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < tile_vectors; ++v)
            sum[r][v] = zero();
    for (int64_t k = 0; k < words; ++k, a += row_ld, b += tile_vectors * lanes) {
        Vector column[tile_vectors];
        for (int v = 0; v < tile_vectors; ++v)
            column[v] = load(b + v * lanes);
        for (int r = 0; r < rows; ++r) {
            const Vector row = broadcast(a[r]);
            for (int v = 0; v < tile_vectors; ++v)
                sum[r][v] = Multiply::apply(row, column[v], sum[r][v]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r, sums += ld)
#pragma GCC unroll 16
        for (int v = 0; v < tile_vectors; ++v) {
            float* const place = sums + v * lanes;
            store(place, first ? sum[r][v] : add(load(place), sum[r][v]));
        }
}

using Tile = void (*)(const float* a, const float* b, int64_t words, float* sums, int64_t ld, bool first);

// Tiles of 1, 2, ... rows.
template <class Multiply, int... more>
constexpr auto list_tiles(std::integer_sequence<int, more...>)
{
    return std::array<Tile, sizeof...(more)>{tile<Multiply, more + 1>...};
}
template <class Multiply>
constexpr auto tiles_of = list_tiles<Multiply>(std::make_integer_sequence<int, tile_rows>());

// In ascending order of K.
template <class Multiply>
void multiply_panels(const PanelProduct& p)
{
    const float* b = p.b;
    for (int64_t j = 0; j < p.columns; j += p.b_panels.rows, b += p.b_panels.words) {
        const float* a = p.a;
        for (int64_t i = 0; i < p.rows; i += p.a_panels.rows, a += p.a_panels.words) {
            const int64_t rows = p.rows - i < p.a_panels.rows ? p.rows - i : p.a_panels.rows;
            tiles_of<Multiply>[rows - 1](a, b, p.words, p.sums + i * p.sums_ld + j, p.sums_ld, p.first);
        }
    }
}

constexpr double work = 4e6;  // PackedKernels::work

// What a unit has whose words are fp32.
constexpr PackedKernels widened_kernels(const char* name, bool (*runs_here)(), bool leads)
{
    return {.name = name,
            .runs_here = runs_here,
            .leads = leads,
            .per_word = 1,
            .tile_rows = tile_rows,
            .tile_columns = tile_vectors * lanes,
            .row_step = 1,
            .row_ld = row_ld,
            .has_squares = false,
            .work = work,
            .pack_f16 = pack<Widened<Half>>,
            .pack_bf16 = pack<Widened<Bfloat16>>,
            .multiply = multiply_panels<MultiplyAdd>,
            .multiply_exactly = multiply_panels<MultiplyAdd>,
            .multiply_lines = nullptr,
            .multiply_lines_exactly = nullptr,
            .least_exponents = 0};
}
