#include "arch/sm90/choose/model/model.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/model/formulas.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hg::sm90 {
namespace {

using namespace formulas;

// Early start lets the next kernel's CTAs spread over all SMs. Not in one long wave of CTAs that fill an SM
// each: the next kernel's CTAs would start one by one as places become free, and crowd on some SMs.
Pdl pdl_of(const Config& c, const Occupancy<double>& occupancy, int64_t k_tiles)
{
    const bool one_long_wave =
        c.is_split() && c.ctas_per_sm == 1 && occupancy.filled > 0.5 && occupancy.waves == 1.0;
    return one_long_wave && k_tiles > 32 ? Pdl::Late : Pdl::Early;
}

// An MN-major operand of less than 64 rows whose consecutive K share sectors of L2?
bool is_narrow(const Operand& o)
{
    constexpr int64_t sector = 16;  // elements
    const int64_t stride = line_stride(o);
    return major_of(o) != Major::K && stride < span_elements && stride % sector != 0;
}

Side side_of(const Operand& o, const Problem& p, double rows)
{
    return {rows, 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * rows,
            1.0 + misaligned_rows * misalignment(o), major_of(o) == Major::MN, is_narrow(o)};
}

ModelNumbers<double> numbers_of(int kernel, bool is_b_mn, const Factors& f)
{
    const Cost& cost = cost_of(kernel);
    return {sm90::numbers_of(configs[kernel]),
            static_cast<double>(cost.k_cycles),
            static_cast<double>(cost.chain),
            static_cast<double>(cost.placed),
            cost.store_us,
            panel_effort(configs[kernel], is_b_mn ? Major::MN : Major::K),
            f != Factors{},
            f.multiply,
            f.cycles,
            f.memory,
            f.l2,
            f.fixed};
}

// Cycles a K tile where tiles are placed by GPC: bounded by the SM, or by the GPC's port to L2.
double placed_cycles(const Problem& p, const Candidate& candidate, int sm_count)
{
    const Cost& cost = cost_of(candidate.kernel);
    const double port = port_cycles(p, candidate, sm_count);
    if (port == 0.0)
        return cost.k_cycles;
    return std::pow(std::pow(cost.placed, placed_norm) + std::pow(port, placed_norm), 1.0 / placed_norm);
}

}  // namespace

double misalignment(const Operand& o)
{
    const auto pitch = static_cast<uint64_t>(2 * line_stride(o));
    return 1.0 - static_cast<double>(1 << std::countr_zero(pitch | 128)) / 128.0;
}

double port_cycles(const Problem& p, const Candidate& candidate, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    const int cluster = c.cluster_ctas(candidate.split);
    if (!c.is_split() || !fits_one_wave(c, cluster, candidate.launched_clusters(), sm_count))
        return 0.0;
    const Mma mma(p, candidate.swap_ab);
    const auto rows = static_cast<double>(rows_of_gpc(c, cluster, ceil_div(mma.m, c.tile_m * c.cluster_m),
                                                      ceil_div(mma.n, c.tile_n * c.cluster_n)));
    const double slices =
        c.is_global() ? std::max(1.0, sms_per_gpc / static_cast<double>(candidate.clusters * c.ctas()))
                      : candidate.split;
    return rows * slices * tile_k * 2.0 / gpc_port;
}

bool is_low_intensity_batch(const Problem& p)
{
    constexpr double min_intensity = 140;  // flops a byte
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    return p.batch > 1 && m * n * k < min_intensity * (m * k + n * k + m * n);
}

Model::Model(const Facts& f, int sm_count) : problem_(f.problem)
{
    const Problem& p = f.problem;
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
    const Side a = side_of(p.a, p, m), b = side_of(p.b, p, n);
    sides_[false] = {a, b};
    sides_[true] = {b, a};
    numbers_.sm_count = sm_count;
    numbers_.low_intensity = is_low_intensity_batch(p);
    numbers_.by_element = f.output.elements;
    numbers_.batch = static_cast<double>(p.batch);
    numbers_.output = 2.0 * static_cast<double>(p.batch) * m * static_cast<double>(p.columns());
    for (int split = 1; split <= max_slices; ++split)
        numbers_.k_tiles[split] = k_tiles_of(p, split);
}

Prediction Model::predict(const Candidate& candidate, const Factors& factors) const
{
    const int sm_count = numbers_.sm_count;
    const Sides& sides = sides_[candidate.swap_ab];
    const ModelNumbers<double> c = numbers_of(candidate.kernel, sides.b.is_mn, factors);
    const Way<double> way = way_of(problem_, candidate, sm_count);
    const Occupancy<double> occupancy = occupancy_of(c, way, sm_count);
    const double k_cycles = candidate.pdl_off ? placed_cycles(problem_, candidate, sm_count) : c.k_cycles;
    const Parts<double> t = parts_of(c, traffic_of(c, sides, numbers_), numbers_, way, occupancy, k_cycles);
    const double exponent = numbers_.low_intensity ? batch_norm : norm;
    double sum = std::pow(t.compute, exponent) + std::pow(t.memory, exponent) + std::pow(t.l2, exponent);
    if (numbers_.low_intensity)
        sum += std::pow(t.waves, exponent);
    const Pdl pdl = candidate.pdl_off ? Pdl::Off
                                      : pdl_of(configs[candidate.kernel], occupancy,
                                               ceil_div(ceil_div(problem_.k, tile_k), candidate.split));
    return {t.overhead + std::pow(sum, 1.0 / exponent), pdl};
}

}  // namespace hg::sm90
