#include "arch/sm90/choose/grouped.hpp"

#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/repack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/details.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/choose/repack.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hg::sm90 {
namespace {

// A guess at the rows of a group: the average of contiguous groups, half of the room of masked ones. Groups
// of K have all rows.
int64_t expected_rows(const Problem& p)
{
    if (p.groups.of_k)
        return p.m;
    return std::max<int64_t>(p.groups.contiguous() ? p.m / p.batch : p.m / 2, 1);
}

// A guess at the number of cluster tiles, of groups that have rows.
int64_t expected_tiles(const Problem& p, const Config& c)
{
    const int64_t groups = p.groups.contiguous() ? std::min(p.batch, p.m) : p.batch;
    return groups * ceil_div(expected_rows(p), int64_t{c.tile_m}) *
           ceil_div(p.n, int64_t{c.tile_n} * c.cluster_n);
}

bool is_legal(const Problem& p, int index, const Options& o, int sm_count)
{
    const Config& c = grouped_configs[index];
    const bool forced_away = is_forced_away(o, kernels[first_grouped + index]);
    return !forced_away && c.ctas() <= sm_count && o.takes_cluster(c.ctas()) &&
           count_max_tiles(p, c.tile_m, c.tile_n) <= max_tiles && o.split <= 1 && o.swap_ab != SwapAb::On &&
           o.stream_k != StreamK::On && (!p.c.ptr || (reads_c_by_subtile(c) && fuses_c(c)));
}

// Few rows a group fit the smallest tile. The widest is fastest with many rows, unless an N-major B would
// be read in panels that it does not fill, and with short K (tests/bench/results/h100_grouped.csv). Groups
// of K, whose B is N-major, were not timed.
int wanted_kernel(const Problem& p)
{
    constexpr int smallest = 0, middle = 1, widest = 2;
    constexpr int64_t many_rows = 1024, short_k = 1024;
    const int64_t expected = expected_rows(p);
    if (expected <= grouped_configs[smallest].tile_m)
        return smallest;
    if (p.groups.of_k)
        return middle;
    const bool whole_panels =
        p.k == 0 || major_of(p.b) == Major::K;  // N-major: 160 columns are read as 192
    return p.k < short_k || (expected >= many_rows && whole_panels) ? widest : middle;
}

// The wanted kernel, else the nearest smaller one that is legal, else the nearest larger one; -1 if none
// is.
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

// Microseconds. Groups without rows are not counted, since their B is not read.
double predict_groups(const Problem& p, int rows_of_tile, int sm_count, const Device& device)
{
    constexpr double launch = 4, flops_per_sm = 4.8e6, usual_bandwidth = 3.35e6, reached = 0.85;
    const double expected = static_cast<double>(expected_rows(p));
    const double groups = static_cast<double>(p.groups.contiguous() ? std::min(p.batch, p.m) : p.batch);
    const double n = static_cast<double>(p.n), k = static_cast<double>(expected_k(p));
    const double tiles = static_cast<double>(ceil_div(expected_rows(p), int64_t{rows_of_tile}));
    const double bytes =
        groups * (2 * n * k + expected * (2 * k + n * static_cast<double>(bytes_of(p.d.type))));
    const double bandwidth =
        device.memory_bandwidth > 0 ? static_cast<double>(device.memory_bandwidth) / 1e6 : usual_bandwidth;
    return launch + std::max(bytes / (reached * bandwidth),
                             2 * groups * tiles * rows_of_tile * n * k / (flops_per_sm * sm_count));
}

// Groups of K have entry points for these alone.
bool are_mn_major(const Problem& p)
{
    return p.k == 0 || (major_of(p.a) == Major::MN && major_of(p.b) == Major::MN);
}

// What is copied before kernels read it: for groups of K, whose kernels read no others, not what is thin.
const Readable& readable_of(const Problem& p)
{
    static constexpr Readable as_it_lies{.as_is = &OperandFacts::tma, .copies_thin = false};
    return p.groups.of_k ? as_it_lies : readable;
}

// Kernels of few rows store no C and no aux, and find contiguous groups alone.
bool can_be_few_rows(const Problem& p, const Options& o)
{
    const Facts facts(p);
    const bool readable = p.k > 0 && facts.a.tma && facts.b.tma && facts.a.major == Major::K;
    const bool plain = !p.c.ptr && !p.aux.ptr && !p.d.array && p.bias.along != BiasAlong::Rows;
    return p.groups.contiguous() && readable && plain && !extent_refusal(p) && o.split <= 1 &&
           o.swap_ab != SwapAb::Off && o.stream_k != StreamK::On;
}

// The narrowest tile into which most groups of this average fit; -1 if none should. With 16 rows a group,
// layers take by 64 x 32 0.96 (8 groups) and 1.03 (128 groups) of their time by the persistent kernels:
// EXPERIMENTS.md. The limit of 32 groups lies between.
int wanted_few_rows(const Problem& p)
{
    constexpr int64_t rows_of_narrow = 10, rows_of_wide = 24, groups_of_wide = 32;
    constexpr int64_t most_groups = 512;  // each CTA reads the sizes of all before its own
    if (p.batch > most_groups)
        return -1;
    if (expected_rows(p) <= rows_of_narrow)
        return 0;
    return expected_rows(p) <= rows_of_wide && p.batch <= groups_of_wide ? 1 : -1;
}

// With a short K a CTA's start costs much beside its tile. With gates more K counts as short, since B is
// read in two boxes. N = 2048, K = 768, 256 rows in 128 groups: 1.57 of PyTorch's speed, by 64 x 16 1.53
// (H200). Up to four waves, of the most tiles that there may be, 64 x 16 is faster. `places`: CTAs that run
// at once.
bool is_short(const Problem& p, int64_t tiles, int places)
{
    constexpr int64_t short_k = 1024, short_k_of_gates = 2560, waves = 4;
    return p.k < (p.is_gated() ? short_k_of_gates : short_k) && tiles > waves * places;
}

// Do CTAs that find no tile, and take about 1 us each, take more than 6 % of the time in which an H200's
// memory delivers the weights? How many there are is expected for routers that choose at random. One row
// for each of 128 groups, N = 2048, K = 768: some 6 us of 58, which is too much.
bool starts_too_many(const Problem& p, int64_t tiles, int places)
{
    constexpr double us_of_cta = 1, bytes_per_us = 4.2e6, most = 0.06;
    const double groups = static_cast<double>(p.batch), rows = static_cast<double>(p.m);
    const double filled = groups * (1 - std::exp(-rows / groups));  // groups that have rows
    const double empty = 1 - filled / std::max(filled, std::min(groups, rows));
    const double us = empty * static_cast<double>(tiles) * us_of_cta / places;
    return us > most * 2 * filled * static_cast<double>(p.n) * static_cast<double>(p.k) / bytes_per_us;
}

int variant_of(const Problem& p)
{
    const int majors = p.groups.of_k ? 3 : p.k > 0 && major_of(p.b) == Major::MN ? 1 : 0;
    return (p.type_ab == Type::BF16 ? 4 : 0) + majors;
}

}  // namespace

