#include "arch/sm90/choose/grouped.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/model.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/choose/repack.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// Rows of a group, as far as can be told: of contiguous groups the average, of masked ones half of what
// they have room for.
int64_t expected_rows(const Problem& p)
{
    return std::max<int64_t>(p.groups.offsets ? p.m / p.batch : p.m / 2, 1);
}

// Of clusters, of groups that have rows.
int64_t expected_tiles(const Problem& p, const Config& c)
{
    const int64_t groups = p.groups.offsets ? std::min(p.batch, p.m) : p.batch;
    return groups * ceil_div(expected_rows(p), int64_t{c.tile_m}) *
           ceil_div(p.n, int64_t{c.tile_n} * c.cluster_n);
}

bool is_legal(const Problem& p, int index, const Options& o, int sm_count)
{
    const Config& c = grouped_configs[index];
    const bool forced_away = is_forced_away(o, kernels[first_grouped + index]);
    return !forced_away && c.ctas() <= sm_count && count_most_tiles(p, c.tile_m, c.tile_n) <= max_tiles &&
           o.split <= 1 && o.swap_ab != SwapAb::On && o.stream_k != StreamK::On &&
           (!p.c.ptr || (reads_c_by_subtile(c) && fuses_c(c)));
}

// Microseconds by 64 x 128, pairs of 128 x 128, of 128 x 160, single CTAs of both (h100_grouped.csv and
// before it): 128 groups of 32 rows on average, 1536 x 2048, 298, 302, 303, 306, 308; 32 of 512, 4096 x
// 7168, 2,240, 1,647, 1,667, 1,719, 1,764; 8 of 8,192, 4096 x 14336, 29,000, 13,237, 11,267, 23,700,
// 16,890. Of short k, 128 of 512, 2048 x 768, 591, 592, 467, 610, 469.
int wanted_kernel(const Problem& p)
{
    constexpr int few = 0, more = 1, many = 2;
    constexpr int64_t many_rows = 1024, short_k = 1024;
    const int64_t expected = expected_rows(p);
    if (expected <= grouped_configs[few].tile_m)
        return few;
    const bool whole_panels = p.k == 0 || major_of(p.b) == Major::K;  // 160 y are read as 192 else
    return p.k < short_k || (expected >= many_rows && whole_panels) ? many : more;
}

// That kernel, or the next one that is legal; -1 if none is.
int choose_kernel(const Problem& p, const Options& o, int sm_count)
{
    const int wanted = wanted_kernel(p);
    for (int index = wanted; index >= 0; --index)
        if (is_legal(p, index, o, sm_count))
            return index;
    for (int index = wanted + 1; index < grouped_count; ++index)
        if (is_legal(p, index, o, sm_count))
            return index;
    return -1;
}

// Of the groups that have rows; those of B that others multiply are not read.
double predict_groups(const Problem& p, const Config& c, int sm_count, const Device& device)
{
    constexpr double launch = 4, flops_per_sm = 4.8e6, usual_bandwidth = 3.35e6, reached = 0.85;
    const double expected = static_cast<double>(expected_rows(p));
    const double groups = static_cast<double>(p.groups.offsets ? std::min(p.batch, p.m) : p.batch);
    const double n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const double tiles = static_cast<double>(ceil_div(expected_rows(p), int64_t{c.tile_m}));
    const double bytes =
        groups * (2 * n * k + expected * (2 * k + n * static_cast<double>(bytes_of(p.d.type))));
    const double bandwidth =
        device.memory_bandwidth > 0 ? static_cast<double>(device.memory_bandwidth) / 1e6 : usual_bandwidth;
    return launch + std::max(bytes / (reached * bandwidth),
                             2 * groups * tiles * c.tile_m * n * k / (flops_per_sm * sm_count));
}

}  // namespace

bool choose_groups(const Problem& asked, const Device& device, const Options& o, Plan& plan)
{
    plan.refusal = extent_refusal(asked);
    if (!plan.refusal && asked.k > 0 && !plan_repack(asked, o.workspace, plan))
        plan.refusal = "TMA cannot address A or B: 16-byte alignment is needed, or workspace for a copy";
    if (plan.refusal)
        return false;
    const int sm_count = o.sm_count(device), index = choose_kernel(asked, o, sm_count);
    if (index < 0) {
        plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
        return false;
    }
    const Config& c = grouped_configs[index];
    const Problem p = asked.k > 0 ? repacked(asked, plan, nullptr) : asked;
    plan.kernel = first_grouped + index;
    plan.variant = (p.type_ab == Type::BF16 ? 4 : 0) + (p.k > 0 && major_of(p.b) == Major::MN ? 1 : 0);
    plan.split = 1;
    plan.cluster = c.ctas();
    plan.pdl = o.pdl == Pdl::Off ? Pdl::Off : Pdl::Late;
    plan.tiles = count_most_tiles(p, c.tile_m, int64_t{c.tile_n} * c.cluster_n);
    plan.grid = std::min(plan.tiles, clusters_held(c.ctas_per_sm, c.ctas(), sm_count)) * plan.cluster;
    plan.sm90.dynamic_schedule =
        o.counters > 0 && o.workspace >= plan.workspace + sizeof(uint32_t) &&
        schedules_dynamically(c, expected_tiles(p, c), plan.grid / c.ctas(), ceil_div(p.k, tile_k));
    plan.workspace += plan.sm90.dynamic_schedule ? sizeof(uint32_t) : 0;
    plan.predicted_us = predict_groups(p, c, sm_count, device) + predict_repack(asked, plan);
    plan.why = *o.kernel ? Why::Forced : Why::Model;
    return true;
}

}  // namespace hg::sm90
