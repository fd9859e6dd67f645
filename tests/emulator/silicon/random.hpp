// Seeded numbers, and operands with more than their share of special values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace emu::silicon {

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t bits();
    uint32_t below(uint32_t end) { return static_cast<uint32_t>((bits() >> 32) * end >> 32); }
    int between(int first, int last) { return first + static_cast<int>(below(last - first + 1)); }
    bool chance(int percent) { return below(100) < static_cast<uint32_t>(percent); }
    template <class T>
    T pick(std::initializer_list<T> list)
    {
        return list.begin()[below(static_cast<uint32_t>(list.size()))];
    }
    template <class T>
    const T& pick(const std::vector<T>& list)
    {
        return list[below(static_cast<uint32_t>(list.size()))];
    }

private:
    uint64_t state_;
};

// What an operand is, by a letter:
//   u i l   integer of 16, 32, 64 bits        U I L  the same, but neither 0 nor -1
//   H B F D f16, bf16, f32, f64               P Q    pairs of f16 and of bf16
//   n       a shift count or position         k      0 ... 31
//   o       -9 ... 9                          p      a predicate, as 0 or 1
uint64_t draw(Random& random, char kind);
int bytes_of(char kind);

// Bytes of operands of one kind, one behind the other.
std::vector<uint8_t> draw_bytes(Random& random, char kind, size_t bytes);

// Floats for long sums, which a single NaN would spoil: near 1, widely spread, now and then special, around
// the subnormals, or small integers.
enum class Range { Near, Wide, Special, Tiny, Whole };
constexpr int ranges = 5;
std::vector<uint8_t> draw_range(Random& random, char kind, Range range, size_t bytes);

inline void append(std::vector<uint8_t>& to, const std::vector<uint8_t>& more)
{
    to.insert(to.end(), more.begin(), more.end());
}

}  // namespace emu::silicon
