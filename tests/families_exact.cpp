// Families whose sums are exact in fp32 whatever their order, so that every bit of the result is known.
#include "conformance.hpp"

#include <cmath>
#include <initializer_list>

namespace hg::test {
namespace {

// Every layout, pair of transposes, operand type and result type.
template <typename Work>
void for_each_combination_of(bool aligned, Work work)
{
    GemmCase g;
    g.aligned = aligned;
    for (const hgemm_layout_t layout : layouts)
        for (const hgemm_op_t transa : ops)
            for (const hgemm_op_t transb : ops)
                for (const hgemm_type_t type_ab : halves)
                    for (const hgemm_type_t type_d : types) {
                        g.layout = layout;
                        g.transa = transa;
                        g.transb = transb;
                        g.type_ab = type_ab;
                        g.type_c = g.type_d = type_d;
                        work(g);
                    }
}

template <typename Work>
void for_each_combination(Work work)
{
    for_each_combination_of(false, work);
    for_each_combination_of(true, work);
}

int64_t draw_size(Random& random)
{
    // Around the sizes of vectors, tensor-core instructions and tiles.
    static constexpr int64_t marked[] = {1,  2,  3,   5,   7,   8,   9,   15,  16,  17,  31,  33, 63,
                                         64, 65, 100, 127, 128, 129, 130, 200, 255, 256, 257, 300};
    return random.one_in(4) ? 1 + random.below(300) : random.pick(marked);
}

Place draw_place(Random& random)
{
    static constexpr int64_t gaps[] = {0, 0, 0, 1, 8, 56, 1000};
    static constexpr int64_t shifts[] = {0, 0, 0, 1, 2, 4, 8, 3};
    return {random.pick(gaps), random.pick(shifts), 1};
}

void draw_scalars(Random& random, GemmCase& g)
{
    static constexpr float alphas[] = {1, 1, 1, -1, 0.5f, 2, 0};
    static constexpr float betas[] = {0, 0, 0, 1, -1, 0.5f, 2};
    g.alpha = random.pick(alphas);
    g.beta = random.pick(betas);
    g.device_scalars = random.one_in(8);
}

// Where nothing is multiplied, beta * C keeps the sign of a zero, and with beta = 1 C is not even written
// to.
void keep_signs(Suite& suite, GemmCase g)
{
    const auto zeros = [](Trial& trial) {
        trial.fill_c([](int64_t, int64_t i, int64_t j) { return j % 3 == 1 ? NAN : i % 2 ? -0.0 : 0.0; });
    };
    for (const float beta : {1.0f, -2.0f}) {
        g.beta = beta;
        g.alpha = 0;
        g.k = 33;
        suite.check(g, zeros);
        g.alpha = 1;
        g.k = 0;
        suite.check(g, zeros);
    }
}

}  // namespace

// All small sizes, empty ones too.
void sizes(Suite& suite)
{
    Random random(11);
    const auto small = {0, 1, 2, 3, 5, 9};
    for (const int m : small)
        for (const int n : small)
            for (const int k : small)
                for (const hgemm_op_t transa : ops)
                    for (const hgemm_op_t transb : ops) {
                        GemmCase g;
                        g.layout = random.pick(layouts);
                        g.transa = transa;
                        g.transb = transb;
                        g.type_ab = random.pick(halves);
                        g.type_d = random.pick(types);
                        g.m = m;
                        g.n = n;
                        g.k = k;
                        draw_scalars(random, g);
                        g.a.gap = g.b.gap = g.d.gap = random.below(2);
                        g.aligned = random.one_in(2);
                        g.seed = random.bits();
                        suite.check(g);
                    }
}

void combinations(Suite& suite)
{
    Random random(12);
    for (int round = 0; round < 15; ++round)
        for_each_combination([&](GemmCase g) {
            do {
                g.m = draw_size(random);
                g.n = draw_size(random);
                g.k = draw_size(random);
            } while (g.m * g.n * g.k > 6'000'000);
            draw_scalars(random, g);
            g.a = draw_place(random);
            g.b = draw_place(random);
            g.c = draw_place(random);
            g.d = draw_place(random);
            if (g.transa == HGEMM_TRANS && random.one_in(8))
                g.transa = HGEMM_CONJ_TRANS;
            if (g.transb == HGEMM_TRANS && random.one_in(8))
                g.transb = HGEMM_CONJ_TRANS;
            g.in_place = !random.one_in(3);
            g.type_c = random.pick(types);
            g.seed = random.bits();
            suite.check(g);
        });
}

// Lines that end inside a 16-byte unit while every line begins on one, in each matrix: what vectors, TMA
// boxes and their stores must cut off exactly.
void ragged_lines(Suite& suite)
{
    uint64_t seed = 13;
    for_each_combination([&](GemmCase g) {
        g.aligned = true;
        for (Place* place : {&g.a, &g.b, &g.d})
            place->gap = 8;
        for (int length = 1; length <= 17; ++length)
            for (const int64_t m : {1, 64 + length}) {
                g.m = m;
                g.n = 128 + length;
                g.k = 32 + length;
                g.seed = seed++;
                suite.check(g);
            }
    });
}

// Results between two numbers of the output type: ties, and neighbours of ties that a second rounding
// or a narrower sum would take for ties.
void rounding(Suite& suite)
{
    for_each_combination([&](GemmCase g) {
        // Row i, column j is base + i + j + delta: integers just too long for the type, and a part of one
        // that fp32 still holds.
        const double base = g.type_d == HGEMM_F32 ? 0x1p18 : g.type_d == HGEMM_F16 ? 2048 : 256;
        for (const double delta : {0.0, 0x1p-4, 0x1p-1, -0x1p-4}) {
            g.m = 40;
            g.n = 17;
            g.k = 40;
            g.a.gap = 3;
            suite.check(g, [&](Trial& trial) {
                const double root = std::exp2(std::floor(std::log2(base) / 2));
                trial.fill_a([&](int64_t, int64_t i, int64_t p) -> double {
                    return p == 0 ? root : p == 1 ? i : p == 2 ? 1 : p == 39 ? delta : 0;
                });
                trial.fill_b([&](int64_t, int64_t p, int64_t j) -> double {
                    return p == 0 ? base / root : p == 2 ? j : 1;
                });
            });
        }
    });
}

void special_values(Suite& suite)
{
    const auto scaled_integers = [](uint64_t seed, double scale) {
        return [=](int64_t, int64_t i, int64_t j) {
            return scale * Trial::draw(Data::Integers, seed, static_cast<uint64_t>(i * 1000 + j));
        };
    };
    const auto with = [&](GemmCase g, double scale_a, double scale_b) {
        suite.check(g, [&](Trial& trial) {
            trial.fill_a(scaled_integers(1, scale_a));
            trial.fill_b(scaled_integers(2, scale_b));
        });
    };
    // NaN or an infinity in one element of A and one of B, met by zeros, finite numbers and infinities.
    const auto planted = [&](GemmCase g, double in_a, double in_b) {
        const auto a = scaled_integers(3, 1), b = scaled_integers(4, 1);
        suite.check(g, [&](Trial& trial) {
            trial.fill_a(
                [&](int64_t z, int64_t i, int64_t p) { return i == 3 && p == 7 ? in_a : a(z, i, p); });
            trial.fill_b(
                [&](int64_t z, int64_t p, int64_t j) { return j == 5 && p == 7 ? in_b : b(z, p, j); });
        });
    };
    for_each_combination([&](GemmCase g) {
        g.m = 33;
        g.n = 72;
        g.k = 24;
        for (const double in_a : {1.0, double{NAN}, double{INFINITY}, -double{INFINITY}})
            for (const double in_b : {1.0, double{NAN}, double{INFINITY}, -double{INFINITY}})
                planted(g, in_a, in_b);
        g.beta = 1;
        planted(g, INFINITY, 1);
        suite.check(g, [](Trial& trial) {
            trial.fill_c([](int64_t, int64_t i, int64_t j) {
                return i == 2 ? NAN : j == 3 ? INFINITY : 1;
            });
        });
        g.beta = 0;
        const double tiny = format_of(g.type_ab).smallest();
        with(g, tiny, g.type_ab == HGEMM_F16 ? 1 : 0x1p20);  // subnormal operands
        with(g, tiny, 1);  // and a subnormal result, where D has the range
        with(g, 1, tiny);
        const double huge = g.type_ab == HGEMM_F16 ? 0x1p14 : 0x1p60;
        with(g, huge, g.type_ab == HGEMM_F16 ? 0.5 : huge);  // overflows fp16, not fp32
        g.alpha = 0x1p60f;
        if (g.type_ab == HGEMM_BF16)
            with(g, huge, huge);  // overflows fp32 in the epilogue
        // 65504 ... 65539: from 65520 on fp16 rounds to infinity.
        g.alpha = 1;
        suite.check(g, [](Trial& trial) {
            trial.fill_a([](int64_t, int64_t i, int64_t p) -> double {
                return p == 0 ? 252 : p < 3 ? i % 8 : p == 3 ? 992 : 0;
            });
            trial.fill_b([](int64_t, int64_t p, int64_t) { return p == 0 ? 256 : p == 1 ? 4 : 1; });
        });
    });
}

// What BLAS says is not read may hold anything.
void unread_operands(Suite& suite)
{
    Random random(15);
    for_each_combination([&](GemmCase g) {
        for (const bool in_place : {true, false})
            for (const bool device_scalars : {false, true}) {
                g.m = 1 + random.below(140);
                g.n = 1 + random.below(140);
                g.k = 1 + random.below(140);
                g.in_place = in_place;
                g.device_scalars = device_scalars;
                g.seed = random.bits();
                const auto poison_ab = [](Trial& trial) {
                    trial.poison_a();
                    trial.poison_b();
                };
                g.alpha = 1;
                g.beta = 0;
                suite.check(g, [](Trial& trial) { trial.poison_c(); });
                g.alpha = 0;
                suite.check(g, [&](Trial& trial) {
                    poison_ab(trial);
                    trial.poison_c();
                });
                g.beta = 2;
                suite.check(g, poison_ab);
                if (device_scalars) {  // more k than any ring of stages holds: who loads must not wait
                    g.k = 1100;
                    suite.check(g, poison_ab);
                }
                g.alpha = 1;
                g.k = 0;
                suite.check(g);
                g.beta = 0;
                suite.check(g, [](Trial& trial) { trial.poison_c(); });
                keep_signs(suite, g);
                for (int64_t* size : {&g.m, &g.n}) {
                    const int64_t was = *size;
                    *size = 0;
                    suite.check(g);
                    *size = was;
                }
            }
    });
}

// Products that sum to 2048 first and then grow by 1 at a time: 2112 in fp32, 2048 in fp16.
void accumulator_width(Suite& suite)
{
    for_each_combination([&](GemmCase g) {
        for (const int64_t step : {16, 32}) {
            g.m = 70;
            g.n = 130;
            g.k = 65 * step;
            suite.check(g, [step](Trial& trial) {
                trial.fill_a([step](int64_t, int64_t, int64_t p) {
                    return p < step ? 2048.0 / static_cast<double>(step) : p % step == 0 ? 1 : 0;
                });
                trial.fill_b([](auto...) { return 1; });
            });
        }
    });
}

}  // namespace hg::test
