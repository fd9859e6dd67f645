#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace hg::bench {
namespace {

constexpr int64_t most_products = int64_t{1} << 25;  // multiplied in float64 for one product
constexpr int64_t small_result = int64_t{1} << 21;   // elements; all rows of it are read back
constexpr int64_t rows_looked_at = 64;               // of larger ones
constexpr uint16_t poison = 0xffff;                  // a NaN of both types

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

// Calls work(i) for i below `count` on every core.
template <typename Work>
void in_parallel(size_t count, const Work& work)
{
    const size_t cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (size_t t = 0; t < cores; ++t)
        threads.emplace_back([&, t] {
            for (size_t i = t; i < count; i += cores)
                work(i);
        });
    for (std::thread& thread : threads)
        thread.join();
}

bool all_poison(const uint16_t* begin, int64_t count)
{
    return std::all_of(begin, begin + count, [](uint16_t bits) { return bits == poison; });
}

// One line of D with the gap behind it, or what stands before or behind D.
std::vector<uint16_t> read_back(test::Memory& memory, const uint16_t* from, int64_t count)
{
    std::vector<uint16_t> values(static_cast<size_t>(count));
    memory.copy_out(values.data(), from, values.size() * sizeof(uint16_t));
    return values;
}

}  // namespace

Arithmetic arithmetic_of(int cc)
{
    if (cc == 0)
        return {1, 0.5};
    return cc >= 90 ? Arithmetic{16, 5.25} : Arithmetic{8, 5.5};
}

Expectation::Expectation(const Numbers& numbers, const Product& product, const Operands& operands,
                         const Arithmetic& arithmetic)
    : product_(product), operands_(operands), arithmetic_(arithmetic)
{
    choose();
    in_parallel(samples_.size(), [&](size_t i) { add_up(numbers, samples_[i]); });
}

void Expectation::choose()
{
    const Product& p = product_;
    test::Random random(2);
    const bool all_rows = p.m * p.n <= small_result || p.m <= rows_looked_at;
    for (int64_t i = 0; i < (all_rows ? p.m : rows_looked_at); ++i)
        rows_.push_back(all_rows ? i : i == 0 ? p.m - 1 : random.below(p.m));
    const int64_t budget = std::max<int64_t>(64, most_products / p.k);
    const auto rows = static_cast<int64_t>(rows_.size());
    if (rows * p.n <= budget) {
        for (size_t row = 0; row < rows_.size(); ++row)
            for (int64_t column = 0; column < p.n; ++column)
                samples_.push_back({row, column, 0, 0});
        return;
    }
    for (size_t row = 0; row < rows_.size() && rows <= budget / 2; ++row)
        samples_.push_back({row, p.n - 1, 0, 0});
    while (static_cast<int64_t>(samples_.size()) < budget)
        samples_.push_back({static_cast<size_t>(random.below(rows)), random.below(p.n), 0, 0});
}

void Expectation::add_up(const Numbers& numbers, Sample& s) const
{
    const Product& p = product_;
    const float* values = numbers.values();
    const int64_t row = rows_[s.row];
    Walk a(operands_.phase_a + row * (p.a_along_k() ? p.lda() : 1), p.a_along_k() ? 1 : p.lda());
    Walk b(operands_.phase_b + s.column * (p.b_along_k() ? p.ldb() : 1), p.b_along_k() ? 1 : p.ldb());
    for (int64_t i = 0; i < p.k; ++i) {
        const double product = static_cast<double>(values[a.at]) * static_cast<double>(values[b.at]);
        s.sum += product;
        s.magnitude += std::fabs(product);
        a.advance();
        b.advance();
    }
}

// |result - exact| / bound; infinite if the result is not a number.
double Expectation::error(const Sample& s, int64_t split, double result) const
{
    const test::Format& format = test::format_of(product_.type);
    const auto steps = static_cast<double>((product_.k + arithmetic_.step - 1) / arithmetic_.step);
    const double bound = steps * arithmetic_.factor * 0x1p-23 * s.magnitude +
                         static_cast<double>(split) * 0x1p-24 * s.magnitude +
                         3 * 0x1p-24 * std::fabs(s.sum) + format.unit() * std::fabs(result) +
                         format.smallest() / 2;
    const double ratio = std::fabs(result - s.sum) / bound;
    return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

Verdict Expectation::check(test::Memory& memory, int64_t split, const std::function<void()>& multiply) const
{
    const Product& p = product_;
    constexpr int64_t guard = Operands::guard;
    uint16_t* const d = operands_.d;
    memory.fill(d - guard, poison & 0xff, static_cast<size_t>(p.d_span() + 2 * guard) * sizeof(uint16_t));
    multiply();

    // Lines that are all read stand in memory as they are; of others each is read alone.
    const bool whole = static_cast<int64_t>(rows_.size()) == p.m;
    std::vector<uint16_t> lines;
    if (whole)
        lines = read_back(memory, d, p.d_span());
    for (size_t i = 0; !whole && i < rows_.size(); ++i) {
        const auto line = read_back(memory, d + rows_[i] * p.ldd(), p.ldd());
        lines.insert(lines.end(), line.begin(), line.end());
    }
    Verdict verdict{0, all_poison(read_back(memory, d - guard, guard).data(), guard) &&
                           all_poison(read_back(memory, d + p.d_span(), guard).data(), guard)};
    for (size_t i = 0; i < rows_.size(); ++i) {
        const uint16_t* line = &lines[i * static_cast<size_t>(p.ldd())];
        if (std::find(line, line + p.n, poison) != line + p.n)
            verdict.error = std::numeric_limits<double>::infinity();
        verdict.guards_intact = verdict.guards_intact && all_poison(line + p.n, p.pad);
    }
    for (const Sample& s : samples_) {
        const uint16_t bits = lines[s.row * static_cast<size_t>(p.ldd()) + static_cast<size_t>(s.column)];
        verdict.error = std::max(verdict.error, error(s, split, test::decode(p.type, bits)));
    }
    return verdict;
}

}  // namespace hg::bench
