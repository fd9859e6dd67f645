#include "arch/sm90/choose/candidates.hpp"

#include "arch/sm90/choose/details.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/params.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// An owner gives up where slices do not run at the same time, and the last one then does all the adding:
// that is slow.
bool can_reduce_globally(const Config& c, int64_t clusters, int split, const Options& o, int sm_count)
{
    if (split == 1)
        return true;
    const int64_t partial_words = global_partial_words(c, clusters, split);
    return clusters * split <= resident_clusters(c.ctas_per_sm, c.ctas(), sm_count) &&
           static_cast<size_t>(arrival_words(c, clusters) + partial_words) <= o.counters &&
           static_cast<size_t>(partial_words) * sizeof(uint32_t) <= o.workspace;
}

Ways without_slices_above(int64_t most, Ways ways)
{
    return most >= max_slices ? ways : ways & ((Ways{2} << most) - 1);
}

template <typename Condition>
Ways filter(Ways ways, Condition condition)
{
    for (Ways left = ways; left != 0; left &= left - 1)
        if (!condition(std::countr_zero(left)))
            ways &= ~(left & -left);
    return ways;
}

Ways legal_slices(const Problem& p, int kernel, int64_t clusters, const Options& o, int sm_count)
{
    const Config& c = configs[kernel];
    // A split-K kernel launches all its CTAs at once: a limit of SMs holds only if they are as few.
    const int64_t most_ctas = o.sm_limit > 0 ? sm_count : INT32_MAX;
    const int64_t most =
        std::min({most_ctas / (clusters * c.ctas()), std::max(int64_t{1}, ceil_div(p.k, tile_k)),
                  int64_t{o.mode == Mode::BatchInvariant ? 1 : max_slices},
                  int64_t{sm_count * c.ctas_per_sm / c.ctas()},
                  int64_t{o.max_cluster == 0 || c.is_global() ? max_slices : o.max_cluster / c.ctas()}});
    const Ways ways = without_slices_above(most, legal_splits[kernel]);
    return !c.is_global() ? ways : filter(ways, [&](int split) {
        return can_reduce_globally(c, clusters, split, o, sm_count);
    });
}

}  // namespace

bool can_stream_k(const Problem& p, const Config& c, int64_t clusters, const Options& o, int sm_count)
{
    const StreamShape shape = stream_shape(c, clusters, p.k, sm_count);
    const int64_t length = shape.tiles * ceil_div(p.k, tile_k);
    return o.mode != Mode::BatchInvariant && shape.tiles > 0 && shape.clusters > 1 &&
           length < INT32_MAX / shape.clusters &&
           static_cast<size_t>(stream_k_words(c, shape.tiles)) < o.counters &&
           static_cast<size_t>(stream_k_bytes(c, shape.clusters)) <= o.workspace;
}

Ways legal_ways(const Facts& f, int kernel, bool swap_ab, int64_t clusters, const Options& o, int sm_count)
{
    const Config& c = configs[kernel];
    if (clusters > max_tiles || is_forced_away(o, kernels[kernel]) || !o.takes_cluster(c.ctas()) ||
        (o.swap_ab != SwapAb::Free && (o.swap_ab == SwapAb::On) != swap_ab) || !can_store(c, f, swap_ab))
        return 0;
    constexpr Ways streaming = Ways{1} << stream_k_way;
    Ways ways = 0;
    if (c.is_split())
        ways = legal_slices(f.problem, kernel, clusters, o, sm_count);
    else if (sm_count >= c.ctas())
        ways = Ways{2} | (can_stream_k(f.problem, c, clusters, o, sm_count) ? streaming : 0);
    if (o.stream_k != StreamK::Free)
        ways &= o.stream_k == StreamK::On ? streaming : ~streaming;
    if (o.split > 0)
        ways &= o.split == 1 ? Ways{2} | streaming : o.split <= max_slices ? Ways{1} << o.split : 0;
    return ways;
}

// Tiles can be placed by GPC if the kernel starts on an idle device and all of them run at a time.
Ways ways_with(bool pdl_off, Ways ways, int kernel, int64_t clusters, const Options& o, int sm_count)
{
    const Config& c = configs[kernel];
    if (o.pdl != Pdl::Free)
        return pdl_off == (o.pdl == Pdl::Off) ? ways : 0;
    if (!pdl_off)
        return ways;
    if (!c.is_split() || !fits_one_wave(c, c.ctas(), clusters, sm_count))
        return 0;
    return filter(ways, [&](int split) {
        return fits_one_wave(c, c.cluster_ctas(split), clusters * c.clusters_per_tile(split), sm_count);
    });
}

bool is_legal(const Facts& f, const Candidate& candidate, const Options& o, int sm_count)
{
    const auto& [kernel, swap_ab, split, stream_k, clusters, pdl_off] = candidate;
    const Ways ways = legal_ways(f, kernel, swap_ab, clusters, o, sm_count);
    return ways_with(pdl_off, ways, kernel, clusters, o, sm_count) >> (stream_k ? stream_k_way : split) & 1;
}

// Many slices gain where D is a tile or two and K so deep that all of them stay long; with four tiles, or
// fewer K tiles a slice, few slices were faster (H200, EXPERIMENTS.md#split-k).
bool are_many_slices_worthy(const Problem& p, int64_t clusters, int split)
{
    constexpr int64_t max_tiles = 2, min_k_tiles = 24;
    return clusters <= max_tiles && ceil_div(p.k, tile_k) >= min_k_tiles * split;
}

// Not worth trying, unless forced: SplitKGlobal with few slices that leave a quarter of the device idle
// (SplitK was faster wherever both were measured) or with one slice (measured for few problems); four CTAs
// an SM with tile N of 32 and more, except for low-intensity batches (not measured for others).
Ways worthy_ways(const Problem& p, Ways ways, int kernel, int64_t clusters, const Options& o, int sm_count)
{
    const Config& c = configs[kernel];
    if (*o.kernel)
        return ways;
    if (c.ctas_per_sm == 4 && c.tile_n >= 32 && !is_low_intensity_batch(p))
        return 0;
    return !c.is_global() ? ways : filter(ways, [&](int split) {
        return split > few_slices ? split == o.split || are_many_slices_worthy(p, clusters, split)
                                  : split > 1 && 4 * clusters * split * c.ctas() >= 3 * sm_count;
    });
}

}  // namespace hg::sm90
