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

// Up to `lanes` rows whose elements are contiguous along K; `step` elements of each at most.
template <class Format, bool whole>
HGEMM_UNIT void pack_square(Format& format, const uint16_t* elements, int64_t row_stride, int64_t rows,
                            int64_t depth, float* words, int64_t ld)
{
    Vector v[lanes];
    for (int r = 0; whole && r < lanes; ++r)
        __builtin_prefetch(elements + (lanes + r) * row_stride, 0, 2);
    for (int r = 0; r < lanes; ++r)
        v[r] = whole ? format.along_k(elements + r * row_stride, lanes * Format::per_word)
                     : (r < rows ? format.along_k(elements + r * row_stride, depth) : zero());
    transpose(v);
    const int64_t count = whole ? lanes : (depth + Format::per_word - 1) / Format::per_word;
    for (int i = 0; i < lanes; ++i)
        if (whole || i < count)
            store(words + i * ld, v[i]);
}

template <class Format>
HGEMM_UNIT void pack_along_k(Format& format, const PackSource& s, int64_t rows, float* words, int64_t ld)
{
    constexpr int64_t step = lanes * Format::per_word;
    int64_t k = 0;
    if (rows == lanes)
        for (; k + step <= s.depth; k += step)
            pack_square<Format, true>(format, s.elements + k, s.row_stride, lanes, step,
                                      words + k / Format::per_word * ld, ld);
    for (; k < s.depth; k += step)
        pack_square<Format, false>(format, s.elements + k, s.row_stride, rows,
                                   s.depth - k < step ? s.depth - k : step,
                                   words + k / Format::per_word * ld, ld);
}

// Rows that are contiguous in no direction: as above, on copies.
template <class Format>
HGEMM_UNIT void pack_scattered(Format& format, const PackSource& s, int64_t rows, float* words, int64_t ld)
{
    constexpr int64_t step = lanes * Format::per_word;
    uint16_t copies[lanes * step];
    for (int64_t k = 0; k < s.depth; k += step) {
        const int64_t depth = s.depth - k < step ? s.depth - k : step;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < depth; ++i)
                copies[r * step + i] = s.elements[r * s.row_stride + (k + i) * s.k_stride];
        pack_square<Format, false>(format, copies, step, rows, depth, words + k / Format::per_word * ld,
                                   ld);
    }
}

// Rows that are neighbours in memory: a line has the elements of one K.
template <class Format>
HGEMM_UNIT void pack_across(Format& format, const PackSource& s, const Panels& panels, float* words)
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
}

template <class Format>
HGEMM_UNIT int pack(const PackSource& source, const Panels& panels, float* words)
{
    Format format(panels.missing);
    if (source.row_stride == 1 && source.k_stride != 1) {
        pack_across(format, source, panels, words);
        return format.lowest();
    }
    for (int64_t row = 0; row < source.rows; row += panels.rows, words += panels.words)
        for (int64_t r = 0; r < panels.ld; r += lanes) {
            const int64_t all = source.rows - row < panels.rows ? source.rows - row : panels.rows;
            const int64_t rows = all - r < 0 ? 0 : all - r < lanes ? all - r : lanes;
            PackSource part = source;
            part.elements += (rows > 0 ? row + r : 0) * source.row_stride;
            if (source.k_stride == 1)
                pack_along_k(format, part, rows, words + r, panels.ld);
            else
                pack_scattered(format, part, rows, words + r, panels.ld);
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

// Tiles of 1, 2, ... rows.
template <class Multiply, int... more>
constexpr auto list_tiles(std::integer_sequence<int, more...>)
{
    return std::array<PackedKernels::Tile, sizeof...(more)>{tile<Multiply, more + 1>...};
}
template <class Multiply>
constexpr auto tiles_of = list_tiles<Multiply>(std::make_integer_sequence<int, tile_rows>());

// What a unit has whose words are fp32.
constexpr PackedKernels widened_kernels(const char* name, bool (*runs_here)(), bool leads)
{
    return {.name = name,
            .runs_here = runs_here,
            .leads = leads,
            .per_word = 1,
            .tile_rows = tile_rows,
            .tile_columns = tile_vectors * lanes,
            .row_ld = row_ld,
            .pack_f16 = pack<Widened<Half>>,
            .pack_bf16 = pack<Widened<Bfloat16>>,
            .tiles = tiles_of<MultiplyAdd>.data(),
            .exact_tiles = tiles_of<MultiplyAdd>.data(),
            .least_exponents = 0};
}
