// The loops of RowsKernels in terms of one vector unit, included once by each file that defines it:
//   HGEMM_UNIT         attribute that lets a function use the unit
//   Vector, lanes      fp32 values of one register, and how many
//   zero(), broadcast(x), load(p), store(p, v), multiply_add(a, b, c) = a * b + c, total(v)
//   Half, Bfloat16     load(p): `lanes` elements, widened; load_part(p, n): the first n < lanes, then zeros
//   columns_with_<r>, lines_with_<r>
//                      how many columns of D, or K, one step takes with r = 1, 2 or 4 rows: what registers hold

// K-major: `columns` times `rows` dot products.
template <class Element, int columns, int rows>
HGEMM_UNIT void dot(const RowsTile& t, int64_t j, int i)
{
    const uint16_t* const many = t.many + j * t.stride;
    const float* const few = t.few + i * t.few_ld;
    const int64_t whole = t.depth / lanes * lanes;
    Vector sums[rows][columns], w[columns];
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
            sums[r][c] = zero();
    for (int64_t p = 0; p < whole; p += lanes) {
        for (int c = 0; c < columns; ++c)
            w[c] = Element::load(many + c * t.stride + p);
        for (int r = 0; r < rows; ++r) {
            const Vector x = load(few + r * t.few_ld + p);
            for (int c = 0; c < columns; ++c)
                sums[r][c] = multiply_add(w[c], x, sums[r][c]);
        }
    }
    if (whole < t.depth)
        for (int c = 0; c < columns; ++c) {
            const Vector last = Element::load_part(many + c * t.stride + whole, t.depth - whole);
            for (int r = 0; r < rows; ++r)
                sums[r][c] = multiply_add(last, load(few + r * t.few_ld + whole), sums[r][c]);
        }
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
            t.sums[(i + r) * t.sums_ld + j + c] += total(sums[r][c]);
}

template <class Element, int columns, int rows>
HGEMM_UNIT void dots(const RowsTile& t, int64_t j, int64_t end, int i)
{
    for (; j + columns <= end; j += columns)
        dot<Element, columns, rows>(t, j, i);
    for (; j < end; ++j)
        dot<Element, 1, rows>(t, j, i);
}

template <class Element>
HGEMM_UNIT void along_k(const RowsTile& t)
{
    // As many columns stay in a cache until all rows are multiplied by them.
    for (int64_t j = 0; j < t.columns; j += columns_with_1) {
        const int64_t end = j + columns_with_1 < t.columns ? j + columns_with_1 : t.columns;
        int i = 0;
        for (; i + 4 <= t.rows; i += 4)
            dots<Element, columns_with_4, 4>(t, j, end, i);
        for (; i + 2 <= t.rows; i += 2)
            dots<Element, columns_with_2, 2>(t, j, end, i);
        for (; i < t.rows; ++i)
            dots<Element, columns_with_1, 1>(t, j, end, i);
    }
}

// Contiguous along the columns of D: a line is that of one K. Adds lines p to p + lines - 1, each times one
// element of each of `rows` rows.
template <class Element, int lines, int rows>
HGEMM_UNIT void add_lines(const RowsTile& t, int64_t p, int i)
{
    const uint16_t* const many = t.many + p * t.stride;
    float* const sums = t.sums + i * t.sums_ld;
    Vector x[rows][lines], sum[rows];
    for (int r = 0; r < rows; ++r)
        for (int l = 0; l < lines; ++l)
            x[r][l] = broadcast(t.few[(i + r) * t.few_ld + p + l]);
    for (int64_t j = 0; j < t.columns; j += lanes) {
        const bool whole = j + lanes <= t.columns;
        for (int r = 0; r < rows; ++r)
            sum[r] = load(sums + r * t.sums_ld + j);
        for (int l = 0; l < lines; ++l) {
            const uint16_t* const line = many + l * t.stride + j;
            if (i == 0)
                __builtin_prefetch(line + lines_with_1 * t.stride);
            const Vector w = whole ? Element::load(line) : Element::load_part(line, t.columns - j);
            for (int r = 0; r < rows; ++r)
                sum[r] = multiply_add(w, x[r][l], sum[r]);
        }
        for (int r = 0; r < rows; ++r)
            store(sums + r * t.sums_ld + j, sum[r]);
    }
}

template <class Element, int lines, int rows>
HGEMM_UNIT void add(const RowsTile& t, int64_t p, int64_t end, int i)
{
    for (; p + lines <= end; p += lines)
        add_lines<Element, lines, rows>(t, p, i);
    for (; p < end; ++p)
        add_lines<Element, 1, rows>(t, p, i);
}

template <class Element>
HGEMM_UNIT void along_columns(const RowsTile& t)
{
    // As many lines stay in a cache until all rows are multiplied by them.
    for (int64_t p = 0; p < t.depth; p += lines_with_1) {
        const int64_t end = p + lines_with_1 < t.depth ? p + lines_with_1 : t.depth;
        int i = 0;
        for (; i + 4 <= t.rows; i += 4)
            add<Element, lines_with_4, 4>(t, p, end, i);
        for (; i + 2 <= t.rows; i += 2)
            add<Element, lines_with_2, 2>(t, p, end, i);
        for (; i < t.rows; ++i)
            add<Element, lines_with_1, 1>(t, p, end, i);
    }
}
