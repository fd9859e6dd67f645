// The loops of host_rows for AVX-512F.
#include "arch/host/cpu.hpp"
#include "arch/host/rows_kernels.hpp"

#if defined(__x86_64__)
#if !defined(__clang__)
// GCC's header has intrinsics begin with a register of any content.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

namespace hg {
namespace {

#define HGEMM_UNIT [[gnu::target("avx512f,avx2,fma,f16c")]]

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

struct Half {
    HGEMM_UNIT static Vector load(const uint16_t* elements)
    {
        return _mm512_cvtph_ps(load_sixteen(elements));
    }
};

struct Bfloat16 {
    HGEMM_UNIT static Vector load(const uint16_t* elements)
    {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_sixteen(elements)), 16));
    }
};

#include "arch/host/rows_loops.inl"

}  // namespace

extern const RowsKernels rows_avx512;
const RowsKernels rows_avx512 = {"avx512",          cpu_has_avx512f,     along_k<Half>,
                                 along_k<Bfloat16>, along_columns<Half>, along_columns<Bfloat16>};

}  // namespace hg
#endif
