#include "random.hpp"

#include <cstring>

namespace emu::silicon {
namespace {

struct Float {
    int exponent_bits, fraction_bits;

    uint64_t sign() const { return uint64_t{1} << (exponent_bits + fraction_bits); }
    uint64_t infinity() const { return (sign() - 1) >> fraction_bits << fraction_bits; }
    uint64_t one() const { return ((uint64_t{1} << (exponent_bits - 1)) - 1) << fraction_bits; }
    uint64_t fraction() const { return (uint64_t{1} << fraction_bits) - 1; }
};

uint64_t special_float(Random& random, const Float& f)
{
    const uint64_t infinity = f.infinity(), quiet = uint64_t{1} << (f.fraction_bits - 1);
    const uint64_t least = f.fraction() + 1;
    return random.pick<uint64_t>({0,
                                  0,
                                  1,
                                  2,
                                  f.fraction(),
                                  f.fraction() / 2,
                                  least,
                                  least + 1,
                                  f.one(),
                                  f.one() - 1,
                                  f.one() + 1,
                                  f.one() + quiet,
                                  f.one() - least,
                                  infinity - 1,
                                  infinity - 2,
                                  infinity,
                                  infinity,
                                  infinity + quiet,
                                  infinity + 1,
                                  infinity + quiet + 5,
                                  infinity + f.fraction()});
}

// A number of few bits, such as a half or a multiple of a quarter: ties and exact results.
uint64_t simple_float(Random& random, const Float& f)
{
    const int exponent = random.between(-2, 8);
    const uint64_t fraction = (random.bits() & 7) << (f.fraction_bits - 3) & f.fraction();
    return f.one() + (static_cast<uint64_t>(exponent) << f.fraction_bits) + fraction;
}

uint64_t draw_float(Random& random, const Float& f)
{
    const uint64_t sign = random.chance(50) ? f.sign() : 0, fraction = random.bits() & f.fraction();
    const uint32_t choice = random.below(100);
    if (choice < 25)
        return sign | special_float(random, f);
    if (choice < 40)
        return sign | simple_float(random, f);
    if (choice < 50)
        return sign | fraction;
    if (choice < 65)
        return random.bits() & (f.sign() | (f.sign() - 1));
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    const int span = choice < 80 ? 2 : bias < 66 ? bias : 66;
    const int exponent = choice < 80 ? random.between(-span, span) : random.between(-2, span);
    return sign | static_cast<uint64_t>(bias + exponent) << f.fraction_bits | fraction;
}

uint64_t draw_integer(Random& random, int bits)
{
    const uint64_t mask = ~uint64_t{0} >> (64 - bits), high = uint64_t{1} << (bits - 1);
    const uint32_t choice = random.below(100);
    if (choice < 20)
        return random.pick<uint64_t>({0, 1, 2, mask, mask - 1, high, high - 1, high + 1, mask / 3, 255, 128,
                                      127, mask & 0xffff8000, mask & ~uint64_t{127}}) &
               mask;
    if (choice < 30)
        return ((uint64_t{1} << random.below(bits)) - random.below(2)) & mask;
    if (choice < 45)
        return static_cast<uint64_t>(random.between(-20, 20)) & mask;
    return (random.chance(50) ? random.bits() >> random.below(64) : random.bits()) & mask;
}

uint64_t draw_near(Random& random, const Float& f, int lowest, int highest)
{
    const uint64_t sign = random.chance(50) ? f.sign() : 0, fraction = random.bits() & f.fraction();
    const int bias = (1 << (f.exponent_bits - 1)) - 1, exponent = bias + random.between(lowest, highest);
    return sign | static_cast<uint64_t>(exponent < 0 ? 0 : exponent) << f.fraction_bits | fraction;
}

uint64_t draw_in_range(Random& random, const Float& f, Range range)
{
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    switch (range) {
    case Range::Near: return draw_near(random, f, -4, 2);
    case Range::Wide: return bias < 20 ? draw_near(random, f, -14, 12) : draw_near(random, f, -25, 25);
    case Range::Special:
        if (random.chance(2))
            return special_float(random, f) | (random.chance(50) ? f.sign() : 0);
        return draw_near(random, f, -6, 3);
    case Range::Tiny: return draw_near(random, f, -bias, -bias + 4);
    default: return random.chance(20) ? 0 : simple_float(random, f) ^ (random.chance(50) ? f.sign() : 0);
    }
}

constexpr Float f16{5, 10}, bf16{8, 7}, f32{8, 23}, f64{11, 52};

uint64_t draw_divisor(Random& random, int bits)
{
    const uint64_t value = draw_integer(random, bits), mask = ~uint64_t{0} >> (64 - bits);
    return value == 0 || value == mask ? 3 : value;
}

uint64_t draw_pair(Random& random, const Float& f)
{
    const uint64_t low = draw_float(random, f);
    return low | draw_float(random, f) << 16;
}

}  // namespace

uint64_t Random::bits()
{
    state_ += 0x9e3779b97f4a7c15;
    uint64_t value = state_;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

uint64_t draw(Random& random, char kind)
{
    switch (kind) {
    case 'u': return draw_integer(random, 16);
    case 'i': return draw_integer(random, 32);
    case 'l': return draw_integer(random, 64);
    case 'U': return draw_divisor(random, 16);
    case 'I': return draw_divisor(random, 32);
    case 'L': return draw_divisor(random, 64);
    case 'H': return draw_float(random, f16);
    case 'B': return draw_float(random, bf16);
    case 'F': return draw_float(random, f32);
    case 'D': return draw_float(random, f64);
    case 'P': return draw_pair(random, f16);
    case 'Q': return draw_pair(random, bf16);
    case 'n': return random.chance(80) ? random.below(70) : random.bits() & 0xffffffff;
    case 'k': return random.below(32);
    case 'o': return static_cast<uint32_t>(random.between(-9, 9));
    default: return random.below(2);
    }
}

int bytes_of(char kind)
{
    switch (kind) {
    case 'u':
    case 'U':
    case 'H':
    case 'B': return 2;
    case 'l':
    case 'L':
    case 'D': return 8;
    default: return 4;
    }
}

std::vector<uint8_t> draw_bytes(Random& random, char kind, size_t bytes)
{
    const int step = bytes_of(kind);
    std::vector<uint8_t> out(bytes);
    for (size_t at = 0; at + step <= bytes; at += step) {
        const uint64_t value = draw(random, kind);
        std::memcpy(out.data() + at, &value, step);
    }
    return out;
}

std::vector<uint8_t> draw_range(Random& random, char kind, Range range, size_t bytes)
{
    const Float& f = kind == 'H' ? f16 : kind == 'B' ? bf16 : kind == 'F' ? f32 : f64;
    const int step = bytes_of(kind);
    std::vector<uint8_t> out(bytes);
    for (size_t at = 0; at + step <= bytes; at += step) {
        const uint64_t value = draw_in_range(random, f, range);
        std::memcpy(out.data() + at, &value, step);
    }
    return out;
}

}  // namespace emu::silicon
