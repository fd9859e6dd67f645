// Estimates of eight kernels at a time.
#include "arch/sm90/choose/model/formulas.hpp"
#include "arch/sm90/choose/model/lanes.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace hg::sm90 {
namespace {

using namespace formulas;

constexpr float one_of_eight[2 * Lanes::count] = {1, 1, 1, 1, 1, 1, 1, 1};
constexpr float infinite = std::numeric_limits<float>::infinity();

// A number of each kernel; the last eight kernels may reach past the end.
using Column = std::array<float, gemm_count + Lanes::count>;
template <typename Number>
constexpr Column column_of(Number number)
{
    Column column{};
    for (int kernel = 0; kernel < gemm_count + Lanes::count; ++kernel)
        column[kernel] = static_cast<float>(number(std::min(kernel, gemm_count - 1)));
    return column;
}

// A number of clusters, by slices of K that their CTAs have.
using BySlices = std::array<Column, max_cluster>;
template <typename Number>
constexpr BySlices by_slices(Number number)
{
    BySlices columns{};
    for (int split = 1; split <= max_cluster; ++split)
        columns[split - 1] = column_of([&](int kernel) {
            return number(configs[kernel], std::min(configs[kernel].ctas() * split, max_cluster));
        });
    return columns;
}

struct Columns {
    // 1 if the kernel can cut K into one slice more than the index, else 0.
    std::array<Column, max_slices> splits = [] {
        std::array<Column, max_slices> columns{};
        for (int split = 1; split <= max_slices; ++split)
            columns[split - 1] = column_of([=](int kernel) { return legal_splits[kernel] >> split & 1; });
        return columns;
    }();
    Column tile_m = column_of([](int kernel) { return configs[kernel].tile_m; });
    Column tile_n = column_of([](int kernel) { return configs[kernel].tile_n; });
    Column cluster_m = column_of([](int kernel) { return configs[kernel].cluster_m; });
    Column cluster_n = column_of([](int kernel) { return configs[kernel].cluster_n; });
    Column ctas_per_sm = column_of([](int kernel) { return configs[kernel].ctas_per_sm; });
    Column consumers = column_of([](int kernel) { return configs[kernel].consumers_per_tile(); });
    Column k_cycles = column_of([](int kernel) { return cost_of(kernel).k_cycles; });
    Column chain = column_of([](int kernel) { return cost_of(kernel).chain; });
    Column placed = column_of([](int kernel) { return cost_of(kernel).placed; });
    Column store_us = column_of([](int kernel) { return cost_of(kernel).store_us; });
    Column effort = column_of([](int kernel) { return panel_effort(configs[kernel], Major::MN); });
    BySlices resident = by_slices(
        [](const Config& c, int cluster) { return resident_on_132_sms[c.ctas_per_sm - 1][cluster - 1]; });
    BySlices packing = by_slices([](const Config&, int cluster) { return sm90::packing[cluster]; });
    // At least, where tiles are placed by GPC: placed_cycles().
    BySlices port_cycles = by_slices([](const Config& c, int cluster) {
        return least_rows_of_gpc(c, cluster) * (c.is_global() ? 1 : cluster / c.ctas()) * tile_k * 2.0 /
               gpc_port;
    });
    BySlices latency = by_slices([](const Config&, int cluster) { return cluster_latency[cluster]; });
};
constexpr Columns columns;

HGEMM_INLINE ModelNumbers<Lanes> numbers_of_eight(const KernelEight& eight, bool is_b_mn,
                                                  const KernelFactors& factors)
{
    const auto load = [&](const Column& column) { return Lanes::load(&column[eight.first]); };
    const Lanes one = 1.0;
    ModelNumbers<Lanes> c{{configs[eight.first].schedule, load(columns.tile_m), load(columns.tile_n),
                           load(columns.cluster_m), load(columns.cluster_n), load(columns.ctas_per_sm),
                           load(columns.consumers)},
                          load(columns.k_cycles),
                          load(columns.chain),
                          load(columns.placed),
                          load(columns.store_us),
                          is_b_mn ? load(columns.effort) : one,
                          factors.are_measured(),
                          one,
                          one,
                          one,
                          one,
                          one};
    for (int lane = 0; c.is_calibrated && lane < eight.count; ++lane) {
        const Factors& f = factors[eight.first + lane];
        c.multiply.v[lane] = static_cast<float>(f.multiply);
        c.cycles.v[lane] = static_cast<float>(f.cycles);
        c.memory.v[lane] = static_cast<float>(f.memory);
        c.l2.v[lane] = static_cast<float>(f.l2);
        c.fixed.v[lane] = static_cast<float>(f.fixed);
    }
    return c;
}

// Eight kernels, with or without swap_ab.
struct EightModel {
    const KernelEight& eight;
    const bool swap_ab;
    const ProblemNumbers& p;
    const ModelNumbers<Lanes> c;
    const Traffic<Lanes> traffic;
    const Lanes clusters, exists;  // `exists`: 1, or 0 in lanes without a kernel
    // Of the norm, in which all is divided by the time of L2: that and its inverse, memory's power.
    const double exponent;
    const Lanes l2_us, inverse, memory_power;

