// Families without a reference: two products whose results must agree bit for bit, at sizes that span
// several tiles. Where shapes differ between the two this is the promise of the batch-invariant mode; a
// backend without it gets data that make it true of any order of summation.
#include "conformance.hpp"

#include <algorithm>
#include <vector>

namespace hg::test {
namespace {

// Puts the engine into batch-invariant mode for as long as it lives, if it can.
class Invariant {
public:
    explicit Invariant(Engine& engine) : engine_(engine), on_(engine.set_batch_invariant(true)) {}
    ~Invariant() { engine_.set_batch_invariant(false); }
    Data data() const { return on_ ? Data::Normal : Data::Integers; }

private:
    Engine& engine_;
    bool on_;
};

template <typename Work>
void for_each_form(Data data, Work work)
{
    for (const bool aligned : {false, true})
        for (const hgemm_op_t transa : ops)
            for (const hgemm_op_t transb : ops)
                for (const hgemm_type_t type : halves) {
                    GemmCase g;
                    g.layout = transa == transb ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
                    g.transa = transa;
                    g.transb = transb;
                    g.type_ab = type;
                    g.type_c = g.type_d = transa == HGEMM_TRANS ? HGEMM_F32 : type;
                    g.m = 203;
                    g.n = 330;
                    g.k = 100;
                    g.alpha = 0.75f;
                    g.beta = -1;
                    g.aligned = aligned;
                    g.data = data;
                    work(g);
                }
}

// The results of `changed`, as `edit` fills it, against those of `original`.
using Mapping = std::function<double(const Trial& original, int64_t z, int64_t row, int64_t column)>;
void compare(Suite& suite, const GemmCase& original, const GemmCase& changed,
             const std::function<void(Trial&)>& edit, const Mapping& expected)
{
    if (!suite.next())
        return;
    Trial first(original, suite.engine().memory()), second(changed, suite.engine().memory());
    if (edit)
        edit(second);
    if (suite.run(original, first) && suite.run(changed, second))
        suite.expect_same(changed, second,
                          [&](int64_t z, int64_t i, int64_t j) { return expected(first, z, i, j); });
}

// D x = A (B x) in integers modulo 2^32; the first row for which that is wrong, or -1.
int64_t first_wrong_row(const GemmCase& g, const Trial& trial)
{
    const auto a = Trial::data_a(g), b = Trial::data_b(g);
    const auto integer = [](double value) { return static_cast<uint32_t>(static_cast<int64_t>(value)); };
    std::vector<uint32_t> x(static_cast<size_t>(g.n)), bx(static_cast<size_t>(g.k));
    for (size_t j = 0; j < x.size(); ++j)
        x[j] = static_cast<uint32_t>(hash(99, j));
    parallel(g.k, g.n * 8, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            for (int64_t j = 0; j < g.n; ++j)
                bx[static_cast<size_t>(p)] += integer(b(0, p, j)) * x[static_cast<size_t>(j)];
    });
    std::vector<uint32_t> difference(static_cast<size_t>(g.m));
    parallel(g.m, (g.n + g.k) * 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            uint32_t& sum = difference[static_cast<size_t>(i)];
            for (int64_t j = 0; j < g.n; ++j)
                sum += integer(trial.result(0, i, j)) * x[static_cast<size_t>(j)];
            for (int64_t p = 0; p < g.k; ++p)
                sum -= integer(a(0, i, p)) * bx[static_cast<size_t>(p)];
        }
    });
    const auto wrong =
        std::find_if(difference.begin(), difference.end(), [](uint32_t d) { return d != 0; });
    return wrong == difference.end() ? -1 : wrong - difference.begin();
}

}  // namespace

void repetition(Suite& suite)
{
    for_each_form(Data::Normal, [&](const GemmCase& g) {
        for (int repeat = 0; repeat < 20; ++repeat)
            compare(suite, g, g, nullptr,
                    [](const Trial& t, int64_t z, int64_t i, int64_t j) { return t.result(z, i, j); });
    });
}

void scaling(Suite& suite)
{
    for_each_form(Data::Normal, [&](GemmCase g) {
        GemmCase scaled = g;
        scaled.alpha = g.alpha / 4;
        const auto a = Trial::data_a(g), b = Trial::data_b(g);
        const auto doubled = [&g](const Trial::Generator& value) {
            return [&](int64_t z, int64_t i, int64_t j) { return 2 * round_to(g.type_ab, value(z, i, j)); };
        };
        compare(
            suite, g, scaled,
            [&](Trial& t) {
                t.fill_a(doubled(a));
                t.fill_b(doubled(b));
            },
            [](const Trial& t, int64_t z, int64_t i, int64_t j) { return t.result(z, i, j); });
    });
}

