#include "data.hpp"

#include <algorithm>

namespace hg::bench {

Numbers::Numbers(hgemm_type_t type) : bits_(period), values_(period)
{
    constexpr uint64_t seed = 1;
    for (int64_t i = 0; i < period; ++i) {
        bits_[i] = static_cast<uint16_t>(test::encode(type, test::normal(seed, i)));
        values_[i] = static_cast<float>(test::decode(type, bits_[i]));
    }
}

void Numbers::fill(test::Memory& memory, void* to, int64_t count, int64_t phase) const
{
    auto* out = static_cast<uint16_t*>(to);
    for (int64_t done = 0; done < count;) {
        const int64_t first = (phase + done) % period;
        const int64_t length = std::min(period - first, count - done);
        memory.copy_in(out + done, &bits_[first], static_cast<size_t>(length) * sizeof(uint16_t));
        done += length;
    }
}

Operands::Operands(test::Memory& memory, const Numbers& numbers, const Product& p, int64_t index)
    : phase_a(2 * index * 7919), phase_b((2 * index + 1) * 7919),
      a(memory, static_cast<size_t>(p.m * p.k) * 2), b(memory, static_cast<size_t>(p.n * p.k) * 2),
      d(memory, static_cast<size_t>(p.m * p.n + 2 * pad) * 2)
{
    numbers.fill(memory, a.get(), p.m * p.k, phase_a);
    numbers.fill(memory, b.get(), p.n * p.k, phase_b);
}

}  // namespace hg::bench