    HGEMM_INLINE EightModel(const KernelEight& kernels, bool swapped, const Sides& sides,
                            const ProblemNumbers& problem, const KernelFactors& factors)
        : eight(kernels), swap_ab(swapped), p(problem),
          c(numbers_of_eight(kernels, sides.b.is_mn, factors)), traffic(traffic_of(c, sides, p)),
          clusters(ceil_of(sides.a.rows / (c.tile_m * c.cluster_m)) *
                   ceil_of(sides.b.rows / (c.tile_n * c.cluster_n)) * p.batch),
          exists(Lanes::load(&one_of_eight[Lanes::count - kernels.count])),
          exponent(p.low_intensity ? batch_norm : norm),
          l2_us(p.low_intensity ? of_l2 * traffic.from_l2 : traffic.from_l2), inverse(1.0 / l2_us),
          memory_power(power(memory_us() * inverse, exponent))
    {
    }

    // That does not depend on how many SMs read.
    HGEMM_INLINE Lanes memory_us() const
    {
        const Lanes us = c.is_calibrated ? traffic.from_memory * c.memory : traffic.from_memory;
        return p.low_intensity ? of_memory * us : us;
    }

    HGEMM_INLINE Lanes norm_of(const Parts<Lanes>& t) const
    {
        Lanes sum = 1.0 + power(t.compute * inverse, exponent) +
                    (traffic.operands > l2_resident ? power(t.memory * inverse, exponent) : memory_power);
        if (p.low_intensity)
            sum = sum + power(t.waves * inverse, exponent);
        return t.overhead + l2_us * power(sum, 1.0 / exponent);
    }

    HGEMM_INLINE Way<Lanes> way_of(int split, bool stream_k) const
    {
        const int i = c.is_global() ? 0 : split - 1, first = eight.first;
        const Lanes ctas = c.cluster_m * c.cluster_n;
        Lanes resident = Lanes::load(&columns.resident[i][first]);
        if (p.sm_count != max_remapped_clusters)
            resident = greater(floor_of(resident * p.sm_count / Lanes(max_remapped_clusters)), 1.0);
        return {stream_k,
                false,
                split,
                p.k_tiles[split],
                c.is_global() ? clusters * split : clusters,
                c.is_global() ? ctas : ctas * split,
                resident,
                Lanes::load(&columns.packing[i][first]),
                Lanes::load(&columns.latency[i][first])};
    }

    // What no candidate falls below: an SM has at least the mean of all K tiles.
    HGEMM_INLINE float least_us() const
    {
        const Lanes k_tiles = clusters * c.cluster_m * c.cluster_n * p.k_tiles[1] / p.sm_count;
        const Lanes k_cycles =
            c.is_split()
                ? lesser(greater(c.placed, Lanes::load(&columns.port_cycles[0][eight.first])), c.k_cycles)
                : c.k_cycles;
        Lanes compute = k_tiles * k_cycles * c.effort / clock_rate, memory = traffic.from_memory,
              overhead =
                  c.is_split() ? Lanes(launch_split + fill_pipeline) : launch_persistent + c.store_us;
        if (c.is_calibrated) {
            compute = compute * c.cycles * lesser(c.multiply, 1.0);
            memory = memory * c.memory;
        }
        overhead = p.low_intensity ? Lanes(0.0) : c.fixed * (overhead + least_cluster_latency);
        const Lanes us = overhead + greater(greater(compute, memory), traffic.from_l2);
        return select(Lanes(1.0) <= exists, us, infinite).least();
    }

