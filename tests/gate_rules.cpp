#include "gate_rules.hpp"

#include "conformance.hpp"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace hg::test {
namespace {

constexpr hgemm_activation_t activations[] = {HGEMM_ACTIVATION_NONE, HGEMM_ACTIVATION_RELU,
                                              HGEMM_ACTIVATION_GELU_TANH, HGEMM_ACTIVATION_GELU_ERF,
                                              HGEMM_ACTIVATION_SILU};

// Without a block: nothing else; a limit; an offset; as gpt-oss has it.
constexpr hgemm_gate_t numbers[] = {{}, {0, 5, 0, 0, 0}, {0, 0, 0, -0.5f, 0}, {0, 7, 1.702f, 1, 0}};

constexpr hgemm_gate_t steepest = {0, 0, FLT_MAX, 0, 0};

void set_numbers(GemmCase& g, const hgemm_gate_t& gate)
{
    const int64_t block = g.gate.block;
    g.gate = gate;
    g.gate.block = block;
    if (gate.slope != 0)
        g.activation = HGEMM_ACTIVATION_SILU;
}

}  // namespace

GemmCase gate_case(unsigned form, int64_t lines, int64_t length, int64_t k, int64_t block)
{
    GemmCase g;
    g.layout = form & 1 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = form & 2 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.transb = form & 4 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.type_ab = halves[(form / 8 + form) % 2];
    g.type_c = g.type_d = types[form % 3];
    g.m = g.d_by_rows() ? lines : 2 * length;
    g.n = g.d_by_rows() ? 2 * length : lines;
    g.k = k;
    g.gate.block = block != 0 ? block : length;
    g.activation = activations[form % 5];
    set_numbers(g, numbers[form / 2 % 4]);
    g.data = Data::Normal;
    g.seed = form + 1;
    return g;
}

void expect_gate(Library& library, const GemmCase& g, const std::function<void(Trial&)>& edit)
{
    Trial trial(g, library.memory());
    if (edit)
        edit(trial);
    trial.upload();
    ASSERT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << g.print() << ": " << hgemm_last_error();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "")
        << g.print() << ": " << library.explain(trial.args());
}

namespace {

void check_blocks(Library& library, unsigned form)
{
    expect_gate(library, gate_case(form, 19, 37, 50));
    expect_gate(library, gate_case(form, 1, 64, 50));
    expect_gate(library, gate_case(form, 5, 1, 50));
    expect_gate(library, gate_case(form, 19, 37, 50, 1));
    expect_gate(library, gate_case(form, 7, 33, 50, 3));
    expect_gate(library, gate_case(form, 70, 40, 50, 8));
    expect_gate(library, gate_case(form, 130, 96, 50, 32));
}

// With C, a bias, aux, scalars in memory, and without a product.
void check_epilogues(Library& library, unsigned form, int64_t block)
{
    GemmCase g = gate_case(form, 21, 24, 40, block);
    g.in_place = false;
    g.type_c = types[(form + 1) % 3];
    g.alpha = 0.5f;
    g.beta = -1;
    g.bias = form % 4 < 2 ? HGEMM_BIAS_M : HGEMM_BIAS_N;
    g.bias_type = types[form / 2 % 3];
    expect_gate(library, g);
    g.aux = true;
    g.device_scalars = library.memory().on_device();
    expect_gate(library, g);
    g.bias = g.bias == HGEMM_BIAS_M ? HGEMM_BIAS_N : HGEMM_BIAS_M;
    g.c.gap = 3;
    g.aux_place.gap = 5;
    g.d.shift = g.d.gap = g.a.gap = g.b.shift = 1;
    expect_gate(library, g);
    const auto poison = [](Trial& trial) {
        trial.poison_a();
        trial.poison_b();
    };
    g.device_scalars = false;
    g.alpha = 0;
    expect_gate(library, g, poison);
    g.alpha = 1;
    g.k = 0;
    expect_gate(library, g);
    g.beta = 0;
    expect_gate(library, g, [](Trial& trial) { trial.poison_c(); });
}

void check_batches(Library& library, unsigned form, int64_t block)
{
    GemmCase g = gate_case(form, 33, 24, 24, block);
    g.batch = Batch::Strided;
    g.batch_count = 5;
    expect_gate(library, g);
    g.in_place = false;
    g.beta = 1;
    g.bias = HGEMM_BIAS_N;
    g.bias_step = 2;
    g.aux = true;
    g.b.step = 0;
    g.d.step = -3;
    expect_gate(library, g);
    g.a.step = g.c.step = g.bias_step = 0;
    g.b.step = 3;
    g.aligned = true;
    expect_gate(library, g);
    g = gate_case(form, 33, 24, 24, block);
    g.batch = Batch::Arrays;
    g.batch_count = 3;
    expect_gate(library, g);
    g.in_place = false;
    g.beta = 1;
    g.bias = HGEMM_BIAS_N;
    g.d.gap = g.d.shift = g.c.gap = 1;
    expect_gate(library, g);
}

// Large enough for several tiles, which GPUs read and write by vectors if D and aux allow it. Every number
// is exact.
void check_vectors(Library& library, int64_t block)
{
    for (unsigned form = 0; form < 6; ++form) {
        GemmCase g = gate_case(form, 150, 192, 64, block);
        g.data = Data::Integers;
        g.aligned = true;
        g.activation = form % 2 ? HGEMM_ACTIVATION_RELU : HGEMM_ACTIVATION_NONE;
        g.gate.slope = 0;
        g.aux = form > 2;
        expect_gate(library, g);
        g.aligned = false;
        g.d.gap = form == 0;
        g.d.shift = form == 1;
        g.aux_place.gap = form == 4;
        g.aux_place.shift = form == 5;
        expect_gate(library, g);
    }
}

}  // namespace

