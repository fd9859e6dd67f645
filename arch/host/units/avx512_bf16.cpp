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
#include "arch/host/units/pairs.inl"

using Pairs = PairsOf<true>;

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
                                          .row_step = 1,
                                          .row_ld = row_ld,
                                          .has_squares = false,
                                          .work = work,
                                          .pack_f16 = nullptr,
                                          .pack_bf16 = pack<Pairs>,
                                          .multiply = multiply_panels<Dot>,
                                          .multiply_exactly = multiply_panels<TwoMultiplyAdds>,
                                          .multiply_lines = nullptr,
                                          .multiply_lines_exactly = nullptr,
                                          .least_exponents = least_exponents};

}  // namespace hg
#endif
