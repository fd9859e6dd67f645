// Candidates, and how their CTAs are spread over the SMs.
#pragma once

#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/model/lanes.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace hg::sm90 {

struct Candidate {
    int kernel;
    bool swap_ab;
    int split;  // slices of K
    bool stream_k;
    int64_t clusters;  // cluster tiles of D, of all problems of a batch
    bool pdl_off;      // it starts when earlier kernels have ended, so that tiles can be placed by GPC

    // `clusters` times the slices that are clusters of their own.
    int64_t launched_clusters() const { return clusters * configs[kernel].clusters_per_tile(split); }
};

inline int64_t count_clusters(const Problem& p, const Config& c, bool swap_ab)
{
    return count_tiles(p, c.tile_m * c.cluster_m, c.tile_n * c.cluster_n, swap_ab);
}

// Bit i of legal_splits[kernel]: the kernel can cut K into i slices. Many slices come in fours: fewer
// candidates, and the times of neighbours differ little.
constexpr auto legal_splits = [] {
    std::array<uint64_t, gemm_count> bits{};
    for (int kernel = 0; kernel < gemm_count; ++kernel)
        for (int split = 1; split <= most_slices(configs[kernel]); ++split)
            if (split <= few_slices || split % 4 == 0)
                bits[kernel] |= uint64_t{can_split(configs[kernel], split)} << split;
    return bits;
}();

// Stream-K: `clusters` persistent clusters share the K tiles of the first `tiles` tiles evenly.
struct StreamShape {
    int64_t tiles, clusters;
};

StreamShape stream_shape(const Config& config, int64_t tiles, int64_t k, int sm_count);

// The fewest persistent CTAs with which the number of waves stays the same: less power.
int64_t persistent_clusters(const Problem& p, const Config& c, const Candidate& candidate, int sm_count);

// Clusters of 1 to 8 CTAs that run on 132 SMs at a time, by CTAs an SM, as the driver reports.
constexpr int resident_on_132_sms[4][max_cluster] = {
    {132, 66, 39, 30, 22, 17, 15, 15},
    {264, 132, 79, 62, 47, 39, 32, 30},
    {396, 198, 124, 92, 69, 62, 47, 45},
    {528, 264, 163, 124, 94, 79, 69, 62},
};

// How many clusters of `cluster` CTAs run at a time.
constexpr int64_t resident_clusters(int ctas_per_sm, int cluster, int sm_count)
{
    return std::max(1,
                    resident_on_132_sms[ctas_per_sm - 1][cluster - 1] * sm_count / max_remapped_clusters);
}

// Share of an SM's free places for CTAs that clusters fill while other SMs are idle, by CTAs of a cluster.
constexpr double packing[] = {0, 0, 0.0205, 0.0, 0.919, 0.349, 0.705, 0.209, 0.761};
// Microseconds, likewise.
constexpr double cluster_latency[] = {0, 0, -0.196, -0.193, -0.294, -0.6, -0.341, 0.402, -0.599};

// Formulas are written once, for a candidate in double, which is exact, and for eight kernels in Lanes.

// Numbers of a kernel, or of kernels with one schedule.
template <typename Real>
struct KernelNumbers {
    Schedule schedule;
    Real tile_m, tile_n, cluster_m, cluster_n, ctas_per_sm, consumers;  // consumers that share a tile

    bool is_global() const { return schedule == Schedule::SplitKGlobal; }
    bool is_split() const { return schedule == Schedule::SplitK || is_global(); }
};

// How K is shared.
template <typename Real>
struct Way {
    bool stream_k, pdl_off;
    Real slices;
    Real k_tiles;            // of the longest slice
    Real clusters, cluster;  // that are launched; CTAs of each
    Real resident;           // clusters that run at a time
    Real packing, latency;   // of such a cluster
};

double k_tiles_of(const Problem& problem, int split);
KernelNumbers<double> numbers_of(const Config& config);
Way<double> way_of(const Problem& problem, const Candidate& candidate, int sm_count);

// How a candidate's CTAs are spread over the SMs.
template <typename Real>
struct Occupancy {
    Real ctas, waves;
    Real load;     // CTAs that the fullest SM runs, of all waves
    Real crowded;  // `load` with the CTAs that clusters put on one SM although others are idle
    Real filled;   // share of the places for CTAs that is taken, at most 1
};

template <typename Real>
HGEMM_INLINE Occupancy<Real> occupancy_of(const KernelNumbers<Real>& c, const Way<Real>& way, int sm_count)
{
    const double sms = sm_count;
    const Real places = sms * c.ctas_per_sm, ctas = way.clusters * way.cluster,
               filled = lesser(Real(1.0), ctas / places);
    if (!c.is_split()) {
        const Real waves = way.clusters / way.resident;
        const Real load = way.stream_k ? waves : ceil_of(waves);
        return {ctas, load, load, load, filled};
    }
    const Real waves = way.clusters / way.resident, full = floor_of(waves);
    const Real rest = (way.clusters - full * way.resident) * way.cluster;
    const Real load = full * c.ctas_per_sm + ceil_of(rest / Real(sms));
    const Real more =
        select(ctas <= places, way.packing * greater(Real(0.0), c.ctas_per_sm - load), Real(0.0));
    return {ctas, ceil_of(waves), load, load + more, filled};
}

inline Occupancy<double> occupancy_of(const Problem& p, const Candidate& candidate, int sm_count)
{
    return occupancy_of(numbers_of(configs[candidate.kernel]), way_of(p, candidate, sm_count), sm_count);
}

}  // namespace hg::sm90