// What is forced skips the limits of rows, groups and waves.
bool choose_few_rows(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    if (!can_be_few_rows(p, o))
        return false;
    const int first = p.is_gated() ? first_gated_few_rows : first_few_rows;
    int index = wanted_few_rows(p);
    for (int i = 0; *o.kernel && i < few_rows_count; ++i)
        if (!is_forced_away(o, kernels[first + i]))
            index = i;
    if (index < 0 || is_forced_away(o, kernels[first + index]))
        return false;
    const Config& c = config_of(first + index);
    const int64_t tiles = count_max_tiles(p, c.tile_n, c.tile_m);
    const int sm_count = o.sm_count(device);
    const int places = c.ctas_per_sm * sm_count;
    if (!*o.kernel && (is_short(p, tiles, places) || starts_too_many(p, tiles, places)))
        return false;
    if (tiles > (o.sm_limit > 0 ? sm_count : max_tiles) ||
        (c.is_gated() && (major_of(p.b) != Major::K || !finds_gates(c, p))))
        return false;
    plan.kernel = first + index;
    plan.variant = entry_of(plan.kernel, major_variant(p.type_ab, p.b, p.a));
    plan.swap_ab = true;
    plan.split = plan.cluster = 1;
    plan.pdl = o.pdl == Pdl::Off ? Pdl::Off : Pdl::Late;
    plan.tiles = plan.grid = tiles;
    plan.sm90.last_m = plan.sm90.last_n = INT32_MAX;
    plan.sm90.raster_group = 1;
    plan.sm90.a_once = true;
    plan.predicted_us = predict_groups(p, c.tile_n, sm_count, device);
    plan.why = *o.kernel ? Why::Forced : Why::Model;
    return true;
}

bool choose_many_rows(const Problem& asked, const Device& device, const Options& o, Plan& plan)
{
    plan.refusal = extent_refusal(asked);
    if (!plan.refusal && asked.k > 0 && !plan_repack(Facts(asked), readable_of(asked), o.workspace, plan))
        plan.refusal = "TMA cannot address A or B: 16-byte alignment is needed, or workspace for a copy";
    const Problem p = asked.k > 0 && !plan.refusal ? repacked(asked, plan, nullptr) : asked;
    if (!plan.refusal && asked.groups.of_k && !are_mn_major(p))
        plan.refusal = "groups of k need an A that is contiguous along M and a B that is along N";
    if (plan.refusal)
        return false;
    const int sm_count = o.sm_count(device), index = choose_kernel(asked, o, sm_count);
    if (index < 0) {
        plan.refusal = "more than 2^30 tiles, or what was forced does not fit";
        return false;
    }
    const Config& c = grouped_configs[index];
    plan.kernel = first_grouped + index;
    plan.variant = variant_of(p);
    plan.split = 1;
    plan.cluster = c.ctas();
    plan.pdl = o.pdl == Pdl::Off ? Pdl::Off : Pdl::Late;
    plan.tiles = count_max_tiles(p, c.tile_m, int64_t{c.tile_n} * c.cluster_n);
    plan.grid = std::min(plan.tiles, resident_clusters(c.ctas_per_sm, c.ctas(), sm_count)) * plan.cluster;
    plan.sm90.dynamic_schedule =
        !p.groups.of_k && o.counters > 0 && o.workspace >= plan.workspace + sizeof(uint32_t) &&
        schedules_dynamically(c, expected_tiles(p, c), plan.grid / c.ctas(), ceil_div(p.k, tile_k));
    plan.counts = plan.sm90.dynamic_schedule;
    plan.workspace += plan.sm90.dynamic_schedule ? sizeof(uint32_t) : 0;
    plan.predicted_us = predict_groups(p, c.tile_m, sm_count, device) + predict_repack(asked, plan);
    plan.why = *o.kernel ? Why::Forced : Why::Model;
    decide_output_details(Facts(rows_of_groups(p)), plan);
    return true;
}

bool choose_groups(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    return choose_few_rows(p, device, o, plan) || choose_many_rows(p, device, o, plan);
}

}  // namespace hg::sm90
