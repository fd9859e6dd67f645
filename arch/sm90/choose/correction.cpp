#include "arch/sm90/choose/correction.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace hg::sm90 {
namespace {

// Units of the hidden layer; fitted numbers of each kernel, which are inputs as features are.
constexpr int units = 64, traits = 8;

struct KernelCorrection {
    std::string_view name;
    float numbers[traits];
};

struct Network {
    float feature_weights[Feature::count][units];
    float trait_weights[traits][units];
    float biases[units];
    float shares[units];                   // weights of the output
    KernelCorrection kernels[gemm_count];  // by name; fewer where some have none
};

constexpr Network tn =
#include "arch/sm90/choose/h200/network_tn.def"
    ;
constexpr Network other =
#include "arch/sm90/choose/h200/network_other.def"
    ;

// What another card has in place of the network's own.
struct CardCorrection {
    float biases[units];
    KernelCorrection kernels[gemm_count];
};

constexpr CardCorrection h100_tn =
#include "arch/sm90/choose/h100/network_tn.def"
    ;
constexpr CardCorrection h100_other =
#include "arch/sm90/choose/h100/network_other.def"
    ;

// A network's numbers for one card; entries[kernel] is an index in `kernels`, or -1.
struct Fit {
    const float (&biases)[units];
    const KernelCorrection (&kernels)[gemm_count];
    EntryOfKernel entries;
};

// [is it an H100?][is it TN?]
constexpr Fit fits[2][2] = {
    {{other.biases, other.kernels, entries_by_kernel(other.kernels, Missing::None)},
     {tn.biases, tn.kernels, entries_by_kernel(tn.kernels, Missing::None)}},
    {{h100_other.biases, h100_other.kernels, entries_by_kernel(h100_other.kernels, Missing::None)},
     {h100_tn.biases, h100_tn.kernels, entries_by_kernel(h100_tn.kernels, Missing::None)}},
};

float log_of(double value) { return static_cast<float>(std::log(value)); }

// By what factor a candidate takes longer than predicted. `sums` are the inputs of the hidden layer.
double correction_factor(const Network& network, const float (&sums)[units])
{
    float log_factor = 0;
    for (int unit = 0; unit < units; ++unit)
        log_factor += network.shares[unit] * std::max(sums[unit], 0.0f);
    return std::exp(static_cast<double>(log_factor));
}

void add(float (&sums)[units], float value, const float (&weights)[units])
{
    for (int unit = 0; unit < units; ++unit)
        sums[unit] += value * weights[unit];
}

}  // namespace

void describe(const Problem& p, const Config& c, const Candidate& candidate, Pdl pdl, double us,
              int sm_count, float (&f)[Feature::count])
{
    const Mma mma(p, candidate.swap_ab);
    const auto m = static_cast<double>(mma.m), n = static_cast<double>(mma.n);
    const auto problems = static_cast<double>(p.batch);
    const double side_m = c.tile_m * c.cluster_m, side_n = c.tile_n * c.cluster_n;
    const Occupancy occupancy = occupancy_of(c, candidate, sm_count);
    const auto clusters = static_cast<double>(candidate.launched_clusters());
    const auto resident =
        static_cast<double>(resident_clusters(c.ctas_per_sm, c.cluster_ctas(candidate.split), sm_count));
    const bool a_panels = major_of(mma.a) == Major::MN, b_panels = major_of(mma.b) == Major::MN;
    f[Feature::predicted] = log_of(us);
    f[Feature::swap_ab] = candidate.swap_ab;
    f[Feature::slices] = log_of(candidate.split);
    f[Feature::stream_k] = candidate.stream_k;
    f[Feature::pdl_off] = candidate.pdl_off;
    f[Feature::late] = pdl == Pdl::Late;
    f[Feature::a_rows] = log_of(candidate.swap_ab ? m : m * problems);
    f[Feature::b_rows] = log_of(candidate.swap_ab ? n * problems : n);
    f[Feature::depth] = log_of(static_cast<double>(p.k));
    f[Feature::all_clusters] = log_of(clusters);
    f[Feature::k_tiles] = log_of(std::ceil(std::ceil(static_cast<double>(p.k) / tile_k) / candidate.split));
    f[Feature::waves] = log_of(clusters / resident);
    f[Feature::whole_waves] = log_of(occupancy.waves);
    f[Feature::filled] = static_cast<float>(occupancy.filled);
    f[Feature::load] = log_of(occupancy.load);
    f[Feature::used_m] = log_of(m / (std::ceil(m / side_m) * side_m));
    f[Feature::used_n] = log_of(n / (std::ceil(n / side_n) * side_n));
    f[Feature::a_misalignment] = static_cast<float>(misalignment(mma.a));
    f[Feature::b_misalignment] = static_cast<float>(misalignment(mma.b));
    f[Feature::a_panels] = a_panels;
    f[Feature::b_panels] = b_panels;
    f[Feature::used_panels] =
        b_panels ? log_of(static_cast<double>(c.tile_n) / round_up(c.tile_n, span_elements)) : 0.0f;
    f[Feature::ctas] = log_of(occupancy.ctas / sm_count);
}

Card card_of(const Device& device)
{
    constexpr int64_t max_h100 = 4'200'000'000'000;  // bytes a second; an H100 has 3.35 TB/s, an H200 4.9
    return device.memory_bandwidth > 0 && device.memory_bandwidth < max_h100 ? Card::H100 : Card::H200;
}

bool has_correction(const Problem& p, int sm_count)
{
    return sm_count == max_remapped_clusters && !is_low_intensity_batch(p);
}

Corrected corrected_us(const Problem& p, const Config& c, const Candidate& candidate, double us,
                       int sm_count, Card card)
{
    const bool is_tn = major_of(p.a) == Major::K && major_of(p.b) == Major::K;
    const Network& network = is_tn ? tn : other;
    const Fit& fit = fits[card == Card::H100][is_tn];
    const int entry = fit.entries[candidate.kernel];
    if (entry < 0)
        return {us, us};
    float features[Feature::count];
    describe(p, c, candidate, candidate.pdl_off ? Pdl::Off : Pdl::Early, us, sm_count, features);
    float sums[units];
    std::copy_n(fit.biases, units, sums);
    for (int i = 0; i < Feature::count; ++i)
        add(sums, features[i], network.feature_weights[i]);
    for (int i = 0; i < traits; ++i)
        add(sums, fit.kernels[entry].numbers[i], network.trait_weights[i]);
    const double early = us * correction_factor(network, sums);
    add(sums, 1.0f, network.feature_weights[Feature::late]);
    return {early, us * correction_factor(network, sums)};
}

}  // namespace hg::sm90
