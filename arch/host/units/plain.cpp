// The loops of the host's own kernels in plain C++, for machines without one of the other vector units.
#include "arch/host/packed/kernels.hpp"
#include "arch/host/rows/kernels.hpp"
#include "src/base/convert.hpp"

namespace hg {
namespace {

#define HGEMM_UNIT

constexpr int lanes = 8;
constexpr int columns_with_1 = 2, columns_with_2 = 2, columns_with_4 = 1;
constexpr int lines_with_1 = 4, lines_with_2 = 2, lines_with_4 = 1;
constexpr int tile_rows = 4, tile_vectors = 1;

struct Vector {
    float values[lanes];
};

template <class Function>
inline Vector each(Function function)
{
    Vector v;
    for (int i = 0; i < lanes; ++i)
        v.values[i] = function(i);
    return v;
}

inline Vector broadcast(float x)
{
    return each([=](int) { return x; });
}
inline Vector zero() { return broadcast(0.0f); }
inline Vector load(const float* values)
{
    return each([=](int i) { return values[i]; });
}
inline void store(float* values, const Vector& v)
{
    for (int i = 0; i < lanes; ++i)
        values[i] = v.values[i];
}
inline Vector multiply_add(const Vector& a, const Vector& b, const Vector& c)
{
    return each([&](int i) { return a.values[i] * b.values[i] + c.values[i]; });
}
inline Vector add(const Vector& a, const Vector& b)
{
    return each([&](int i) { return a.values[i] + b.values[i]; });
}

inline void transpose(Vector (&v)[lanes])
{
    for (int i = 0; i < lanes; ++i)
        for (int j = 0; j < i; ++j)
            std::swap(v[i].values[j], v[j].values[i]);
}

inline float total(const Vector& v)
{
    float sum = 0.0f;
    for (const float value : v.values)
        sum += value;
    return sum;
}

struct Half {
    static Vector load(const uint16_t* elements)
    {
        return each([=](int i) { return half_to_float(elements[i]); });
    }
    static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return each([=](int i) { return i < count ? half_to_float(elements[i]) : 0.0f; });
    }
};

struct Bfloat16 {
    static Vector load(const uint16_t* elements)
    {
        return each([=](int i) { return bfloat16_to_float(elements[i]); });
    }
    static Vector load_part(const uint16_t* elements, int64_t count)
    {
        return each([=](int i) { return i < count ? bfloat16_to_float(elements[i]) : 0.0f; });
    }
};

#include "arch/host/packed/loops.inl"
#include "arch/host/rows/loops.inl"

}  // namespace

extern const RowsKernels rows_plain;
const RowsKernels rows_plain = {"plain",           [] { return true; }, along_k<Half>,
                                along_k<Bfloat16>, along_columns<Half>, along_columns<Bfloat16>};

extern const PackedKernels packed_plain;
const PackedKernels packed_plain = widened_kernels(
    "plain", [] { return true; }, false);

}  // namespace hg
