// Words with two bf16 of neighbouring K, for files that have included avx512.inl.

// The first K is in the upper half, or, in memory's order, in the lower one. Looks for numbers that
// instructions would take for zero.
template <bool first_is_upper>
struct PairsOf {
    static constexpr int per_word = 2;

    HGEMM_UNIT explicit PairsOf(uint16_t missing)
        : missing_(_mm512_set1_epi16(static_cast<int16_t>(missing))), least_(_mm512_set1_epi16(-1)),
          most_(_mm512_setzero_si512())
    {
    }

    HGEMM_UNIT Vector along_k(const uint16_t* elements, int64_t count)
    {
        const __m512i two =
            count == 2 * lanes
                ? _mm512_loadu_si512(elements)
                : _mm512_mask_loadu_epi16(missing_, static_cast<__mmask32>((1ull << count) - 1), elements);
        return look(first_is_upper ? _mm512_rol_epi32(two, 16) : two);
    }

    HGEMM_UNIT Vector across(const uint16_t* elements, int64_t k_stride, int64_t in_word, int64_t rows)
    {
        const __m256i first = part(elements, rows);
        const __m256i second =
            in_word == 2 ? part(elements + k_stride, rows) : _mm512_castsi512_si256(missing_);
        const __m256i &upper = first_is_upper ? first : second, &lower = first_is_upper ? second : first;
        return look(_mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16),
                                    _mm512_cvtepu16_epi32(lower)));
    }

    HGEMM_UNIT int lowest() const
    {
        alignas(64) uint16_t least[2 * lanes], most[2 * lanes];
        _mm512_store_si512(least, least_);
        _mm512_store_si512(most, most_);
        int low = 0xffff, high = 0;
        for (int i = 0; i < 2 * lanes; ++i) {
            low = least[i] < low ? least[i] : low;
            high = most[i] > high ? most[i] : high;
        }
        constexpr int infinite = 0x7f80;
        return high >= infinite ? 0 : (low + 1) >> 7;
    }

private:
    HGEMM_UNIT static __m256i part(const uint16_t* elements, int64_t rows)
    {
        return rows == lanes ? load_sixteen(elements) : load_up_to_sixteen(elements, rows);
    }

    // Of the magnitudes less one, so that zeros are the largest.
    HGEMM_UNIT Vector look(__m512i two)
    {
        const __m512i magnitude = _mm512_and_si512(two, _mm512_set1_epi16(0x7fff));
        least_ = _mm512_min_epu16(least_, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
        most_ = _mm512_max_epu16(most_, magnitude);
        return _mm512_castsi512_ps(two);
    }

    __m512i missing_, least_, most_;
};

HGEMM_UNIT inline Vector upper(Vector words)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), _mm512_set1_epi32(-65536)));
}

HGEMM_UNIT inline Vector lower(Vector words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16));
}

// PackedKernels::least_exponents of instructions that take subnormal numbers for zero: all sums of products
// are multiples of 2^(a - 134) * 2^(b - 134), which is normal from a + b = 142 on.
constexpr int least_exponents = 142;
