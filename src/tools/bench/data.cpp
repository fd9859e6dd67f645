#include "src/tools/bench/data.hpp"

#include <algorithm>
#include <cmath>

namespace hg::bench {
namespace {

// Elements, to an address of 256-byte alignment.
int64_t aligned(int64_t count) { return (count + 127) / 128 * 128; }

int64_t capacity(const test::Block& block)
{
    return static_cast<int64_t>(block.bytes() / sizeof(uint16_t));
}

}  // namespace

Numbers::Numbers(hgemm_type_t type) : bits_(period), values_(period)
{
    constexpr uint64_t seed = 1;
    for (int64_t i = 0; i < period; ++i) {
        bits_[i] = static_cast<uint16_t>(test::encode(type, test::normal(seed, i)));
        values_[i] = static_cast<float>(test::decode(type, bits_[i]));
    }
}

// Half as much again as was there, so that ever larger products do not allocate every time.
void Arena::hold(int64_t inputs, size_t output_bytes)
{
    if (outputs_.bytes() < output_bytes) {
        const size_t grown = std::max(output_bytes, outputs_.bytes() * 3 / 2);
        outputs_ = test::Block();
        outputs_ = test::Block(memory_, grown);
    }
    if (capacity(inputs_) >= inputs)
        return;
    const int64_t grown = std::max(inputs, capacity(inputs_) * 3 / 2);
    inputs_ = test::Block();
    inputs_ = test::Block(memory_, static_cast<size_t>(grown) * sizeof(uint16_t));
    auto* const begin = inputs_.get<uint16_t>();
    int64_t filled = std::min(grown, Numbers::period);
    memory_.copy_in(begin, numbers_.bits(), static_cast<size_t>(filled) * sizeof(uint16_t));
    while (filled < grown) {
        const int64_t more = std::min(filled, grown - filled);
        memory_.copy(begin + filled, begin, static_cast<size_t>(more) * sizeof(uint16_t));
        filled += more;
    }
}

std::vector<Operands> Arena::operands(const Product& p, int count)
{
    const int64_t a_size = aligned(p.a_span() + p.offset), b_size = aligned(p.b_span() + p.offset);
    const bool biased = p.output.has(Output::Bias);
    const int64_t bias_size = biased ? aligned(p.n + p.offset) : 0;
    // Room for what other libraries compute as well.
    const int64_t d_size = aligned(p.ungated().d_span() + p.offset + 2 * Operands::guard);
    const int64_t inputs = a_size + b_size + bias_size, results = p.results();
    const auto element = static_cast<int64_t>(test::bytes_of(p.type_d()));
    const auto output_bytes = static_cast<size_t>(count * results * d_size * element);
    hold(count * inputs, output_bytes);
    if (p.output.has(Output::Beta))
        memory_.fill(outputs_.get(), 0, output_bytes);
    const auto* const numbers = inputs_.get<uint16_t>();
    const auto result = [&](int64_t i) {
        return outputs_.get<char>() + (i * d_size + Operands::guard + p.offset) * element;
    };
    std::vector<Operands> sets;
    for (int i = 0; i < count; ++i) {
        const int64_t a = i * inputs + p.offset, bias = a + a_size + b_size;
        const int64_t b = p.output.has(Output::Symmetric) ? a : a + a_size;
        sets.push_back({numbers + a, numbers + b, biased ? numbers + bias : nullptr, result(i * results),
                        results > 1 ? result(i * results + 1) : nullptr, a % Numbers::period,
                        b % Numbers::period, bias % Numbers::period});
    }
    return sets;
}

int rotating_sets(const Product& product, int64_t l2_bytes, size_t free_bytes, int most)
{
    const auto element = static_cast<int64_t>(test::bytes_of(product.type_d()));
    const double bytes = static_cast<double>(2 * (product.a_span() + product.b_span()) +
                                             product.results() * element * product.ungated().d_span());
    const double wanted = std::max(180e6, 3 * static_cast<double>(l2_bytes));
    const double fitting = 0.8 * static_cast<double>(free_bytes) / bytes;
    const double count = std::min(std::ceil(wanted / bytes), std::floor(fitting));
    return std::clamp(static_cast<int>(std::min(count, 1e6)), 1, most);
}

}  // namespace hg::bench