void check_gates(Library& library)
{
    for (unsigned form = 0; form < 16; ++form) {
        if (thinning() > 1 && form % 5 != 0)
            continue;
        check_blocks(library, form);
        for (const int64_t block : {0, 8, 3, 1}) {
            if (thinning() > 1 && (form / 5 + static_cast<unsigned>(block)) % 2 != 0)
                continue;
            check_epilogues(library, form, block);
            check_batches(library, form, block);
        }
    }
    for (const int64_t block : {0, 32, 1})
        check_vectors(library, block);
    for (const hgemm_activation_t activation : activations)
        for (const hgemm_gate_t& gate : numbers) {
            GemmCase g = gate_case(1, 20, 48, 200);
            g.type_d = HGEMM_F32;
            g.activation = activation;
            set_numbers(g, gate);
            expect_gate(library, g);
        }
}

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float specials[] = {NAN, inf, -inf, 0.0f, -0.0f, 1.5f, -1.5f, 0x1p100f, -0x1p100f};
constexpr int64_t count = std::size(specials);
constexpr int64_t length_of_specials = 88;  // all pairs, and some again; a multiple of 8
static_assert(length_of_specials >= count * count);

// Of the pairs of special numbers that lie along a row of the product, the one at a place in it.
double special(int64_t block, int64_t place)
{
    const int64_t pair = place / (2 * block) * block + place % block;
    return specials[(place / block % 2 == 0 ? pair : pair / count) % count];
}

// By products with 1, so that all kernels with gates serve them, and D's type is that of A and B or fp32.
void check_special_products(Library& library, GemmCase g, hgemm_type_t type_d)
{
    g.transb = HGEMM_TRANS;
    g.k = 64;
    g.type_d = type_d;
    g.aligned = true;
    expect_gate(library, g, [&](Trial& trial) {
        trial.fill_a([](int64_t, int64_t, int64_t p) { return p == 0 ? 1.0 : 0.0; });
        trial.fill_b([block = g.gate.block](int64_t, int64_t p, int64_t j) {
            return p == 0 ? special(block, j) : 0.0;
        });
    });
}

// By C alone, which keeps the signs of zeros.
void check_special_sums(Library& library, GemmCase g)
{
    g.type_c = g.type_d = HGEMM_F32;
    g.in_place = false;
    const Trial::Generator value = [block = g.gate.block](int64_t, int64_t, int64_t j) {
        return special(block, j);
    };
    g.k = 0;
    g.beta = 1;
    expect_gate(library, g, [&](Trial& trial) { trial.fill_c(value); });
    // Without an offset a zero has the sign of its factors. relu makes zeros of its own.
    if (g.gate.offset != 0 || g.activation == HGEMM_ACTIVATION_RELU)
        return;
    Trial trial(g, library.memory());
    trial.fill_c(value);
    trial.upload();
    ASSERT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    trial.download();
    for (int64_t j = 0; j < g.n / 2; ++j) {
        const int64_t place = place_of_gate(g.gate.block, j);
        const double gate = special(g.gate.block, place),
                     other = special(g.gate.block, place + g.gate.block);
        const double got = trial.result(0, 0, j);
        EXPECT_TRUE(got != 0 || std::signbit(got) == (std::signbit(gate) != std::signbit(other)))
            << g.print() << ": " << gate << ", " << other << " -> " << got;
    }
}

}  // namespace

void check_gate_values(Library& library, bool has_c)
{
    const std::vector<hgemm_gate_t> gates{numbers[0], numbers[1], numbers[2], numbers[3], steepest};
    for (const hgemm_activation_t activation : activations)
        for (const hgemm_gate_t& gate : gates)
            for (const int64_t block : {int64_t{1}, length_of_specials}) {
                const bool is_by_erf = activation == HGEMM_ACTIVATION_GELU_ERF;
                if ((gate.slope != 0 && activation != HGEMM_ACTIVATION_SILU) || (is_by_erf && !has_c))
                    continue;
                GemmCase g = gate_case(1, 3, length_of_specials, 64, block);
                g.activation = activation;
                set_numbers(g, gate);
                g.data = Data::Integers;
                g.type_ab = HGEMM_BF16;
                check_special_products(library, g, HGEMM_BF16);
                if (!has_c)
                    continue;
                check_special_products(library, g, HGEMM_F32);
                check_special_sums(library, g);
            }
}

}  // namespace hg::test
