#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace hg::bench {
namespace {

constexpr int64_t most_products = int64_t{1} << 28;  // multiplied in float64 for one check

struct Position {
    int64_t row, column;
};

// A walk through the repeated numbers.
struct Walk {
    int64_t at, step;

    Walk(int64_t start, int64_t stride) : at(start % Numbers::period), step(stride % Numbers::period) {}
    void advance()
    {
        at += step;
        if (at >= Numbers::period)
            at -= Numbers::period;
    }
};

std::vector<Position> positions_of(const Product& p)
{
    const int64_t budget = std::max<int64_t>(64, most_products / p.k);
    std::vector<Position> positions;
    if (p.m * p.n <= budget) {
        for (int64_t i = 0; i < p.m; ++i)
            for (int64_t j = 0; j < p.n; ++j)
                positions.push_back({i, j});
        return positions;
    }
    if (p.m + p.n <= budget / 2) {
        for (int64_t j = 0; j < p.n; ++j)
            positions.push_back({p.m - 1, j});
        for (int64_t i = 0; i < p.m; ++i)
            positions.push_back({i, p.n - 1});
    }
    test::Random random(2);
    while (static_cast<int64_t>(positions.size()) < budget)
        positions.push_back({random.below(p.m), random.below(p.n)});
    return positions;
}

class Reference {
public:
    Reference(const Numbers& numbers, const Product& product, const Operands& operands,
              const Arithmetic& arithmetic, int64_t split)
        : values_(numbers.values()), p_(product), o_(operands), arithmetic_(arithmetic), split_(split)
    {
    }

    // |result - exact| / bound; infinite if the result is not a number.
    double error(const Position& position, double result) const
    {
        Walk a(o_.phase_a + position.row * (p_.a_along_k() ? p_.k : 1), p_.a_along_k() ? 1 : p_.m);
        Walk b(o_.phase_b + position.column * (p_.b_along_k() ? p_.k : 1), p_.b_along_k() ? 1 : p_.n);
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < p_.k; ++i) {
            const double product = static_cast<double>(values_[a.at]) * static_cast<double>(values_[b.at]);
            sum += product;
            magnitude += std::fabs(product);
            a.advance();
            b.advance();
        }
        const test::Format& format = test::format_of(p_.type);
        const auto steps = static_cast<double>((p_.k + arithmetic_.step - 1) / arithmetic_.step);
        const double bound = steps * arithmetic_.factor * 0x1p-23 * magnitude +
                             static_cast<double>(split_) * 0x1p-24 * magnitude +
                             3 * 0x1p-24 * std::fabs(sum) + format.unit() * std::fabs(result) +
                             format.smallest() / 2;
        const double ratio = std::fabs(result - sum) / bound;
        return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
    }

private:
    const float* values_;
    const Product& p_;
    const Operands& o_;
    Arithmetic arithmetic_;
    int64_t split_;
};

double worst_error(const Reference& reference, const Product& p, const uint16_t* d)
{
    const std::vector<Position> positions = positions_of(p);
    std::vector<double> worst(std::max(1u, std::thread::hardware_concurrency()), 0.0);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < worst.size(); ++t)
        threads.emplace_back([&, t] {
            double largest = 0;
            for (size_t i = t; i < positions.size(); i += worst.size()) {
                const uint16_t bits = d[positions[i].row * p.n + positions[i].column];
                largest = std::max(largest, reference.error(positions[i], test::decode(p.type, bits)));
            }
            worst[t] = largest;
        });
    for (std::thread& thread : threads)
        thread.join();
    return *std::max_element(worst.begin(), worst.end());
}

}  // namespace

Arithmetic arithmetic_of(int cc)
{
    if (cc == 0)
        return {1, 0.5};
    return cc >= 90 ? Arithmetic{16, 5.25} : Arithmetic{8, 5.5};
}

Verdict check(const Numbers& numbers, const Product& product, Operands& operands,
              const Arithmetic& arithmetic, int64_t split, const std::function<void()>& multiply)
{
    constexpr uint16_t poison = 0xffff;  // a NaN of both types
    std::vector<uint16_t> d(operands.d.bytes() / sizeof(uint16_t), poison);
    operands.d.copy_in(d.data());
    multiply();
    operands.d.copy_out(d.data());
    const auto poisoned = [](uint16_t bits) { return bits == poison; };
    const bool intact = std::all_of(d.begin(), d.begin() + Operands::pad, poisoned) &&
                        std::all_of(d.end() - Operands::pad, d.end(), poisoned);
    const Reference reference(numbers, product, operands, arithmetic, split);
    return {worst_error(reference, product, d.data() + Operands::pad), intact};
}

}  // namespace hg::bench
