#include "arch/sm90/choose/model/occupancy.hpp"

#include "arch/common/host/pack.hpp"

namespace hg::sm90 {
namespace {

constexpr int64_t min_stream_k_tiles = 4;  // of a cluster

}  // namespace

double k_tiles_of(const Problem& p, int split)
{
    return ceil_of(ceil_of(static_cast<double>(p.k) / tile_k) / split);
}

KernelNumbers<double> numbers_of(const Config& c)
{
    const auto real = [](int x) { return static_cast<double>(x); };
    return {c.schedule,
            real(c.tile_m),
            real(c.tile_n),
            real(c.cluster_m),
            real(c.cluster_n),
            real(c.ctas_per_sm),
            real(c.consumers_per_tile())};
}

StreamShape stream_shape(const Config& c, int64_t tiles, int64_t k, int sm_count)
{
    const int64_t resident = resident_clusters(c.ctas_per_sm, c.ctas(), sm_count),
                  k_tiles = ceil_div(k, tile_k);
    const int64_t stream_tiles = tiles < resident        ? tiles
                                 : tiles % resident == 0 ? 0
                                                         : resident + tiles % resident;
    return {stream_tiles, std::min(resident, std::max<int64_t>(1, tiles * k_tiles / min_stream_k_tiles))};
}

int64_t persistent_clusters(const Problem& p, const Config& c, const Candidate& candidate, int sm_count)
{
    const int64_t resident = resident_clusters(c.ctas_per_sm, c.ctas(), sm_count);
    return candidate.stream_k ? stream_shape(c, candidate.clusters, p.k, sm_count).clusters
                              : ceil_div(candidate.clusters, ceil_div(candidate.clusters, resident));
}

Way<double> way_of(const Problem& p, const Candidate& candidate, int sm_count)
{
    const Config& c = configs[candidate.kernel];
    const int cluster = c.cluster_ctas(candidate.split);
    return {candidate.stream_k,
            candidate.pdl_off,
            static_cast<double>(candidate.split),
            k_tiles_of(p, candidate.split),
            static_cast<double>(candidate.launched_clusters()),
            static_cast<double>(cluster),
            static_cast<double>(resident_clusters(c.ctas_per_sm, cluster, sm_count)),
            packing[cluster],
            cluster_latency[cluster]};
}

}  // namespace hg::sm90
