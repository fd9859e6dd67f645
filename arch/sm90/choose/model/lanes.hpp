// Eight floats that are computed with at a time, and what formulas need that are written once for them and
// for double. Their powers and logarithms are good to about four digits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// One copy of a function for each width of vector register, as in src/base/convert.cpp; what it calls must
// be inline.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define HGEMM_CLONES [[gnu::target_clones("avx2", "default")]]
#else
#define HGEMM_CLONES
#endif
#define HGEMM_INLINE [[gnu::always_inline]] inline

// No such number is passed to a function that is not inline.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace hg::sm90 {

class Lanes {
public:
    static constexpr int count = 8;
    using Vector [[gnu::vector_size(32)]] = float;
    using Integers [[gnu::vector_size(32)]] = int32_t;
    using Bits [[gnu::vector_size(32)]] = uint32_t;  // wraps around in lanes whose numbers mean nothing

    Lanes() = default;
    // The same number in all lanes.
    HGEMM_INLINE Lanes(double x) : v(Vector{} + static_cast<float>(x)) {}
    HGEMM_INLINE Lanes(const Vector& vector) : v(vector) {}
    // Floats of any alignment.
    HGEMM_INLINE static Lanes load(const float* numbers)
    {
        Lanes lanes;
        std::memcpy(&lanes.v, numbers, sizeof lanes.v);
        return lanes;
    }
    HGEMM_INLINE void store(float* numbers) const { std::memcpy(numbers, &v, sizeof v); }

    // Of those that are numbers.
    HGEMM_INLINE float least() const
    {
        float least = std::numeric_limits<float>::infinity();
        for (int lane = 0; lane < count; ++lane)
            least = v[lane] < least ? v[lane] : least;
        return least;
    }
    HGEMM_INLINE float total() const
    {
        return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    }

    HGEMM_INLINE friend Lanes operator+(const Lanes& x, const Lanes& y) { return x.v + y.v; }
    HGEMM_INLINE friend Lanes operator-(const Lanes& x, const Lanes& y) { return x.v - y.v; }
    HGEMM_INLINE friend Lanes operator*(const Lanes& x, const Lanes& y) { return x.v * y.v; }
    HGEMM_INLINE friend Lanes operator/(const Lanes& x, const Lanes& y) { return x.v / y.v; }
    HGEMM_INLINE friend Lanes operator/(const Lanes& x, double y) { return x * (1.0 / y); }

    Vector v;
};

// A truth value in each lane.
struct Mask {
    Lanes::Integers v;
};
HGEMM_INLINE Mask operator<(const Lanes& x, const Lanes& y) { return {x.v < y.v}; }
HGEMM_INLINE Mask operator<=(const Lanes& x, const Lanes& y) { return {x.v <= y.v}; }
HGEMM_INLINE Mask operator&(const Mask& x, const Mask& y) { return {x.v & y.v}; }
HGEMM_INLINE bool any(const Mask& mask)
{
    using Words [[gnu::vector_size(32)]] = int64_t;
    const auto words = (Words)mask.v;
    return (words[0] | words[1] | words[2] | words[3]) != 0;
}
HGEMM_INLINE Lanes select(const Mask& condition, const Lanes& x, const Lanes& y)
{
    return condition.v ? x.v : y.v;
}
HGEMM_INLINE Lanes lesser(const Lanes& x, const Lanes& y) { return x.v < y.v ? x.v : y.v; }
HGEMM_INLINE Lanes greater(const Lanes& x, const Lanes& y) { return x.v > y.v ? x.v : y.v; }
// Of numbers from 0 to 2^31.
HGEMM_INLINE Lanes floor_of(const Lanes& x)
{
    return __builtin_convertvector(__builtin_convertvector(x.v, Lanes::Integers), Lanes::Vector);
}
HGEMM_INLINE Lanes ceil_of(const Lanes& x)
{
    const Lanes below = floor_of(x);
    return below.v < x.v ? below.v + 1.0f : below.v;
}

// Within 5e-6, of positive numbers; of 0 it is about -127. Polynomials through Chebyshev points.
HGEMM_INLINE Lanes log2_of(const Lanes& x)
{
    constexpr uint32_t root_half = 0x3f3504f3;  // the bits of the square root of 1/2
    const auto bits = (Lanes::Bits)x.v - root_half;
    const Lanes exponent(__builtin_convertvector((Lanes::Integers)bits >> 23, Lanes::Vector));
    const Lanes m((Lanes::Vector)((bits & 0x7fffff) + root_half));  // from there to its double
    const Lanes y = m - 1.0, s = y * y;
    return exponent + y * (1.442700440013496 - 0.7211957523938721 * y +
                           s * (0.47992557347074644 - 0.3669257709573897 * y +
                                s * (0.316898187156837 - 0.20228926373030143 * y)));
}
// Within a share of 4e-6.
HGEMM_INLINE Lanes exp2_of(const Lanes& x)
{
    const Lanes y = lesser(greater(x, -126.0), 126.0) + 126.5, whole = floor_of(y), r = y - whole - 0.5;
    const Lanes s = r * r;
    const Lanes e = 1.0 + 0.693121045203427 * r +
                    s * (0.24022349038020335 + 0.055921975842256264 * r + 0.009666368515387469 * s);
    const auto exponent = (Lanes::Bits) __builtin_convertvector(whole.v, Lanes::Integers) - 126;
    return Lanes((Lanes::Vector)((Lanes::Bits)e.v + (exponent << 23)));
}
HGEMM_INLINE Lanes power(const Lanes& x, double exponent) { return exp2_of(log2_of(x) * exponent); }
HGEMM_INLINE Lanes log_of(const Lanes& x) { return log2_of(x) * 0.69314718055994531; }

HGEMM_INLINE Lanes exp_of(const Lanes& x) { return exp2_of(x * 1.4426950408889634); }
// Of positive numbers.
HGEMM_INLINE Lanes root_of(const Lanes& x) { return exp2_of(log2_of(x) * 0.5); }

HGEMM_INLINE double root_of(double x) { return std::sqrt(x); }
HGEMM_INLINE double select(bool condition, double x, double y) { return condition ? x : y; }
HGEMM_INLINE double lesser(double x, double y) { return std::min(x, y); }
HGEMM_INLINE double greater(double x, double y) { return std::max(x, y); }
// Of numbers from 0 to 2^63. std::floor() and std::ceil() are calls on x86-64.
HGEMM_INLINE double floor_of(double x) { return static_cast<double>(static_cast<int64_t>(x)); }
HGEMM_INLINE double ceil_of(double x)
{
    const double below = floor_of(x);
    return below < x ? below + 1.0 : below;
}

}  // namespace hg::sm90
