// The loops of the host's own kernels for AVX2, FMA and F16C.
#include "arch/host/packed/kernels.hpp"
#include "arch/host/rows/kernels.hpp"
#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace hg {
namespace {

#define HGEMM_UNIT [[gnu::target("avx2,fma,f16c")]]

using Vector = __m256;
constexpr int lanes = 8;
constexpr int columns_with_1 = 4, columns_with_2 = 4, columns_with_4 = 2;
constexpr int lines_with_1 = 8, lines_with_2 = 4, lines_with_4 = 2;
constexpr int tile_rows = 6, tile_vectors = 2;

HGEMM_UNIT inline Vector zero() { return _mm256_setzero_ps(); }
HGEMM_UNIT inline Vector broadcast(float x) { return _mm256_set1_ps(x); }
HGEMM_UNIT inline Vector load(const float* values) { return _mm256_loadu_ps(values); }
HGEMM_UNIT inline void store(float* values, Vector v) { _mm256_storeu_ps(values, v); }
HGEMM_UNIT inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }

HGEMM_UNIT inline Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }

HGEMM_UNIT inline void transpose_fours(Vector& a, Vector& b, Vector& c, Vector& d)
{
    const __m256d low = _mm256_castps_pd(_mm256_unpacklo_ps(a, b)),
                  high = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    const __m256d low2 = _mm256_castps_pd(_mm256_unpacklo_ps(c, d)),
                  high2 = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    a = _mm256_castpd_ps(_mm256_unpacklo_pd(low, low2));
    b = _mm256_castpd_ps(_mm256_unpackhi_pd(low, low2));
    c = _mm256_castpd_ps(_mm256_unpacklo_pd(high, high2));
    d = _mm256_castpd_ps(_mm256_unpackhi_pd(high, high2));
}

HGEMM_UNIT inline void transpose(Vector (&v)[lanes])
{
    for (int i = 0; i < lanes; i += 4)
        transpose_fours(v[i], v[i + 1], v[i + 2], v[i + 3]);
    for (int i = 0; i < 4; ++i) {
        const Vector low = _mm256_permute2f128_ps(v[i], v[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
        v[i] = low;
    }
}

HGEMM_UNIT inline float total(Vector v)
{
    const __m128 fours = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 twos = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
    return _mm_cvtss_f32(_mm_add_ss(twos, _mm_movehdup_ps(twos)));
}

HGEMM_UNIT inline __m128i load_eight(const uint16_t* elements)
{
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(elements));
}

HGEMM_UNIT inline __m128i load_up_to_eight(const uint16_t* elements, int64_t count)
{
    const uint64_t low = pack_four(elements, count < 4 ? count : 4);
    const uint64_t high = pack_four(elements + 4, count - 4);
    return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

struct Half {
    HGEMM_UNIT static Vector widen(__m128i elements) { return _mm256_cvtph_ps(elements); }
    HGEMM_UNIT static Vector load(const uint16_t* elements) { return widen(load_eight(elements)); }
    HGEMM_UNIT static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return widen(load_up_to_eight(elements, count));
    }
};

struct Bfloat16 {
    HGEMM_UNIT static Vector widen(__m128i elements)
    {
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(elements), 16));
    }
    HGEMM_UNIT static Vector load(const uint16_t* elements) { return widen(load_eight(elements)); }
    HGEMM_UNIT static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return widen(load_up_to_eight(elements, count));
    }
};

#include "arch/host/packed/loops.inl"
#include "arch/host/rows/loops.inl"

}  // namespace

extern const RowsKernels rows_avx2;
const RowsKernels rows_avx2 = {"avx2",
                               cpu_has_avx2_fma_f16c,
                               along_k<Half>,
                               along_k<Bfloat16>,
                               along_columns<Half>,
                               along_columns<Bfloat16>};

extern const PackedKernels packed_avx2;
const PackedKernels packed_avx2 = widened_kernels("avx2", cpu_has_avx2_fma_f16c, false);

}  // namespace hg
#endif
