#include "src/base/convert.hpp"

#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// One copy of a loop for each width of vector register. The loader chooses among them before a thread
// sanitizer has started, which would instrument that choice: hence none with a sanitizer.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define HGEMM_CLONES [[gnu::target_clones("avx2", "default")]]
#else
#define HGEMM_CLONES
#endif

namespace hg {
namespace {

HGEMM_CLONES void widen_half_by_integers(const uint16_t* source, int64_t count, float* values)
{
    for (int64_t i = 0; i < count; ++i)
        values[i] = half_to_float(source[i]);
}

HGEMM_CLONES void widen_bfloat16(const uint16_t* source, int64_t count, float* values)
{
    for (int64_t i = 0; i < count; ++i)
        values[i] = bfloat16_to_float(source[i]);
}

HGEMM_CLONES void narrow_half_by_integers(const float* values, int64_t count, uint16_t* target)
{
    for (int64_t i = 0; i < count; ++i)
        target[i] = float_to_half(values[i]);
}

HGEMM_CLONES void narrow_bfloat16(const float* values, int64_t count, uint16_t* target)
{
    for (int64_t i = 0; i < count; ++i)
        target[i] = float_to_bfloat16(values[i]);
}

#if defined(__x86_64__)
constexpr int64_t eight = 8;

// Converts as many elements as fill vectors; returns how many.
[[gnu::target("avx,f16c")]] int64_t widen_half_by_f16c(const uint16_t* source, int64_t count, float* values)
{
    int64_t i = 0;
    for (; i + eight <= count; i += eight)
        _mm256_storeu_ps(values + i,
                         _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i))));
    return i;
}

[[gnu::target("avx,f16c")]] int64_t narrow_half_by_f16c(const float* values, int64_t count,
                                                        uint16_t* target)
{
    int64_t i = 0;
    for (; i + eight <= count; i += eight)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#endif

void widen_half(const uint16_t* source, int64_t count, float* values)
{
    int64_t done = 0;
#if defined(__x86_64__)
    if (count >= eight && cpu_has_avx2_fma_f16c())
        done = widen_half_by_f16c(source, count, values);
#endif
    if (done < count)
        widen_half_by_integers(source + done, count - done, values + done);
}

void narrow_half(const float* values, int64_t count, uint16_t* target)
{
    int64_t done = 0;
#if defined(__x86_64__)
    if (count >= eight && cpu_has_avx2_fma_f16c())
        done = narrow_half_by_f16c(values, count, target);
#endif
    if (done < count)
        narrow_half_by_integers(values + done, count - done, target + done);
}

// Elements with a stride are gathered before, or scattered after, the loops above.
constexpr int64_t chunk = 256;

void widen_strided(Type type, const uint16_t* source, int64_t stride, int64_t count, float* values)
{
    uint16_t gathered[chunk];
    for (int64_t done = 0; done < count; done += chunk) {
        const int64_t length = count - done < chunk ? count - done : chunk;
        for (int64_t i = 0; i < length; ++i)
            gathered[i] = source[(done + i) * stride];
        if (type == Type::F16)
            widen_half(gathered, length, values + done);
        else
            widen_bfloat16(gathered, length, values + done);
    }
}

void narrow_strided(Type type, const float* values, int64_t count, uint16_t* target, int64_t stride)
{
    uint16_t narrow[chunk];
    for (int64_t done = 0; done < count; done += chunk) {
        const int64_t length = count - done < chunk ? count - done : chunk;
        if (type == Type::F16)
            narrow_half(values + done, length, narrow);
        else
            narrow_bfloat16(values + done, length, narrow);
        for (int64_t i = 0; i < length; ++i)
            target[(done + i) * stride] = narrow[i];
    }
}

}  // namespace

void to_float(Type type, const void* source, int64_t offset, int64_t stride, int64_t count, float* values)
{
    if (type == Type::F32) {
        const float* first = static_cast<const float*>(source) + offset;
        for (int64_t i = 0; i < count; ++i)
            values[i] = first[i * stride];
        return;
    }
    const uint16_t* first = static_cast<const uint16_t*>(source) + offset;
    if (stride != 1)
        widen_strided(type, first, stride, count, values);
    else if (type == Type::F16)
        widen_half(first, count, values);
    else
        widen_bfloat16(first, count, values);
}

void from_float(Type type, const float* values, int64_t count, void* target, int64_t offset, int64_t stride)
{
    if (type == Type::F32) {
        float* const first = static_cast<float*>(target) + offset;
        for (int64_t i = 0; i < count; ++i)
            first[i * stride] = values[i];
        return;
    }
    uint16_t* const first = static_cast<uint16_t*>(target) + offset;
    if (stride != 1)
        narrow_strided(type, values, count, first, stride);
    else if (type == Type::F16)
        narrow_half(values, count, first);
    else
        narrow_bfloat16(values, count, first);
}

}  // namespace hg
