// The results that hgemm.h promises. Operands are small integers and scalars powers of two, so that all of
// it is exact until it is rounded to the output's type, but for the activations with an exponential.
#include "oracle.hpp"
#include "src/tools/support/reference.hpp"

#include <cmath>

namespace hg::fuzz {
namespace {

// Where row i and column j of a matrix lie: line and position.
double element(const Block& block, int64_t z, int64_t i, int64_t j, bool row_is_line)
{
    return row_is_line ? block.get(z, i, j) : block.get(z, j, i);
}

double sum_of(const Product& p, int64_t z, int64_t i, int64_t j)
{
    const bool row_major = p.g.layout == HGEMM_ROW_MAJOR;
    const bool a_rows = row_major == (p.g.transa == HGEMM_NO_TRANS);
    const bool b_rows = row_major == (p.g.transb == HGEMM_NO_TRANS);
    double sum = 0;
    for (int64_t l = 0; l < p.g.k; ++l)
        sum += element(p.a, z, i, l, a_rows) * element(p.b, z, l, j, b_rows);
    return sum;
}

// At minus infinity the limits.
double activated(hgemm_activation_t activation, double value)
{
    if (std::isinf(value) && activation != HGEMM_ACTIVATION_NONE)
        return value > 0 ? value : 0;
    return test::activate(activation, value);
}

// An element of the product, with C and bias.
double value_of(const Product& p, const std::vector<double>& before, int64_t z, int64_t i, int64_t j)
{
    const hgemm_args_t& g = p.g;
    double value = p.reads_ab() ? p.alpha() * sum_of(p, z, i, j) : 0;
    if (p.reads_c() && p.beta() != 0)
        value += p.beta() * before[static_cast<size_t>((z * g.m + i) * g.n + j)];
    if (g.bias_mode != HGEMM_BIAS_NONE)
        value += p.bias.get(z, 0, g.bias_mode == HGEMM_BIAS_M ? i : j);
    return value;
}

void expect_element(Product& p, const std::vector<double>& before, int64_t z, int64_t i, int64_t j,
                    bool aux)
{
    const hgemm_args_t& g = p.g;
    const bool row_major = g.layout == HGEMM_ROW_MAJOR;
    const double value = value_of(p, before, z, i, j);
    const int64_t line = row_major ? i : j, position = row_major ? j : i;
    if (aux)
        p.aux.expect(z, line, position, value, 0);
    if (p.is_gated())
        return;
    const double error = test::activated_error(g.activation, value, 0);
    p.d.expect(z, line, position, activated(g.activation, value), std::isfinite(error) ? error : 0);
    if (g.uplo == HGEMM_BOTH && i != j)
        p.d.expect(z, position, line, value, 0);
}

// Of problem z, from the elements of the product.
void expect_gated(Product& p, const std::vector<double>& before, int64_t z)
{
    const hgemm_args_t& g = p.g;
    const bool row_major = g.layout == HGEMM_ROW_MAJOR;
    const Extent d = p.extent_d();
    for (int64_t line = 0; line < d.lines; ++line)
        for (int64_t j = 0; j < d.length; ++j) {
            const auto at = [&](int64_t place) {
                return test::Estimate{row_major ? value_of(p, before, z, line, place)
                                                : value_of(p, before, z, place, line),
                                      0};
            };
            const int64_t place = test::place_of_gate(g.gate.block, j);
            const test::Estimate wanted =
                test::gated(g.gate, g.activation, at(place), at(place + g.gate.block));
            p.d.expect(z, line, j, wanted.value, std::isfinite(wanted.error) ? wanted.error : 0);
        }
}

// C before the call, row by row: D may lie over it.
std::vector<double> values_of_c(const Product& p, const Block& before)
{
    std::vector<double> values;
    for (int64_t z = 0; !p.is_empty() && z < p.g.batch_count; ++z)
        for (int64_t i = 0; i < p.g.m; ++i)
            for (int64_t j = 0; j < p.g.n; ++j)
                values.push_back(p.reads_c() ? element(before, z, i, j, p.g.layout == HGEMM_ROW_MAJOR) : 0);
    return values;
}

}  // namespace

std::vector<double> c_before(const Product& p) { return values_of_c(p, p.separate_c ? p.c : p.d); }

void check_untouched(const Product& p)
{
    const std::pair<const Block*, const char*> blocks[] = {{&p.a, "A"}, {&p.b, "B"},     {&p.c, "C"},
                                                           {&p.d, "D"}, {&p.aux, "aux"}, {&p.bias, "bias"}};
    for (const auto& [block, name] : blocks)
        if (block->exists())
            block->check(name);
}

void check_results(Product& p, const std::vector<double>& before)
{
    const bool aux = p.g.aux && !p.is_array();
    for (int64_t z = 0; !p.is_empty() && z < p.g.batch_count; ++z) {
        if (p.is_gated())
            expect_gated(p, before, z);
        for (int64_t i = 0; i < p.g.m; ++i)
            for (int64_t j = 0; j < p.g.n; ++j)
                if (test::is_computed(p.g.uplo, i, j))
                    expect_element(p, before, z, i, j, aux);
    }
    check_untouched(p);
}

bool promises_results(const Product& p)
{
    return !p.d.extent().overlaps_itself() && !(p.aux.exists() && p.aux.extent().overlaps_itself()) &&
           !(p.is_array() && p.g.aux);
}

}  // namespace hg::fuzz
