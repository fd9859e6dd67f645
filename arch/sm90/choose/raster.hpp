// The raster: which tiles run side by side. The SMs of a GPC read L2 through one port, which fetches a line
// once that several of them ask for at about the same time: what a GPC's tiles share is free.
#pragma once

#include "arch/sm90/choose/model.hpp"
#include "arch/sm90/config.hpp"
#include "src/backend.hpp"

#include <cstdint>

namespace hg::sm90 {

// SMs of most GPCs.
constexpr int usual_gpc = 16;

// Up to this K the order in which D is written matters.
constexpr int64_t row_order_k_max = 8 * tile_k;

// How the clusters of a kernel get their tiles.
struct Raster {
    bool along_n;   // tiles that follow each other lie along N
    int32_t group;  // rows of tiles walked together: along N where along_n says so, else along M
    bool remapped;  // by remap_by_gpc()
};

// Can tiles be put next to each other: is there one wave, on a whole device? Only kernels that start when
// earlier ones have ended find their clusters where remap_by_gpc() says.
bool can_place(const Config& config, int cluster, int64_t clusters, int sm_count);

// Rows of both operands that the tiles of a GPC read, of one wave in the best raster.
int64_t rows_of_gpc(const Config& config, int cluster, int64_t clusters_m, int64_t clusters_n);

Raster choose_raster(const Config& config, const Plan& plan, int64_t clusters_m, int64_t clusters_n,
                     int64_t k, int sm_count);

// Numbers clusters of `ctas` CTAs, in the order of their launch, so that those of a GPC follow each other.
void remap_by_gpc(int ctas, int clusters, uint8_t* remap);

// Where nobody knows which clusters run side by side: do tiles that follow each other lie along N?
bool rasters_along_n(const Config& config, int64_t clusters_m, int64_t clusters_n);

// Do clusters fetch their tiles one at a time? Only where GEMMs are long enough: several waves, since some
// GPCs run at 1 or 2 % more than others, and so many K tiles that no role waits for the next index.
constexpr int min_dynamic_waves = 4, min_dynamic_k_tiles = 32;
constexpr bool schedules_dynamically(const Config& c, int64_t tiles, int64_t clusters, int64_t k_tiles)
{
    return can_schedule_dynamically(c) && k_tiles >= min_dynamic_k_tiles &&
           tiles >= min_dynamic_waves * clusters;
}

}  // namespace hg::sm90
