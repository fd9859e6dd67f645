#include "arch/sm90/choose/raster.hpp"

#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// Consecutive tiles, walked `group` by `group`; together they read `rows` rows of A and B.
struct Block {
    int group, rows;
};

constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }

// Rows of A and B that `count` consecutive tiles read, `side` and `other_side` a tile.
int rows_read(int count, int group, int side, int tiles, int other_side)
{
    const int across = std::min(divide_up(count, group), tiles);
    return divide_up(count, group * across) * group * side + across * other_side;
}

// The block of `count` tiles that reads the fewest rows; of equals, one whose group divides both counts.
Block best_block(int count, int side, int tiles, int other_side, int other_tiles)
{
    Block best{1, INT32_MAX};
    for (int group = 1; group <= std::min(count, tiles); ++group) {
        const int ragged = count % group != 0 || tiles % group != 0;
        const int rows = rows_read(count, group, side, other_tiles, other_side) + ragged;
        if (rows < best.rows)
            best = {group, rows};
    }
    return best;
}

struct CompactRaster {
    Block block;
    bool along_n;
};

// Of a single wave: `clusters_m` and `clusters_n` are few.
CompactRaster best_raster(const Config& c, int cluster, int clusters_m, int clusters_n)
{
    const int count = std::max(1, sms_per_gpc / cluster);
    const int m = c.tile_m * c.cluster_m, n = c.tile_n * c.cluster_n;
    const Block along_m = best_block(count, m, clusters_m, n, clusters_n);
    const Block along_n = best_block(count, n, clusters_n, m, clusters_m);
    return along_n.rows < along_m.rows ? CompactRaster{along_n, true} : CompactRaster{along_m, false};
}

// With small K, persistent kernels are limited by writes to D: whole rows of D, one after the other, are
// fastest up to one_row_k_max, if there are several waves, and groups of 1,024 rows up to row_order_k_max.
// EXPERIMENTS.md#schedule-and-raster.
constexpr int64_t one_row_k_max = 2 * tile_k, min_waves_by_row = 4, rows_walked = 1024;

// How many rows of tiles are walked together; a tile has `side` rows.
int32_t group_of(int side, int other_side, int64_t k, bool persistent, bool several_waves, int sm_count)
{
    const int32_t square = square_group(side, other_side, sm_count);
    if (!persistent || k > row_order_k_max)
        return square;
    if (k <= one_row_k_max)
        return several_waves ? 1 : square;
    return std::min(square, std::max(1, static_cast<int32_t>(rows_walked / side)));
}

}  // namespace

bool fits_one_wave(const Config& c, int cluster, int64_t clusters, int sm_count)
{
    return c.ctas_per_sm == 1 && sm_count == max_remapped_clusters &&
           clusters <= resident_clusters(c.ctas_per_sm, cluster, sm_count);
}

int64_t rows_of_gpc(const Config& c, int cluster, int64_t clusters_m, int64_t clusters_n)
{
    return best_raster(c, cluster, static_cast<int>(clusters_m), static_cast<int>(clusters_n)).block.rows;
}

// Consecutive clusters often run at the same time, and L2 is faster the fewer rows they read in all. Along
// the longer side of a cluster, multicast already shares what its neighbours would: hence the factor 3/2.
bool rasters_along_n(const Config& c, int64_t clusters_m, int64_t clusters_n)
{
    constexpr int window = 8;
    const auto at_most_window = [](int64_t clusters) {
        return static_cast<int>(std::min<int64_t>(window, clusters));
    };
    const int m = c.tile_m * c.cluster_m, n = c.tile_n * c.cluster_n;
    const int along_m = rows_read(window, at_most_window(clusters_m), m, INT32_MAX, n) *
                        (c.cluster_m > c.cluster_n ? 3 : 2);
    const int along_n = rows_read(window, at_most_window(clusters_n), n, INT32_MAX, m) *
                        (c.cluster_n > c.cluster_m ? 3 : 2);
    if (along_m != along_n)
        return along_n < along_m;
    return c.cluster_m != c.cluster_n ? c.cluster_m > c.cluster_n : clusters_n < clusters_m;
}

Raster choose_raster(const Config& c, const Plan& plan, int64_t clusters_m, int64_t clusters_n, int64_t k,
                     int sm_count)
{
    const int m = c.tile_m * c.cluster_m, n = c.tile_n * c.cluster_n;
    const int64_t clusters = plan.grid / plan.cluster;
    if (!plan.uses_pdl() && clusters == plan.tiles * c.clusters_per_tile(plan.split) &&
        fits_one_wave(c, plan.cluster, clusters, sm_count)) {
        const CompactRaster best =
            best_raster(c, plan.cluster, static_cast<int>(clusters_m), static_cast<int>(clusters_n));
        return {best.along_n, best.block.group, plan.cluster > 1};
    }
    const bool along_n = k <= one_row_k_max ? plan.swap_ab : rasters_along_n(c, clusters_m, clusters_n);
    const bool several_waves = plan.tiles >= min_waves_by_row * clusters;
    const int side = along_n ? n : m, other_side = along_n ? m : n;
    return {along_n, group_of(side, other_side, k, !c.is_split(), several_waves, sm_count), false};
}

}  // namespace hg::sm90
