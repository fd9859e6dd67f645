// The raster: the order of tiles. The SMs of a GPC read L2 through one port, and a line that several of
// them request at about the same time passes it once. So tiles of one GPC should share operand rows.
#pragma once

#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/config.hpp"
#include "src/plan/backend.hpp"

#include <algorithm>
#include <cstdint>

namespace hg::sm90 {

// SMs of most GPCs.
constexpr int sms_per_gpc = 16;

// Up to this K a persistent kernel is limited by writes, so the order in which D is written matters.
constexpr int64_t row_order_k_max = 8 * tile_k;

struct Raster {
    bool along_n;   // consecutive tiles lie along N, else along M
    int32_t group;  // rows (or columns, with along_n) of tiles that are walked together
    bool remapped;  // by remap_by_gpc()
};

// Is there one wave, of one CTA an SM, on a whole device? Then tiles can be placed by GPC, provided that
// the kernel runs with pdl=off: else its clusters get whatever SM is free.
bool fits_one_wave(const Config& config, int cluster, int64_t clusters, int sm_count);

// Rows of both operands that the tiles of one GPC read, in the best raster of a single wave.
int64_t rows_of_gpc(const Config& config, int cluster, int64_t clusters_m, int64_t clusters_n);

// At most that, whatever D's size is: tiles a x b of `count` or more read at least as many rows as a
// square.
constexpr int least_rows_of_gpc(const Config& c, int cluster)
{
    const int count = std::max(1, sms_per_gpc / cluster);
    const int area = 4 * count * c.tile_m * c.cluster_m * c.tile_n * c.cluster_n;
    int rows = 0;  // the square root
    while ((rows + 1) * (rows + 1) <= area)
        ++rows;
    return rows;
}

Raster choose_raster(const Config& config, const Plan& plan, int64_t clusters_m, int64_t clusters_n,
                     int64_t k, int sm_count);

// Raster::along_n where it is not known which clusters share a GPC.
bool rasters_along_n(const Config& config, int64_t clusters_m, int64_t clusters_n);

// Is the schedule dynamic? It pays after several waves, since GPC clocks differ by 1 or 2 %, and needs
// enough K tiles a tile that no role waits for the next index.
constexpr int min_dynamic_waves = 4, min_dynamic_k_tiles = 32;
constexpr bool schedules_dynamically(const Config& c, int64_t tiles, int64_t clusters, int64_t k_tiles)
{
    return can_schedule_dynamically(c) && k_tiles >= min_dynamic_k_tiles &&
           tiles >= min_dynamic_waves * clusters;
}

}  // namespace hg::sm90
