// The loops of host_rows for AVX-512 with its extensions BW and VL.
#include "arch/host/rows/kernels.hpp"
#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#if !defined(__clang__)
// GCC's header has intrinsics begin with a register of any content.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

namespace hg {
namespace {

#define HGEMM_UNIT [[gnu::target("avx512f,avx512bw,avx512vl,avx2,fma,f16c")]]

using Vector = __m512;
constexpr int lanes = 16;
constexpr int columns_with_1 = 4, columns_with_2 = 4, columns_with_4 = 4;
constexpr int lines_with_1 = 8, lines_with_2 = 8, lines_with_4 = 4;

HGEMM_UNIT inline Vector zero() { return _mm512_setzero_ps(); }
HGEMM_UNIT inline Vector broadcast(float x) { return _mm512_set1_ps(x); }
HGEMM_UNIT inline Vector load(const float* values) { return _mm512_loadu_ps(values); }
HGEMM_UNIT inline void store(float* values, Vector v) { _mm512_storeu_ps(values, v); }
HGEMM_UNIT inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
HGEMM_UNIT inline float total(Vector v) { return _mm512_reduce_add_ps(v); }

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

#include "arch/host/rows/loops.inl"

}  // namespace

extern const RowsKernels rows_avx512;
const RowsKernels rows_avx512 = {"avx512",          cpu_has_avx512,      along_k<Half>,
                                 along_k<Bfloat16>, along_columns<Half>, along_columns<Bfloat16>};

}  // namespace hg
#endif
