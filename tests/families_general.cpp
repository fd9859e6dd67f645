// Families on arbitrary data, held to the error bound, and those about memory: batches, epilogues, fences.
#include "conformance.hpp"

#include <array>
#include <cmath>
#include <initializer_list>

namespace hg::test {
namespace {

constexpr Data real_data[] = {Data::Normal, Data::Wide, Data::Cancelling};

void draw_form(Random& random, GemmCase& g)
{
    g.layout = random.pick(layouts);
    g.transa = random.pick(ops);
    g.transb = random.pick(ops);
    g.aligned = random.one_in(2);
    g.seed = random.bits();
}

void draw_sizes(Random& random, GemmCase& g, int64_t limit)
{
    g.m = 1 + random.below(limit);
    g.n = 1 + random.below(limit);
    g.k = 1 + random.below(limit);
}

// Where the activations come close to 0 they are as exact as elsewhere.
void small_activations(Suite& suite)
{
    for (const hgemm_activation_t activation :
         {HGEMM_ACTIVATION_GELU_TANH, HGEMM_ACTIVATION_GELU_ERF, HGEMM_ACTIVATION_SILU}) {
        GemmCase g;
        g.type_d = HGEMM_F32;
        g.m = g.n = g.k = 20;
        g.alpha = 0;
        g.beta = 1;
        g.in_place = false;
        g.activation = activation;
        suite.check(g, [](Trial& trial) {
            trial.fill_c(
                [](int64_t, int64_t i, int64_t j) { return static_cast<double>(20 * i + j) / -32; });
        });
    }
}

// Row i has the i-th of -infinity, infinity, NaN, 1 and -1 before the activation: from A, from the bias,
// from C, or, where the type has the range, by an overflow of the sum.
void check_limits(Suite& suite, GemmCase g)
{
    const auto special = [](int64_t i) {
        return std::array{-double{INFINITY}, double{INFINITY}, double{NAN}, 1.0, -1.0}[i % 5];
    };
    // One product a sum; the others are 0.
    const auto first_of_k = [](const auto& value) {
        return [value](int64_t, int64_t i, int64_t p) { return p == 0 ? value(i) : 0.0; };
    };
    const auto ones = [](int64_t, int64_t p, int64_t) { return p == 0 ? 1.0 : 0.0; };
    suite.check(g, [&](Trial& trial) {
        trial.fill_a(first_of_k(special));
        trial.fill_b(ones);
    });
    if (g.type_ab == HGEMM_BF16)
        suite.check(g, [&](Trial& trial) {
            trial.fill_a([](int64_t, int64_t i, int64_t) { return i % 2 == 0 ? -0x1p127 : 0x1p127; });
            trial.fill_b([](auto...) { return 2; });
        });
    g.bias = HGEMM_BIAS_M;
    suite.check(
        g, [&](Trial& trial) { trial.fill_bias([&](int64_t, int64_t, int64_t i) { return special(i); }); });
    g.bias = HGEMM_BIAS_NONE;
    g.beta = 1;
    suite.check(
        g, [&](Trial& trial) { trial.fill_c([&](int64_t, int64_t i, int64_t) { return special(i); }); });
}

void special_activations(Suite& suite)
{
    for (int activation = HGEMM_ACTIVATION_NONE; activation <= HGEMM_ACTIVATION_SILU; ++activation)
        for (const hgemm_type_t type_ab : halves)
            for (const hgemm_type_t type_d : types)
                for (const int64_t size : {1, 24}) {
                    GemmCase g;
                    g.layout = size == 1 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
                    g.type_ab = type_ab;
                    g.type_c = g.type_d = g.bias_type = type_d;
                    g.activation = static_cast<hgemm_activation_t>(activation);
                    g.aux = true;
                    g.m = 20;
                    g.n = g.k = size;
                    g.aligned = size > 1;
                    check_limits(suite, g);
                }
}

}  // namespace

void random_data(Suite& suite)
{
    Random random(21);
    for (int round = 0; round < 12; ++round)
        for (const Data data : real_data)
            for (const hgemm_type_t type_ab : halves)
                for (const hgemm_type_t type_d : types) {
                    GemmCase g;
                    draw_form(random, g);
                    draw_sizes(random, g, round < 8 ? 150 : 300);
                    g.type_ab = type_ab;
                    g.type_c = g.type_d = type_d;
                    g.data = data;
                    g.alpha = random.one_in(2) ? 1 : 0.7f;
                    g.beta = random.one_in(2) ? 0 : -1.3f;
                    g.a.gap = random.below(3) * 5;
                    g.b.shift = random.below(9);
                    suite.check(g);
                }
}

// Few elements with a long k: where a lost product or a narrow sum shows, and where a kernel may slice k.
void long_sums(Suite& suite)
{
    Random random(22);
    for (const int64_t k : {1000, 4096, 10'007, 33'000})
        for (const Data data : real_data)
            for (const hgemm_type_t type_ab : halves) {
                GemmCase g;
                draw_form(random, g);
                g.m = 1 + random.below(70);
                g.n = 1 + random.below(70);
                g.k = k;
                g.type_ab = type_ab;
                g.type_d = random.one_in(2) ? HGEMM_F32 : type_ab;
                g.data = data;
                suite.check(g);
            }
}

void batches(Suite& suite)
{
    Random random(23);
    for (const Batch batch : {Batch::Strided, Batch::Arrays})
        for (const int64_t step_a : {1, 0, 7, -1, -4})
            for (const int64_t step_b : {1, 0, 2, -8})
                for (const hgemm_type_t type_d : types)
                    for (const int64_t count : {0, 1, 3, 5}) {
                        GemmCase g;
                        draw_form(random, g);
                        draw_sizes(random, g, count == 5 ? 140 : 40);
                        g.type_ab = random.pick(halves);
                        g.type_d = type_d;
                        g.type_c = random.pick(types);
                        g.in_place = random.one_in(2);
                        g.beta = random.one_in(2) ? 0 : 1;
                        g.batch = batch;
                        g.batch_count = count;
                        g.a.step = step_a;
                        g.b.step = step_b;
                        g.c.step = random.one_in(3) ? 0 : 3;
                        g.d.step = random.one_in(2) ? 1 : 10;
                        g.d.gap = random.below(3);
                        g.device_scalars = random.one_in(8);
                        g.data = random.one_in(4) ? Data::Normal : Data::Integers;
                        suite.check(g);
                    }
}

void epilogues(Suite& suite)
{
    Random random(24);
    for (const hgemm_bias_t bias : {HGEMM_BIAS_NONE, HGEMM_BIAS_M, HGEMM_BIAS_N})
        for (int activation = HGEMM_ACTIVATION_NONE; activation <= HGEMM_ACTIVATION_SILU; ++activation)
            for (const bool aux : {false, true})
                for (const hgemm_type_t type_ab : halves)
                    for (const hgemm_type_t type_d : types) {
                        GemmCase g;
                        draw_form(random, g);
                        draw_sizes(random, g, 140);
                        if (random.one_in(3))
                            g.n = g.m;
                        g.type_ab = type_ab;
                        g.type_c = g.type_d = type_d;
                        g.bias = bias;
                        g.bias_type = random.pick(types);
                        g.activation = static_cast<hgemm_activation_t>(activation);
                        g.aux = aux;
                        g.aux_place = {random.below(4), random.below(4), 2};
                        g.data = random.one_in(3) ? Data::Integers : Data::Normal;
                        g.alpha = random.one_in(4) ? 0 : 0.25f;
                        g.beta = random.one_in(2) ? 0 : 0.5f;
                        if (random.one_in(4)) {
                            g.batch = Batch::Strided;
                            g.batch_count = 3;
                            g.bias_step = random.below(3);
                            g.a.step = g.b.step = g.d.step = 1;
                        }
                        suite.check(g);
                    }
    small_activations(suite);
    special_activations(suite);
}

// The last element of every operand is the last that may be touched.
void fences(Suite& suite)
{
    constexpr int64_t steps[] = {1, 0, -1, 5};
    Random random(25);
    for (const hgemm_layout_t layout : layouts)
        for (const hgemm_op_t transa : ops)
            for (const hgemm_op_t transb : ops)
                for (int round = 0; round < 6; ++round) {
                    GemmCase g;
                    draw_sizes(random, g, round % 2 == 0 ? 20 : 200);
                    // The end of an aligned matrix can lie at the fence only if its lines are full.
                    g.aligned = round % 3 == 0;
                    if (g.aligned)
                        for (int64_t* size : {&g.m, &g.n, &g.k})
                            *size = (*size + 7) / 8 * 8;
                    g.layout = layout;
                    g.transa = transa;
                    g.transb = transb;
                    g.type_ab = random.pick(halves);
                    g.type_d = random.pick(types);
                    g.beta = random.one_in(2) ? 0 : 1;
                    g.a.gap = g.b.gap = random.below(2) * 8;
                    if (random.one_in(3)) {
                        g.batch = random.one_in(4) ? Batch::Arrays : Batch::Strided;
                        g.batch_count = 3;
                        g.a.step = random.pick(steps);
                        g.b.step = random.pick(steps);
                        g.d.step = 1;
                    }
                    g.guard = Guard::Fence;
                    g.seed = random.bits();
                    suite.check(g);
                }
}

}  // namespace hg::test
