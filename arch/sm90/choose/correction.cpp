#include "arch/sm90/choose/correction.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/model/lanes.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <string_view>

namespace hg::sm90 {
namespace {

// Units of the hidden layer; fitted numbers of each kernel, which are inputs as features are.
constexpr int units = 64, traits = 8;
static_assert(units == hidden_units);

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

// What the traits of each kernel add to the inputs of the hidden layer.
using SumsOfTraits = std::array<std::array<float, units>, gemm_count>;
consteval SumsOfTraits sums_of_traits(const Network& network, const KernelCorrection (&kernels)[gemm_count])
{
    const EntryOfKernel entries = entries_by_kernel(kernels, Missing::None);
    SumsOfTraits sums{};
    for (int kernel = 0; kernel < gemm_count; ++kernel)
        for (int i = 0; entries[kernel] >= 0 && i < traits; ++i)
            for (int unit = 0; unit < units; ++unit)
                sums[kernel][unit] += kernels[entries[kernel]].numbers[i] * network.trait_weights[i][unit];
    return sums;
}

// [is it an H100?][is it TN?]
constexpr SumsOfTraits all_sums_of_traits[2][2] = {
    {sums_of_traits(other, other.kernels), sums_of_traits(tn, tn.kernels)},
    {sums_of_traits(other, h100_other.kernels), sums_of_traits(tn, h100_tn.kernels)},
};
constexpr Fit fits[2][2] = {
    {{other.biases, other.kernels, entries_by_kernel(other.kernels, Missing::None)},
     {tn.biases, tn.kernels, entries_by_kernel(tn.kernels, Missing::None)}},
    {{h100_other.biases, h100_other.kernels, entries_by_kernel(h100_other.kernels, Missing::None)},
     {h100_tn.biases, h100_tn.kernels, entries_by_kernel(h100_tn.kernels, Missing::None)}},
};

float log_of(double value) { return static_cast<float>(std::log(value)); }

// What all candidates have in common that take the operands in the same order.
void describe_operands(const Problem& p, bool swap_ab, float (&f)[Feature::count])
{
    const Mma mma(p, swap_ab);
    const auto m = static_cast<double>(mma.m), n = static_cast<double>(mma.n);
    const auto problems = static_cast<double>(p.batch);
    f[Feature::swap_ab] = swap_ab;
    f[Feature::a_rows] = log_of(swap_ab ? m : m * problems);
    f[Feature::b_rows] = log_of(swap_ab ? n * problems : n);
    f[Feature::depth] = log_of(static_cast<double>(p.k));
    f[Feature::a_misalignment] = static_cast<float>(misalignment(mma.a));
    f[Feature::b_misalignment] = static_cast<float>(misalignment(mma.b));
    f[Feature::a_panels] = major_of(mma.a) == Major::MN;
    f[Feature::b_panels] = major_of(mma.b) == Major::MN;
}
constexpr int of_operands[] = {Feature::swap_ab,  Feature::a_rows,         Feature::b_rows,
                               Feature::depth,    Feature::a_misalignment, Feature::b_misalignment,
                               Feature::a_panels, Feature::b_panels};

// ... and, beside that, the kernel. `m`, `n` and `b_mn`, 1 where B is MN-major, else 0, are of the MMA.
template <typename Real, typename Number>
HGEMM_INLINE void describe_tiles(const KernelNumbers<Real>& c, const Real& m, const Real& n,
                                 const Real& b_mn, Number (&f)[Feature::count])
{
    const Real side_m = c.tile_m * c.cluster_m, side_n = c.tile_n * c.cluster_n;
    const Real panels = ceil_of(c.tile_n / span_elements) * span_elements;
    f[Feature::used_m] = log_of(m / (ceil_of(m / side_m) * side_m));
    f[Feature::used_n] = log_of(n / (ceil_of(n / side_n) * side_n));
    f[Feature::used_panels] = log_of(select(b_mn <= Real(0.0), Real(1.0), c.tile_n / panels));
}
constexpr int of_tiles[] = {Feature::used_m, Feature::used_n, Feature::used_panels};

// All else.
template <typename Real, typename Number>
HGEMM_INLINE void describe_way(const KernelNumbers<Real>& c, const Way<Real>& way, bool late,
                               const Real& us, int sm_count, Number (&f)[Feature::count])
{
    const Occupancy<Real> occupancy = occupancy_of(c, way, sm_count);
    f[Feature::predicted] = log_of(us);
    f[Feature::slices] = log_of(way.slices);
    f[Feature::stream_k] = Number(way.stream_k);
    f[Feature::pdl_off] = Number(way.pdl_off);
    f[Feature::late] = Number(late);
    f[Feature::all_clusters] = log_of(way.clusters);
    f[Feature::k_tiles] = log_of(way.k_tiles);
    f[Feature::waves] = log_of(way.clusters / way.resident);
    f[Feature::whole_waves] = log_of(occupancy.waves);
    f[Feature::filled] = Number(occupancy.filled);
    f[Feature::load] = log_of(occupancy.load);
    f[Feature::ctas] = log_of(occupancy.ctas / double{1.0 * sm_count});
}
constexpr int of_way[] = {Feature::predicted,   Feature::slices,       Feature::stream_k, Feature::pdl_off,
                          Feature::late,        Feature::all_clusters, Feature::k_tiles,  Feature::waves,
                          Feature::whole_waves, Feature::filled,       Feature::load,     Feature::ctas};
static_assert(std::size(of_operands) + std::size(of_tiles) + std::size(of_way) == Feature::count);

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

bool is_tn(const Problem& p) { return major_of(p.a) == Major::K && major_of(p.b) == Major::K; }

const Network& network_of(const Problem& p) { return is_tn(p) ? tn : other; }

const Fit& fit_of(const Problem& p, Card card) { return fits[card == Card::H100][is_tn(p)]; }

}  // namespace

void describe(const Problem& p, const Candidate& candidate, Pdl pdl, double us, int sm_count,
              float (&f)[Feature::count])
{
    const KernelNumbers<double> c = numbers_of(configs[candidate.kernel]);
    const Mma mma(p, candidate.swap_ab);
    describe_operands(p, candidate.swap_ab, f);
    describe_tiles(c, static_cast<double>(mma.m), static_cast<double>(mma.n),
                   major_of(mma.b) == Major::MN ? 1.0 : 0.0, f);
    describe_way(c, way_of(p, candidate, sm_count), pdl == Pdl::Late, us, sm_count, f);
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

Corrected corrected_us(const Problem& p, const Candidate& candidate, double us, int sm_count, Card card)
{
    const Network& network = network_of(p);
    const Fit& fit = fit_of(p, card);
    const int entry = fit.entries[candidate.kernel];
    if (entry < 0)
        return {us, us};
    float features[Feature::count];
    describe(p, candidate, candidate.pdl_off ? Pdl::Off : Pdl::Early, us, sm_count, features);
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

namespace {

// A term of the inputs of the hidden layer, for each of eight candidates: a number, and its weights.
struct Term {
    const float* values;   // one a candidate
    const float* weights;  // one a unit
};

// Up to eight candidates for a network.
struct EightCandidates {
    KernelNumbers<Lanes> c;
    Way<Lanes> way;
    Lanes us, pdl_off;
    Lanes m, n;  // of the MMA
    Lanes b_mn;  // 1 where B is MN-major, else 0
    int count, sm_count;
    const Network* network;
    // Inputs of the hidden layer: what operands and what the kernel's traits contribute.
    const float *of_operands[Lanes::count], *of_kernel[Lanes::count];
};

// Writes the logarithms of factors.
HGEMM_CLONES void correct_eight(const EightCandidates& in, float* early, float* late)
{
    Lanes features[Feature::count], log_early = 0.0, log_late = 0.0;
    describe_tiles(in.c, in.m, in.n, in.b_mn, features);
    describe_way(in.c, in.way, false, in.us, in.sm_count, features);
    features[Feature::pdl_off] = in.pdl_off;
    float values[Feature::count][Lanes::count];
    Term terms[Feature::count];
    int count = 0;
    const auto add = [&](int i) {
        features[i].store(values[i]);
        terms[count++] = {values[i], in.network->feature_weights[i]};
    };
    for (const int i : of_tiles)
        if (i != Feature::used_panels || any(Lanes(0.0) < in.b_mn))
            add(i);
    for (const int i : of_way)
        if (i != Feature::late && (i != Feature::stream_k || in.way.stream_k))
            add(i);
    for (int lane = 0; lane < in.count; ++lane) {
        constexpr int block = 4;  // so many sums are in registers
        Lanes output = 0.0, late_output = 0.0;
        for (int unit = 0; unit < units; unit += block * Lanes::count) {
            Lanes sums[block];
            for (int i = 0; i < block; ++i)
                sums[i] = Lanes::load(in.of_operands[lane] + unit + i * Lanes::count) +
                          Lanes::load(in.of_kernel[lane] + unit + i * Lanes::count);
            for (const Term* term = terms; term < terms + count; ++term)
                for (int i = 0; i < block; ++i)
                    sums[i] =
                        sums[i] + term->values[lane] * Lanes::load(term->weights + unit + i * Lanes::count);
            for (int i = 0; i < block; ++i) {
                const int first = unit + i * Lanes::count;
                const Lanes share = Lanes::load(in.network->shares + first);
                const Lanes more = Lanes::load(in.network->feature_weights[Feature::late] + first);
                output = output + share * greater(sums[i], 0.0);
                late_output = late_output + share * greater(sums[i] + more, 0.0);
            }
        }
        log_early.v[lane] = output.total();
        log_late.v[lane] = late_output.total();
    }
    (in.us * exp_of(log_early)).store(early);
    (in.us * exp_of(log_late)).store(late);
}

void put(Lanes& lanes, int lane, double number) { lanes.v[lane] = static_cast<float>(number); }

}  // namespace

CorrectionEstimate::CorrectionEstimate(const Problem& p, int sm_count, Card card)
    : p_(p), sm_count_(sm_count), card_(card)
{
    const Network& network = network_of(p);
    float features[Feature::count];
    for (const bool swap_ab : {false, true}) {
        describe_operands(p, swap_ab, features);
        std::copy_n(fit_of(p, card).biases, units, of_operands_[swap_ab]);
        for (const int i : of_operands)
            if (features[i] != 0.0f)
                add(of_operands_[swap_ab], features[i], network.feature_weights[i]);
    }
}

void CorrectionEstimate::operator()(std::span<const Candidate> candidates, const float* us, float* early,
                                    float* late) const
{
    const Fit& fit = fit_of(p_, card_);
    const SumsOfTraits& sums_of_traits = all_sums_of_traits[card_ == Card::H100][is_tn(p_)];
    EightCandidates in{};
    in.c.schedule = configs[candidates[0].kernel].schedule;
    in.way.stream_k = candidates[0].stream_k;
    in.us = Lanes::load(us);
    in.count = static_cast<int>(candidates.size());
    in.sm_count = sm_count_;
    in.network = &network_of(p_);
    for (int lane = 0; lane < in.count; ++lane) {
        const Candidate& candidate = candidates[lane];
        const KernelNumbers<double> c = numbers_of(configs[candidate.kernel]);
        const Way<double> way = way_of(p_, candidate, sm_count_);
        const Mma mma(p_, candidate.swap_ab);
        put(in.c.tile_m, lane, c.tile_m);
        put(in.c.tile_n, lane, c.tile_n);
        put(in.c.cluster_m, lane, c.cluster_m);
        put(in.c.cluster_n, lane, c.cluster_n);
        put(in.c.ctas_per_sm, lane, c.ctas_per_sm);
        put(in.way.slices, lane, way.slices);
        put(in.way.k_tiles, lane, way.k_tiles);
        put(in.way.clusters, lane, way.clusters);
        put(in.way.cluster, lane, way.cluster);
        put(in.way.resident, lane, way.resident);
        put(in.way.packing, lane, way.packing);
        put(in.pdl_off, lane, candidate.pdl_off);
        put(in.m, lane, static_cast<double>(mma.m));
        put(in.n, lane, static_cast<double>(mma.n));
        put(in.b_mn, lane, major_of(mma.b) == Major::MN);
        in.of_operands[lane] = of_operands_[candidate.swap_ab];
        in.of_kernel[lane] = sums_of_traits[candidate.kernel].data();
    }
    correct_eight(in, early, late);
    for (int lane = 0; lane < in.count; ++lane)
        if (fit.entries[candidates[lane].kernel] < 0)
            early[lane] = late[lane] = us[lane];
}

}  // namespace hg::sm90
