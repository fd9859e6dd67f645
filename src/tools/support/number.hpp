// The three number formats in float64, written independently of the library: decoding is exact, rounding
// is to nearest even, once. Also the counter-based random numbers that all test data comes from.
#pragma once

#include "hgemm.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace hg::test {

struct Format {
    int digits;        // of the significand, with the hidden one
    int min_exponent;  // of the smallest normal number
    int max_exponent;
    double unit() const;      // relative error of one rounding: 2^-digits
    double smallest() const;  // subnormal; half of it is the absolute error of one rounding
    double largest() const;   // finite
};

const Format& format_of(hgemm_type_t type);
inline size_t bytes_of(hgemm_type_t type) { return type == HGEMM_F32 ? 4 : 2; }
const char* name_of(hgemm_type_t type);

double decode(hgemm_type_t type, uint32_t bits);
uint32_t encode(hgemm_type_t type, double value);     // rounds
double round_to(hgemm_type_t type, double value);     // decode(encode(value))
double truncate_to(hgemm_type_t type, double value);  // towards zero: what a defective kernel may do
uint32_t sentinel(hgemm_type_t type);                 // a NaN that no computation returns

double load(hgemm_type_t type, const void* element);
void store(hgemm_type_t type, void* element, double value);

// Random numbers as a function of a seed and an index: any element can be drawn alone, in any order.
inline uint64_t hash(uint64_t seed, uint64_t index)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + index + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
double uniform(uint64_t seed, uint64_t index);  // [0, 1)
double normal(uint64_t seed, uint64_t index);

class Random {
public:
    explicit Random(uint64_t seed) : seed_(seed) {}
    uint64_t bits() { return hash(seed_, index_++); }
    int64_t below(int64_t limit) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(limit)); }
    bool one_in(int64_t n) { return below(n) == 0; }
    template <typename List>
    auto pick(const List& list)
    {
        return list[static_cast<size_t>(below(static_cast<int64_t>(std::size(list))))];
    }

private:
    uint64_t seed_, index_ = 0;
};

}  // namespace hg::test
