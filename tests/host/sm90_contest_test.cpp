// White-box tests of how sm90 finds its choice without an exact prediction of every candidate.
#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/contest.hpp"
#include "arch/sm90/choose/model/lanes.hpp"
#include "arch/sm90/choose/model/output_costs.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hg {
namespace {

using namespace sm90;

HGEMM_CLONES void power_and_log(const float* x, double exponent, float* powers, float* logs)
{
    power(Lanes::load(x), exponent).store(powers);
    log_of(Lanes::load(x)).store(logs);
}

TEST(Sm90Contest, PowersAndLogarithmsAreGoodToFourDigits)
{
    for (double base = 1e-5; base < 1e5; base *= 1.003) {
        float x[Lanes::count], powers[Lanes::count], logs[Lanes::count];
        for (int lane = 0; lane < Lanes::count; ++lane)
            x[lane] = static_cast<float>(base * (1 + 0.1 * lane));
        power_and_log(x, 2.39, powers, logs);
        for (int lane = 0; lane < Lanes::count; ++lane) {
            const double expected = std::pow(static_cast<double>(x[lane]), 2.39);
            EXPECT_NEAR(powers[lane], expected, 5e-5 * expected) << x[lane];
            EXPECT_NEAR(logs[lane], std::log(static_cast<double>(x[lane])), 1e-5) << x[lane];
        }
    }
}

// A product of any size, layout and output, some in batches.
class Products {
public:
    Problem draw()
    {
        const auto size = [&](double most) {
            return static_cast<int64_t>(
                std::exp(std::uniform_real_distribution(0.0, std::log(most))(random_)));
        };
        const auto one_in = [&](unsigned times) { return random_() % times == 0; };
        Problem p = linear_layer(size(16384), 8 * size(2048), 8 * size(2048));
        if (one_in(2))
            p.b = {p.b.ptr, nullptr, 1, p.n, 0};
        if (one_in(3))
            p.d.type = Type::F32;
        if (one_in(4)) {
            p.d.ld += 1;  // rows that are stored element by element
            p.simplify();
        }
        if (one_in(4)) {
            p.c = p.d;
            p.c.type = one_in(2) ? Type::F32 : Type::F16;
            p.beta = 1;
        }
        if (one_in(4)) {
            p.batch = size(64);
            p.a.batch_stride = p.m * p.k;
            p.b.batch_stride = p.n * p.k;
            p.d.batch_stride = p.m * p.d.ld;
            p.c.batch_stride = p.d.batch_stride;
        }
        return p;
    }

