// The loops of host_packed for AVX512_BF16, whose instruction adds two products to a sum.
#include "arch/host/packed/kernels.hpp"
#include "arch/host/rows/kernels.hpp"
#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#include <bit>

#define HGEMM_UNIT [[gnu::target("avx512bf16,avx512f,avx512bw,avx512vl,avx2,fma,f16c")]]
#include "arch/host/units/avx512.inl"

namespace hg {
namespace {

#include "arch/host/packed/loops.inl"

// Words with two K. Looks for numbers that the instruction would take for zero.
struct Pairs {
    static constexpr int per_word = 2;

    HGEMM_UNIT explicit Pairs(uint16_t missing)
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
        return look(_mm512_rol_epi32(two, 16));
    }

    HGEMM_UNIT Vector across(const uint16_t* elements, int64_t k_stride, int64_t in_word, int64_t rows)
    {
        const __m256i first = part(elements, rows);
        const __m256i second =
            in_word == 2 ? part(elements + k_stride, rows) : _mm512_castsi512_si256(missing_);
        return look(_mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu16_epi32(first), 16),
                                    _mm512_cvtepu16_epi32(second)));
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

    const __m512i missing_;
    __m512i least_, most_;
};

// Adds the product of the upper halves, rounds, adds that of the lower halves, and rounds.
struct Dot {
    HGEMM_UNIT static Vector apply(Vector a, Vector b, Vector sum)
    {
        return _mm512_dpbf16_ps(sum, (__m512bh)(_mm512_castps_si512(a)),
                                (__m512bh)(_mm512_castps_si512(b)));
    }
};

HGEMM_UNIT inline float one_dot(float sum, uint32_t a, uint32_t b)
{
    const auto words = [](uint32_t word) { return std::bit_cast<float>(word); };
    return _mm512_cvtss_f32(Dot::apply(broadcast(words(a)), broadcast(words(b)), broadcast(sum)));
}

// Does the instruction round each of its two sums, that of the upper halves first? Intel's manual says so,
// AMD's does not; processors that keep more bits, or round products, would give other results than the
// other tiles.
bool dot_adds_in_order()
{
    static const bool found = [] {
        constexpr uint32_t one = 0x3f80, tiny = 0x3300, half = 0x3380,
                           large = 0x5f80;  // 1, 2^-25, 2^-24, 2^64
        return cpu_has_avx512_bf16() && one_dot(-1.0f, one << 16 | tiny, one << 16 | one) == 0x1p-25f &&
               one_dot(-1.0f, tiny << 16 | one, one << 16 | one) == 0.0f &&
               one_dot(1.0f, half << 16 | half, one << 16 | one) == 1.0f &&
               one_dot(-0x1p127f, large << 16, large << 16) == 0x1p127f;
    }();
    return found;
}

// The same without taking subnormal numbers for zero.
struct TwoMultiplyAdds {
    HGEMM_UNIT static Vector upper(Vector words)
    {
        return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), _mm512_set1_epi32(-65536)));
    }
    HGEMM_UNIT static Vector lower(Vector words)
    {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16));
    }
    HGEMM_UNIT static Vector apply(Vector a, Vector b, Vector sum)
    {
        return multiply_add(lower(b), lower(a), multiply_add(upper(b), upper(a), sum));
    }
};

}  // namespace

extern const PackedKernels packed_avx512_bf16;
const PackedKernels packed_avx512_bf16 = {.name = "avx512_bf16",
                                          .runs_here = dot_adds_in_order,
                                          .leads = true,
                                          .per_word = Pairs::per_word,
                                          .tile_rows = tile_rows,
                                          .tile_columns = tile_vectors * lanes,
                                          .row_ld = row_ld,
                                          .pack_f16 = nullptr,
                                          .pack_bf16 = pack<Pairs>,
                                          .tiles = tiles_of<Dot>.data(),
                                          .exact_tiles = tiles_of<TwoMultiplyAdds>.data(),
                                          .least_exponents = 142};

}  // namespace hg
#endif
