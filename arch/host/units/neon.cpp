// The loops of the host's own kernels for NEON of 64-bit ARM.
#include "arch/host/packed/kernels.hpp"
#include "arch/host/rows/kernels.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace hg {
namespace {

#define HGEMM_UNIT

using Vector = float32x4_t;
constexpr int lanes = 4;
constexpr int columns_with_1 = 8, columns_with_2 = 8, columns_with_4 = 4;
constexpr int lines_with_1 = 8, lines_with_2 = 8, lines_with_4 = 4;
constexpr int tile_rows = 8, tile_vectors = 3;

inline Vector zero() { return vdupq_n_f32(0.0f); }
inline Vector broadcast(float x) { return vdupq_n_f32(x); }
inline Vector load(const float* values) { return vld1q_f32(values); }
inline void store(float* values, Vector v) { vst1q_f32(values, v); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
inline Vector add(Vector a, Vector b) { return vaddq_f32(a, b); }

inline void transpose(Vector (&v)[lanes])
{
    const float32x4x2_t low = vtrnq_f32(v[0], v[1]), high = vtrnq_f32(v[2], v[3]);
    for (int i = 0; i < 2; ++i) {
        v[i] = vcombine_f32(vget_low_f32(low.val[i]), vget_low_f32(high.val[i]));
        v[i + 2] = vcombine_f32(vget_high_f32(low.val[i]), vget_high_f32(high.val[i]));
    }
}

inline float total(Vector v) { return vaddvq_f32(v); }

struct Half {
    static Vector widen(uint16x4_t elements) { return vcvt_f32_f16(vreinterpret_f16_u16(elements)); }
    static Vector load(const uint16_t* elements) { return widen(vld1_u16(elements)); }
    static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return widen(vcreate_u16(pack_four(elements, count)));
    }
};

struct Bfloat16 {
    static Vector widen(uint16x4_t elements) { return vreinterpretq_f32_u32(vshll_n_u16(elements, 16)); }
    static Vector load(const uint16_t* elements) { return widen(vld1_u16(elements)); }
    static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return widen(vcreate_u16(pack_four(elements, count)));
    }
};

#include "arch/host/packed/loops.inl"
#include "arch/host/rows/loops.inl"

}  // namespace

extern const RowsKernels rows_neon;
const RowsKernels rows_neon = {"neon",
                               [] { return true; },
                               along_k<Half>,
                               along_k<Bfloat16>,
                               along_columns<Half>,
                               along_columns<Bfloat16>};

extern const PackedKernels packed_neon;
const PackedKernels packed_neon = widened_kernels(
    "neon", [] { return true; }, false);

}  // namespace hg
#endif