    Options draw_options(const Device& device)
    {
        Options o{};
        o.workspace = size_t{64} << 20;
        o.counters = counter_words(device, o.workspace);
        o.pdl = random_() % 4 == 0 ? static_cast<Pdl>(random_() % 4) : Pdl::Free;
        o.mode = random_() % 8 == 0 ? Mode::BatchInvariant : Mode::Default;
        return o;
    }

private:
    std::mt19937_64 random_{1};
};

// All candidates that are legal and worth a prediction.
std::vector<Candidate> candidates_of(const Facts& f, const Options& o, int sm_count)
{
    std::vector<Candidate> candidates;
    for (int kernel = 0; kernel < gemm_count; ++kernel)
        for (const bool swap_ab : {false, true}) {
            const int64_t clusters = count_clusters(f.problem, configs[kernel], swap_ab);
            const Ways legal = legal_ways(f, kernel, swap_ab, clusters, o, sm_count),
                       ways = worthy_ways(f.problem, legal, kernel, clusters, o, sm_count);
            for (const bool pdl_off : {false, true})
                for (int way = 1; way <= stream_k_way; ++way)
                    if (ways_with(pdl_off, ways, kernel, clusters, o, sm_count) >> way & 1)
                        candidates.push_back({kernel, swap_ab, way == stream_k_way ? 1 : way,
                                              way == stream_k_way, clusters, pdl_off});
        }
    return candidates;
}

// Estimates may be off by half of what the contest reckons with.
void expect_near_predictions(const Problem& p, const Options& o, const OrderedEight& eight, const Row& row,
                             const Row& refined, const CorrectionEstimate& correct)
{
    const Facts f(p);
    for (int lane = 0; lane < eight.eight->count; ++lane) {
        const int kernel = row.kernel + lane;
        const Candidate c{kernel,
                          row.swap_ab,
                          row.split,
                          row.stream_k,
                          count_clusters(p, configs[kernel], row.swap_ab),
                          row.pdl_off};
        if (!is_legal(f, c, o, 132))
            continue;
        const double us = predict(f, c, 132).us;
        EXPECT_GE(us, eight.least_us * (1 - 1e-5));
        EXPECT_LE(row.us[lane], us * (1 + 0.5 * Model::tolerance));
        EXPECT_NEAR(refined.us[lane], us, 0.5 * Model::tolerance * us);
        const float times[Lanes::count] = {refined.us[lane]};
        float early[Lanes::count], late[Lanes::count];
        correct({&c, 1}, times, early, late);
        const Corrected exact = corrected_us(p, c, static_cast<float>(us), 132, Card::H100);
        EXPECT_NEAR(early[0], exact.early, 0.5 * CorrectionEstimate::tolerance * exact.early);
        EXPECT_NEAR(late[0], exact.late, 0.5 * CorrectionEstimate::tolerance * exact.late);
    }
}

TEST(Sm90Contest, EstimatesAreNearPredictions)
{
    NEEDS_CUDA_BUILD();
    constexpr float infinite = std::numeric_limits<float>::infinity();
    Products products;
    const KernelFactors factors(h100, kernels);
    for (int i = 0; i < 300; ++i) {
        const Problem p = products.draw();
        const Options o = products.draw_options(h100);
        const Facts f(p);
        const Model model(f, 132);
        const CorrectionEstimate correct(p, 132, Card::H100);
        OrderedEight ordered[2 * eights_count];
        model.order_eights(factors, ordered);
        const Asked asked{max_slices, o.pdl != Pdl::Off, o.pdl == Pdl::Free || o.pdl == Pdl::Off, infinite};
        for (const OrderedEight& next : ordered) {
            Row rows[max_rows];
            const int count = model.estimate(next, asked, factors, rows);
            for (int row = 0; row < count; ++row) {
                Row refined = rows[row];
                if (refined.is_bound)
                    model.refine(refined, infinite, factors);
                expect_near_predictions(p, o, next, rows[row], refined, correct);
            }
        }
    }
}

// What the contest finds is what comparing all candidates finds.
TEST(Sm90Contest, FindsTheBestOfAll)
{
    NEEDS_CUDA_BUILD();
    Products products;
    for (int i = 0; i < 2000; ++i) {
        const Problem p = products.draw();
        const Facts f(p);
        const int sm_count = i % 3 == 0 ? 100 : 132;
        const Options o = products.draw_options(h100);
        const KernelFactors factors(h100, kernels);
        Contest contest(f, o, sm_count, factors);
        const sm90::Choice found = contest.by_model(1.5);
        sm90::Choice best = no_choice;
        const auto add_output = [&](double us, const Candidate& c) {
            const Config& config = configs[c.kernel];
            const double types = output_us(f, config.schedule, config.tile_m, config.tile_n) / c.split;
            us += std::max(1.0, occupancy_of(p, c, sm_count).load) * types;
            if (!f.output.elements)
                return us;
            const double tile =
                0.06 * config.tile_m * config.tile_n / (128.0 * config.consumers_per_tile() * c.split);
            return std::max(us + tile, occupancy_of(p, c, sm_count).waves * tile);
        };
        const std::vector<Candidate> candidates = candidates_of(f, o, sm_count);
        for (const Candidate& c : candidates) {
            Prediction prediction = predict(f, c, sm_count);
            if (!is_low_intensity_batch(p))
                prediction.us = add_output(prediction.us, c);
            if (prediction.us < best.prediction.us)
                best = {c, prediction};
        }
        EXPECT_EQ(found.prediction.us, best.prediction.us);
        EXPECT_EQ(found.candidate.kernel, best.candidate.kernel);
        if (best.prediction.us == no_choice.prediction.us || !has_correction(p, sm_count))
            continue;
        const double limit = 1.5 * best.prediction.us;
        const sm90::Choice corrected = contest.by_network(Card::H100, limit);
        best = no_choice;
        for (const Candidate& c : candidates) {
            const auto us = static_cast<float>(predict(f, c, sm_count).us);
            if ((is_low_intensity_batch(p) ? us : add_output(us, c)) >= limit)
                continue;
            const Corrected times = corrected_us(p, c, us, sm_count, Card::H100);
            const bool may_be_late = !c.pdl_off && configs[c.kernel].is_split();
            const double time = !may_be_late         ? times.early
                                : o.pdl == Pdl::Free ? std::min(times.late, times.early)
                                : o.pdl == Pdl::Late ? times.late
                                                     : times.early;
            if (add_output(time, c) < best.prediction.us)
                best = {c, {add_output(time, c), Pdl::Free}};
        }
        EXPECT_EQ(corrected.prediction.us, best.prediction.us);
        EXPECT_EQ(corrected.candidate.kernel, best.candidate.kernel);
        EXPECT_EQ(corrected.candidate.split, best.candidate.split);
    }
}

}  // namespace
}  // namespace hg