void row_order(Suite& suite)
{
    const Invariant mode(suite.engine());
    for_each_form(mode.data(), [&](const GemmCase& g) {
        const auto a = Trial::data_a(g), c = Trial::data_c(g);
        const auto moved = [m = g.m](int64_t i) { return (i * 17 + 5) % m; };
        compare(
            suite, g, g,
            [&](Trial& t) {
                t.fill_a([&](int64_t z, int64_t i, int64_t p) { return a(z, moved(i), p); });
                t.fill_c([&](int64_t z, int64_t i, int64_t j) { return c(z, moved(i), j); });
            },
            [&](const Trial& t, int64_t z, int64_t i, int64_t j) { return t.result(z, moved(i), j); });
    });
}

// (A B)^T = B^T A^T
void swapped_operands(Suite& suite)
{
    const Invariant mode(suite.engine());
    for_each_form(mode.data(), [&](const GemmCase& g) {
        GemmCase swapped = g;
        std::swap(swapped.m, swapped.n);
        const auto a = Trial::data_a(g), b = Trial::data_b(g), c = Trial::data_c(g);
        compare(
            suite, g, swapped,
            [&](Trial& t) {
                t.fill_a([&](int64_t z, int64_t j, int64_t p) { return b(z, p, j); });
                t.fill_b([&](int64_t z, int64_t p, int64_t i) { return a(z, i, p); });
                t.fill_c([&](int64_t z, int64_t j, int64_t i) { return c(z, i, j); });
            },
            [](const Trial& t, int64_t z, int64_t j, int64_t i) { return t.result(z, i, j); });
    });
}

// Zeros up to the next step of a tensor core change nothing.
void zero_columns(Suite& suite)
{
    const Invariant mode(suite.engine());
    for_each_form(mode.data(), [&](const GemmCase& g) {
        GemmCase longer = g;
        longer.k = 112;
        const auto a = Trial::data_a(g);
        compare(
            suite, g, longer,
            [&](Trial& t) {
                t.fill_a([&](int64_t z, int64_t i, int64_t p) { return p < g.k ? a(z, i, p) : 0; });
            },
            [](const Trial& t, int64_t z, int64_t i, int64_t j) { return t.result(z, i, j); });
    });
}

void batch_split(Suite& suite)
{
    const Invariant mode(suite.engine());
    for_each_form(mode.data(), [&](GemmCase g) {
        GemmCase alone = g;
        g.batch = Batch::Strided;
        g.batch_count = 4;
        const auto a = Trial::data_a(g), b = Trial::data_b(g), c = Trial::data_c(g);
        for (const int64_t problem : {1, 3})
            compare(
                suite, g, alone,
                [&](Trial& t) {
                    t.fill_a([&](int64_t, int64_t i, int64_t p) { return a(problem, i, p); });
                    t.fill_b([&](int64_t, int64_t p, int64_t j) { return b(problem, p, j); });
                    t.fill_c([&](int64_t, int64_t i, int64_t j) { return c(problem, i, j); });
                },
                [&](const Trial& t, int64_t, int64_t i, int64_t j) { return t.result(problem, i, j); });
    });
}

// A few rows and columns out of the middle, computed alone.
void rows_alone(Suite& suite)
{
    const Invariant mode(suite.engine());
    for_each_form(mode.data(), [&](const GemmCase& g) {
        const auto a = Trial::data_a(g), b = Trial::data_b(g), c = Trial::data_c(g);
        for (const int64_t m : {1, 9, 70})
            for (const int64_t n : {1, 40, 330}) {
                GemmCase part = g;
                part.m = m;
                part.n = n;
                const int64_t row = (g.m - m) / 2, column = (g.n - n) / 2;
                compare(
                    suite, g, part,
                    [&](Trial& t) {
                        t.fill_a([&](int64_t z, int64_t i, int64_t p) { return a(z, i + row, p); });
                        t.fill_b([&](int64_t z, int64_t p, int64_t j) { return b(z, p, j + column); });
                        t.fill_c(
                            [&](int64_t z, int64_t i, int64_t j) { return c(z, i + row, j + column); });
                    },
                    [&](const Trial& t, int64_t z, int64_t i, int64_t j) {
                        return t.result(z, i + row, j + column);
                    });
            }
    });
}

// Large products on data that make them exact; not as large where cases are left out, on a slow device.
void freivalds(Suite& suite)
{
    const bool large = suite.engine().memory().on_device() && !suite.thinned();
    for (const hgemm_type_t type : halves) {
        GemmCase g;
        g.type_ab = type;
        g.type_d = HGEMM_F32;
        g.layout = type == HGEMM_F16 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
        g.transb = HGEMM_TRANS;
        g.m = large ? 4099 : 2077;
        g.aligned = type == HGEMM_F16;
        g.n = large ? 5003 : 2099;
        g.k = large ? 6011 : 601;
        if (!suite.next())
            return;
        Trial trial(g, suite.engine().memory());
        if (!suite.run(g, trial))
            continue;
        if (const int64_t row = first_wrong_row(g, trial); row >= 0)
            suite.fail(g, "row " + std::to_string(row) + " of D is wrong");
    }
}

}  // namespace hg::test
