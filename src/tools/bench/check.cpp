#include "src/tools/bench/check.hpp"

#include "src/tools/bench/output.hpp"
#include "src/tools/support/number.hpp"
#include "src/tools/support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace hg::bench {
namespace {

constexpr int64_t max_products = int64_t{1} << 25;  // multiplied in float64 for one product
constexpr int64_t small_result = int64_t{1} << 21;  // elements; all rows of it are read back
constexpr int64_t rows_looked_at = 64;              // of larger ones
constexpr unsigned char poison = 0xff;              // bytes of a NaN of every type
constexpr int64_t phase_c = Numbers::period / 2;    // of C, one number after the other through its gaps

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

using Bytes = std::vector<unsigned char>;

bool all_poison(const unsigned char* begin, size_t count)
{
    return std::all_of(begin, begin + count, [](unsigned char byte) { return byte == poison; });
}

Bytes read_back(test::Memory& memory, const char* from, size_t count)
{
    Bytes bytes(count);
    memory.copy_out(bytes.data(), from, count);
    return bytes;
}

// `count` numbers from number `at` on, as elements of `type`.
void copy_numbers(test::Memory& memory, void* to, const Numbers& numbers, hgemm_type_t type, int64_t at,
                  int64_t count)
{
    const auto element = static_cast<int64_t>(test::bytes_of(type));
    const char* const from = type == HGEMM_F32 ? reinterpret_cast<const char*>(numbers.values())
                                               : reinterpret_cast<const char*>(numbers.bits());
    while (count > 0) {
        at %= Numbers::period;
        const int64_t here = std::min(count, Numbers::period - at);
        memory.copy_in(to, from + at * element, static_cast<size_t>(here * element));
        to = static_cast<char*>(to) + here * element;
        at += here;
        count -= here;
    }
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
    : numbers_(numbers), product_(product), operands_(operands), arithmetic_(arithmetic)
{
    choose();
    in_parallel(samples_.size(), [&](size_t i) { add_up(samples_[i]); });
}

void Expectation::choose()
{
    const Product& p = product_;
    test::Random random(2);
    const bool all_rows = p.rows() * p.columns() <= small_result || p.rows() <= rows_looked_at;
    for (int64_t i = 0; i < (all_rows ? p.rows() : rows_looked_at); ++i)
        rows_.push_back(all_rows ? i : i == 0 ? p.rows() - 1 : random.below(p.rows()));
    const int64_t budget = std::max<int64_t>(64, max_products / p.k);
    const auto rows = static_cast<int64_t>(rows_.size());
    if (rows * p.columns() <= budget) {
        for (size_t row = 0; row < rows_.size(); ++row)
            for (int64_t column = 0; column < p.columns(); ++column)
                samples_.push_back({row, column});
        return;
    }
    for (size_t row = 0; row < rows_.size() && rows <= budget / 2; ++row)
        samples_.push_back({row, p.columns() - 1});
    while (static_cast<int64_t>(samples_.size()) < budget)
        samples_.push_back({static_cast<size_t>(random.below(rows)), random.below(p.columns())});
}

Expectation::Sum Expectation::sum_at(int64_t row, int64_t column) const
{
    const Product& p = product_;
    const float* values = numbers_.values();
    const int64_t problem = row / p.m, row_of_a = row % p.m;
    Walk a(operands_.phase_a + problem * p.a_stride() + row_of_a * (p.a_along_k() ? p.lda() : 1),
           p.a_along_k() ? 1 : p.lda());
    Walk b(operands_.phase_b + problem * p.b_stride() + column * (p.b_along_k() ? p.ldb() : 1),
           p.b_along_k() ? 1 : p.ldb());
    Sum sum;
    for (int64_t i = 0; i < p.k; ++i) {
        const double product = static_cast<double>(values[a.at]) * static_cast<double>(values[b.at]);
        sum.value += product;
        sum.magnitude += std::fabs(product);
        a.advance();
        b.advance();
    }
    return sum;
}

void Expectation::add_up(Sample& s) const
{
    const Product& p = product_;
    const int64_t row = rows_[s.row];
    s.sum = sum_at(row, s.column);
    if (p.output.has(Output::Gated))
        s.gated = sum_at(row, p.n / 2 + s.column);
    if (p.output.has(Output::Beta))
        s.c = p.output.beta() * numbers_.values()[Walk(phase_c + row * p.ldd() + s.column, 0).at];
    if (p.output.has(Output::Bias))
        s.bias = numbers_.values()[Walk(operands_.phase_bias + s.column, 0).at];
}

test::Estimate Expectation::estimate(const Sample& s, const Result& result) const
{
    const auto steps = static_cast<double>((product_.k + arithmetic_.step - 1) / arithmetic_.step);
    const double added = std::fabs(s.c) + std::fabs(s.bias);
    // A bias is added, and rounded, as C is.
    const double roundings = product_.output.has(Output::Bias) ? 4 : 3;
    const auto before = [&](const Sum& sum) {
        return test::Estimate{sum.value + s.c + s.bias,
                              steps * arithmetic_.factor * 0x1p-23 * sum.magnitude +
                                  static_cast<double>(result.split) * 0x1p-24 * (sum.magnitude + added) +
                                  roundings * 0x1p-24 * (std::fabs(sum.value) + added)};
    };
    const test::Estimate exact = before(s.sum);
    if (product_.output.has(Output::Gated))
        return test::gated({}, result.activation, exact, before(s.gated));
    return {test::activate(result.activation, exact.value),
            test::activated_error(result.activation, exact.value, exact.error)};
}

// |value - exact| / bound; infinite if the value is not a number.
double Expectation::error(const Sample& s, const Result& result, double value) const
{
    const test::Format& format = test::format_of(product_.type_d());
    const test::Estimate wanted = estimate(s, result);
    // GELU is x / 2 * (1 + tanh(u)).
    const bool approximate =
        result.tanh == Tanh::Approximate && result.activation == HGEMM_ACTIVATION_GELU_TANH;
    const double exact = s.sum.value + s.c + s.bias;
    const double bound = wanted.error + (approximate ? 0x1p-12 * std::fabs(exact) : 0) +
                         format.unit() * std::fabs(value) + format.smallest() / 2;
    const double ratio = std::fabs(value - wanted.value) / bound;
    return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

void Expectation::prepare(test::Memory& memory) const
{
    const Product& p = product_;
    const size_t element = test::bytes_of(p.type_d());
    const size_t guard = Operands::guard * element, span = static_cast<size_t>(p.d_span()) * element;
    for (void* result : {operands_.d, operands_.aux})
        if (result)
            memory.fill(static_cast<char*>(result) - guard, poison, span + 2 * guard);
    for (int64_t row = 0; p.output.has(Output::Beta) && row < p.rows(); ++row)
        copy_numbers(memory, static_cast<char*>(operands_.d) + static_cast<size_t>(row * p.ldd()) * element,
                     numbers_, p.type_d(), phase_c + row * p.ldd(), p.columns());
}

// The lines that are looked at, with the gap behind each.
Bytes Expectation::lines_of(test::Memory& memory, const Result& result) const
{
    const Product& p = product_;
    const size_t line = static_cast<size_t>(p.ldd()) * test::bytes_of(p.type_d());
    const char* const begin = static_cast<const char*>(result.begin);
    // Those that are all read stand in memory as they are; of others each is read alone.
    if (static_cast<int64_t>(rows_.size()) == p.rows())
        return read_back(memory, begin, rows_.size() * line);
    Bytes lines;
    for (const int64_t row : rows_) {
        const Bytes one = read_back(memory, begin + static_cast<size_t>(row) * line, line);
        lines.insert(lines.end(), one.begin(), one.end());
    }
    return lines;
}

void Expectation::judge(test::Memory& memory, const Result& result, Verdict& verdict) const
{
    const Product& p = product_;
    const size_t element = test::bytes_of(p.type_d()), guard = Operands::guard * element;
    const size_t length = static_cast<size_t>(p.columns()) * element,
                 line = static_cast<size_t>(p.ldd()) * element;
    const char* const begin = static_cast<const char*>(result.begin);
    const char* const end = begin + static_cast<size_t>(p.rows()) * line;
    verdict.guards_intact = verdict.guards_intact &&
                            all_poison(read_back(memory, begin - guard, guard).data(), guard) &&
                            all_poison(read_back(memory, end, guard).data(), guard);
    const Bytes lines = lines_of(memory, result);
    for (size_t i = 0; i < rows_.size(); ++i) {
        const unsigned char* const at = &lines[i * line];
        for (size_t j = 0; j < length; j += element)
            if (all_poison(at + j, element))
                verdict.error = std::numeric_limits<double>::infinity();
        verdict.guards_intact = verdict.guards_intact && all_poison(at + length, line - length);
    }
    for (const Sample& s : samples_) {
        const unsigned char* const at = &lines[s.row * line + static_cast<size_t>(s.column) * element];
        verdict.error = std::max(verdict.error, error(s, result, test::load(p.type_d(), at)));
    }
}

Verdict Expectation::check(test::Memory& memory, int64_t split, const std::function<void()>& multiply,
                           Tanh tanh) const
{
    prepare(memory);
    multiply();
    Verdict verdict{0, true};
    judge(memory, {operands_.d, product_.output.activation(), split, tanh}, verdict);
    if (operands_.aux)
        judge(memory, {operands_.aux, HGEMM_ACTIVATION_NONE, split, tanh}, verdict);
    return verdict;
}

}  // namespace hg::bench
