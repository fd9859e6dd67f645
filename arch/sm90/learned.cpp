#include "arch/sm90/learned.hpp"

#include "arch/common/pack.hpp"
#include "arch/sm90/rows.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace hg::sm90 {
namespace {

// Hidden units, and numbers that each kernel has beside its features.
constexpr int units = 64, traits = 8;

struct LearnedKernel {
    std::string_view name;
    float numbers[traits];
};

struct Network {
    float feature_weights[Feature::count][units];
    float trait_weights[traits][units];
    float biases[units];
    float shares[units];  // of the units in the answer
    LearnedKernel kernels[row_count];
};

constexpr Network along_k =
#include "arch/sm90/learned_along_k.def"
    ;
constexpr Network others =
#include "arch/sm90/learned_others.def"
    ;

// What an H100 has in the place of the networks' own.
struct Numbers {
    float biases[units];
    LearnedKernel kernels[row_count];
};

constexpr Numbers h100_along_k =
#include "arch/sm90/learned_h100_along_k.def"
    ;
constexpr Numbers h100_others =
#include "arch/sm90/learned_h100_others.def"
    ;

static_assert(names_all_rows(along_k.kernels) && names_all_rows(others.kernels) &&
                  names_all_rows(h100_along_k.kernels) && names_all_rows(h100_others.kernels),
              "learned_*.def and kernels.def have different rows");

float log_of(double value) { return static_cast<float>(std::log(value)); }

// By what factor a way takes longer than predicted.
double answer(const Network& network, const float (&sums)[units])
{
    float off = 0;
    for (int unit = 0; unit < units; ++unit)
        off += network.shares[unit] * std::max(sums[unit], 0.0f);
    return std::exp(static_cast<double>(off));
}

void add(float (&sums)[units], float value, const float (&weights)[units])
{
    for (int unit = 0; unit < units; ++unit)
        sums[unit] += value * weights[unit];
}

}  // namespace

void describe(const Problem& p, const Config& c, const Way& way, Overlap overlap, double us, int sm_count,
              float (&f)[Feature::count])
{
    const auto x = static_cast<double>(way.swapped ? p.n : p.m);
    const auto y = static_cast<double>(way.swapped ? p.m : p.n);
    const auto problems = static_cast<double>(p.batch);
    const double x_side = c.x * c.cluster, y_side = c.y * c.across;
    const Placement at = place(c, way, sm_count);
    const auto clusters = static_cast<double>(way.launched());
    const auto at_once =
        static_cast<double>(clusters_held(c.residents, c.cluster_ctas(way.split), sm_count));
    const Operand &x_operand = way.swapped ? p.b : p.a, &y_operand = way.swapped ? p.a : p.b;
    const bool x_panels = major_of(x_operand) == Major::MN, y_panels = major_of(y_operand) == Major::MN;
    f[Feature::predicted] = log_of(us);
    f[Feature::swapped] = way.swapped;
    f[Feature::slices] = log_of(way.split);
    f[Feature::streams] = way.streams;
    f[Feature::alone] = way.alone;
    f[Feature::late] = overlap == Overlap::Late;
    f[Feature::x_rows] = log_of(way.swapped ? x : x * problems);
    f[Feature::y_rows] = log_of(way.swapped ? y * problems : y);
    f[Feature::depth] = log_of(static_cast<double>(p.k));
    f[Feature::all_clusters] = log_of(clusters);
    f[Feature::k_tiles] = log_of(std::ceil(std::ceil(static_cast<double>(p.k) / tile_k) / way.split));
    f[Feature::waves] = log_of(clusters / at_once);
    f[Feature::whole_waves] = log_of(at.waves);
    f[Feature::filled] = static_cast<float>(at.filled);
    f[Feature::load] = log_of(at.load);
    f[Feature::used_x] = log_of(x / (std::ceil(x / x_side) * x_side));
    f[Feature::used_y] = log_of(y / (std::ceil(y / y_side) * y_side));
    f[Feature::x_straddles] = static_cast<float>(straddle(x_operand));
    f[Feature::y_straddles] = static_cast<float>(straddle(y_operand));
    f[Feature::x_panels] = x_panels;
    f[Feature::y_panels] = y_panels;
    f[Feature::used_panels] =
        y_panels ? log_of(static_cast<double>(c.y) / round_up(c.y, span_elements)) : 0.0f;
    f[Feature::ctas] = log_of(at.ctas / sm_count);
}

Card card_of(const Device& device)
{
    constexpr int64_t between = 4'200'000'000'000;  // 3.35 and 4.9 TB/s
    return device.memory_bandwidth > 0 && device.memory_bandwidth < between ? Card::H100 : Card::H200;
}

bool is_learned(const Problem& p, int sm_count) { return sm_count == max_numbers && !is_light_batch(p); }

Learned learned_us(const Problem& p, const Config& c, const Way& way, double us, int sm_count, Card card)
{
    float features[Feature::count];
    describe(p, c, way, way.alone ? Overlap::None : Overlap::Early, us, sm_count, features);
    const bool both_along_k = major_of(p.a) == Major::K && major_of(p.b) == Major::K;
    const Network& network = both_along_k ? along_k : others;
    const Numbers& h100 = both_along_k ? h100_along_k : h100_others;
    const bool is_h100 = card == Card::H100;
    float sums[units];
    std::copy_n(is_h100 ? h100.biases : network.biases, units, sums);
    for (int i = 0; i < Feature::count; ++i)
        add(sums, features[i], network.feature_weights[i]);
    const LearnedKernel& kernel = (is_h100 ? h100.kernels : network.kernels)[way.row];
    for (int i = 0; i < traits; ++i)
        add(sums, kernel.numbers[i], network.trait_weights[i]);
    const double early = us * answer(network, sums);
    add(sums, 1.0f, network.feature_weights[Feature::late]);
    return {early, us * answer(network, sums)};
}

}  // namespace hg::sm90
