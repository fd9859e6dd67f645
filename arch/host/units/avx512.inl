// AVX-512 as a vector unit, for files that define HGEMM_UNIT: its attribute names F, BW and VL at least.
#if !defined(__clang__)
// GCC's header has intrinsics begin with a register of any content.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

namespace hg {
namespace {

using Vector = __m512;
constexpr int lanes = 16;
constexpr int columns_with_1 = 8, columns_with_2 = 8, columns_with_4 = 4;
constexpr int lines_with_1 = 8, lines_with_2 = 8, lines_with_4 = 4;
constexpr int tile_rows = 14, tile_vectors = 2;

HGEMM_UNIT inline Vector zero() { return _mm512_setzero_ps(); }
HGEMM_UNIT inline Vector broadcast(float x) { return _mm512_set1_ps(x); }
HGEMM_UNIT inline Vector load(const float* values) { return _mm512_loadu_ps(values); }
HGEMM_UNIT inline void store(float* values, Vector v) { _mm512_storeu_ps(values, v); }
HGEMM_UNIT inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
HGEMM_UNIT inline Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
HGEMM_UNIT inline float total(Vector v) { return _mm512_reduce_add_ps(v); }

// Of a matrix of 4 x 4 such squares.
HGEMM_UNIT inline void transpose_fours(Vector& a, Vector& b, Vector& c, Vector& d)
{
    const __m512d low = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)),
                  high = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    const __m512d low2 = _mm512_castps_pd(_mm512_unpacklo_ps(c, d)),
                  high2 = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    a = _mm512_castpd_ps(_mm512_unpacklo_pd(low, low2));
    b = _mm512_castpd_ps(_mm512_unpackhi_pd(low, low2));
    c = _mm512_castpd_ps(_mm512_unpacklo_pd(high, high2));
    d = _mm512_castpd_ps(_mm512_unpackhi_pd(high, high2));
}

HGEMM_UNIT inline void transpose(Vector (&v)[lanes])
{
    for (int i = 0; i < lanes; i += 4)
        transpose_fours(v[i], v[i + 1], v[i + 2], v[i + 3]);
    for (int i = 0; i < 4; ++i) {
        const Vector low = _mm512_shuffle_f32x4(v[i], v[i + 4], 0x44),
                     high = _mm512_shuffle_f32x4(v[i], v[i + 4], 0xee);
        const Vector low2 = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0x44);
        const Vector high2 = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0xee);
        v[i] = _mm512_shuffle_f32x4(low, low2, 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(low, low2, 0xdd);
        v[i + 8] = _mm512_shuffle_f32x4(high, high2, 0x88);
        v[i + 12] = _mm512_shuffle_f32x4(high, high2, 0xdd);
    }
}

HGEMM_UNIT inline __m256i load_sixteen(const uint16_t* elements)
{
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(elements));
}

HGEMM_UNIT inline __m256i load_up_to_sixteen(const uint16_t* elements, int64_t count)
{
    return _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << count) - 1), elements);
}

struct Half {
    HGEMM_UNIT static Vector widen(__m256i elements) { return _mm512_cvtph_ps(elements); }
    HGEMM_UNIT static Vector load(const uint16_t* elements) { return widen(load_sixteen(elements)); }
    HGEMM_UNIT static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return widen(load_up_to_sixteen(elements, count));
    }
};

struct Bfloat16 {
    HGEMM_UNIT static Vector widen(__m256i elements)
    {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(elements), 16));
    }
    HGEMM_UNIT static Vector load(const uint16_t* elements) { return widen(load_sixteen(elements)); }
    HGEMM_UNIT static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return widen(load_up_to_sixteen(elements, count));
    }
};

}  // namespace
}  // namespace hg