    // Begins a row, unless no candidate takes less than `limit`. Returns how many rows it has begun.
    HGEMM_INLINE int begin_row(const Way<Lanes>& way, const Occupancy<Lanes>& occupancy, int split,
                               const Lanes& k_cycles, const Mask& wanted, bool is_bound, float limit,
                               Row& row, Parts<Lanes>& parts) const
    {
        parts = parts_of(c, traffic, p, way, occupancy, k_cycles);
        const Lanes greatest =
            greater(greater(parts.compute, parts.memory), greater(parts.l2, parts.waves));
        if (!any(wanted & (parts.overhead + greatest < limit)))
            return 0;
        parts.overhead = select(wanted, parts.overhead, infinite);
        row.kernel = static_cast<uint8_t>(eight.first);
        row.split = static_cast<uint8_t>(split);
        row.swap_ab = swap_ab;
        row.stream_k = way.stream_k;
        row.pdl_off = way.pdl_off;
        row.is_bound = is_bound;
        return 1;
    }

    // What a split-K kernel with PDL does not fall below, by what is known without occupancy: one wave,
    // each SM with one CTA, of tiles that need not fill the device.
    HGEMM_INLINE Lanes least_of(const Way<Lanes>& way) const
    {
        if (!c.is_split() || p.low_intensity)
            return 0.0;
        const Lanes share = lesser(1.0, 1.0 / way.slices + 0.2);
        const Lanes overhead =
            launch_split + fill_pipeline + way.latency + c.store_us * share + reduction_us(c, way);
        Lanes chain = way.k_tiles * c.chain * (1.0 - 0.5 * crowding) * c.effort / clock_rate;
        if (c.is_calibrated)
            chain = chain * c.cycles * lesser(c.multiply, 1.0);
        return c.fixed * overhead + greater(greater(chain, memory_us()), l2_us);
    }

