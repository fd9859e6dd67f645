// The product in float64 and, element by element, how far from it a correct fp32 accumulation can be.
#pragma once

#include "hgemm.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace hg::test {

struct Dense {
    Dense() = default;
    Dense(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {}
    double& operator()(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
    double operator()(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }

    int64_t rows = 0, columns = 0;
    std::vector<double> values;
};

// How sums over k are formed.
struct Arithmetic {
    int k_step = 0;    // products that a tensor core adds to the accumulator in one step; 0: a CPU
    int fraction = 0;  // bits behind the leading one of the largest term that it keeps

    static Arithmetic of_device(int cc) { return cc >= 90 ? Arithmetic{16, 25} : Arithmetic{8, 24}; }
    static Arithmetic of_cpu() { return {}; }
};

struct Product {
    Dense sum, error;
};

// a * b and a bound of the error of each element.
//
// A tensor core aligns the k_step products and the accumulator to the largest of these terms, cuts them
// to `fraction` bits, adds exactly and cuts the sum to fp32. So a step is off by at most
//     (k_step + 1) * max(|accumulator|, |product|) * 2^-fraction + 2^-23 * |accumulator|.
// The accumulator holds a sum over consecutive k, so it is at most the range of the prefix sums, wherever
// k was cut into slices; adding the slices costs no more than one fp32 rounding for each step.
// On a CPU the order is unknown: k roundings of at most the sum of all magnitudes.
Product multiply(const Dense& a, const Dense& b, const Arithmetic& arithmetic);

// Is an element of D the result of its own row and column? The others are not written, or copies.
constexpr bool is_computed(hgemm_uplo_t uplo, int64_t i, int64_t j)
{
    return uplo == HGEMM_UPLO_NONE || (uplo == HGEMM_LOWER ? j <= i : i <= j);
}

// GELU and SiLU of minus infinity are 0, their limit.
double activate(hgemm_activation_t activation, double value);
// Error of the activated value from that of the value: relu has none of its own, the others are fp32
// functions, good to a few units in the last place of their argument and, where they come close to 0, of
// the exponent of e^-y, which grows as the square of the value.
double activated_error(hgemm_activation_t activation, double value, double error);

// A value, and how far from it a computed one may be.
struct Estimate {
    double value, error;
};

// Where the gate of element j of a line of D is in the line of the product; what it gates is `block`
// further.
constexpr int64_t place_of_gate(int64_t block, int64_t j) { return j + j / block * block; }

// activation(gate) * (up + offset) with their limit, from two elements of the product.
//
// What lies within x - e ... x + e lies within the clamped ends of that afterwards. SiLU of slope s is that
// of slope 1, of s * x and divided by s. The sum with the offset and the product are rounded to fp32, if
// they are not exact; their factors differ by their errors, and the product by each of these times the
// other factor.
Estimate gated(const hgemm_gate_t& gate, hgemm_activation_t activation, Estimate at_gate, Estimate other);

// Is `result` a possible rounding to `type` of a number within `error` of `value`? NaN is matched by NaN
// and infinity by infinity.
bool matches(hgemm_type_t type, double result, double value, double error);

// |result - value| relative to what is allowed.
double error_ratio(hgemm_type_t type, double result, double value, double error);

// Calls work(begin, end) for parts of 0 ... count - 1, on all cores if the whole is worth it.
void parallel(int64_t count, int64_t cost_of_one, const std::function<void(int64_t, int64_t)>& work);

}  // namespace hg::test