    // Up to two rows: with PDL and without.
    HGEMM_INLINE int begin_rows(Way<Lanes>& way, int split, const Asked& asked, Row* rows,
                                Parts<Lanes>* parts) const
    {
        const Mask all = Lanes(1.0) <= exists * Lanes::load(&columns.splits[split - 1][eight.first]);
        const Lanes least = least_of(way);
        if (!any(all & (least < asked.limit)))
            return 0;
        const Occupancy<Lanes> occupancy = occupancy_of(c, way, p.sm_count);
        const int count = asked.with_pdl ? begin_row(way, occupancy, split, c.k_cycles, all, false,
                                                     asked.limit, rows[0], parts[0])
                                         : 0;
        if (!asked.without_pdl || (asked.with_pdl && !c.is_split()))
            return count;
        const double ctas_of_placed = p.sm_count == max_remapped_clusters && c.is_split() ? 1.0 : 0.0;
        const Mask is_placed =
            all & (way.clusters <= way.resident) & (c.ctas_per_sm <= Lanes(ctas_of_placed));
        const Lanes more = p.low_intensity ? Lanes(0.0) : c.fixed * pdl_off_latency;
        if (asked.with_pdl && !any(is_placed & (least + more < asked.limit)))
            return count;
        way.pdl_off = true;
        const Lanes port = Lanes::load(&columns.port_cycles[c.is_global() ? 0 : split - 1][eight.first]);
        return count + begin_row(way, occupancy, split,
                                 select(is_placed, greater(c.placed, port), c.k_cycles),
                                 asked.with_pdl ? is_placed : all, any(is_placed), asked.limit, rows[count],
                                 parts[count]);
    }
};

// Bit i: one of them can cut K into i slices.
uint64_t legal_splits_of(const KernelEight& eight)
{
    uint64_t splits = 0;
    for (int kernel = eight.first; kernel < eight.first + eight.count; ++kernel)
        splits |= legal_splits[kernel];
    return splits;
}

HGEMM_CLONES int estimate_eight(const KernelEight& eight, bool swap_ab, const Sides& sides,
                                const ProblemNumbers& p, const Asked& asked, const KernelFactors& factors,
                                Row* rows)
{
    const EightModel model(eight, swap_ab, sides, p, factors);
    const ModelNumbers<Lanes>& c = model.c;
    const uint64_t legal = legal_splits_of(eight);
    // All that rows begin with comes before all norms: the processor computes several of a kind at a time.
    Parts<Lanes> parts[2 * max_global_ways];
    int count = 0;
    for (int split = 1; split <= asked.most_slices; ++split) {
        if ((legal >> split & 1) == 0)
            continue;
        Way<Lanes> way = model.way_of(split, false);
        if (c.is_global() && split > 1 && !any(way.clusters <= way.resident))
            break;  // no more slices either
        count += model.begin_rows(way, split, asked, rows + count, parts + count);
    }
    if (!c.is_split()) {
        Way<Lanes> way = model.way_of(1, true);
        count += model.begin_rows(way, 1, asked, rows + count, parts + count);
    }
    for (int row = 0; row < count; ++row)
        model.norm_of(parts[row]).store(rows[row].us);
    for (int row = 0; row < count; ++row)
        rows[row].least = Lanes::load(rows[row].us).least();
    return count;
}

// `ports`: port_cycles() of each candidate, or 0.
HGEMM_CLONES void refine_row(const KernelEight& eight, const Sides& sides, const ProblemNumbers& p,
                             const KernelFactors& factors, const float* ports, Row& row)
{
    const EightModel model(eight, row.swap_ab, sides, p, factors);
    Way<Lanes> way = model.way_of(row.split, row.stream_k);
    way.pdl_off = true;
    static_assert(placed_norm == 4.0);
    const auto to_the_fourth = [](const Lanes& x) { return x * x * (x * x); };
    const Lanes port = Lanes::load(ports),
                placed = power(to_the_fourth(model.c.placed) + to_the_fourth(port), 1.0 / placed_norm),
                k_cycles = select(Lanes(0.0) < port, placed, model.c.k_cycles);
    const Occupancy<Lanes> occupancy = occupancy_of(model.c, way, p.sm_count);
    const Lanes us = model.norm_of(parts_of(model.c, model.traffic, p, way, occupancy, k_cycles));
    // Others stay what they are.
    select(Lanes(0.0) < Lanes::load(ports), us, Lanes::load(row.us)).store(row.us);
}

HGEMM_CLONES float least_of_eight(const KernelEight& eight, const Sides& sides, const ProblemNumbers& p,
                                  const KernelFactors& factors)
{
    return EightModel(eight, false, sides, p, factors).least_us();
}

}  // namespace

void Model::order_eights(const KernelFactors& factors, OrderedEight (&ordered)[2 * eights_count]) const
{
    int count = 0;
    for (const bool swap_ab : {false, true})
        for (const KernelEight& eight : eights)
            ordered[count++] = {least_of_eight(eight, sides_[swap_ab], numbers_, factors), swap_ab, &eight};
    std::ranges::sort(ordered, {}, &OrderedEight::least_us);
}

int Model::estimate(const OrderedEight& next, const Asked& asked, const KernelFactors& factors,
                    Row* rows) const
{
    return estimate_eight(*next.eight, next.swap_ab, sides_[next.swap_ab], numbers_, asked, factors, rows);
}

void Model::refine(Row& row, float limit, const KernelFactors& factors) const
{
    const auto eight =
        std::ranges::find_if(eights, [&](const KernelEight& e) { return e.first == row.kernel; });
    float ports[Lanes::count]{};
    for (int lane = 0; lane < eight->count; ++lane)
        if (row.us[lane] < limit) {
            const Config& c = configs[eight->first + lane];
            const int64_t clusters = count_clusters(problem_, c, row.swap_ab);
            ports[lane] = static_cast<float>(port_cycles(
                problem_, {eight->first + lane, row.swap_ab, row.split, row.stream_k, clusters, true},
                numbers_.sm_count));
        }
    if (std::ranges::any_of(ports, [](float port) { return port > 0; }))
        refine_row(*eight, sides_[row.swap_ab], numbers_, factors, ports, row);
}

}  // namespace hg::sm90
