// Order of output tiles, for reuse in the L2 cache: `group` rows of tiles are walked together, column by
// column, so that the tiles in flight share few rows of A and few of B. Also compiled on the host.
#pragma once

#include <cstdint>

namespace hg {

struct TileGrid {
    int32_t tiles_m, tiles_n, group;  // of one problem
};

struct Tile {
    int32_t m, n, batch;
};

constexpr Tile tile_at(const TileGrid& grid, int32_t index)
{
    const int32_t per_problem = grid.tiles_m * grid.tiles_n;
    const int32_t batch = index / per_problem;
    const int32_t rest = index - batch * per_problem;
    const int32_t per_group = grid.group * grid.tiles_n;
    const int32_t first_m = rest / per_group * grid.group;
    const int32_t left = grid.tiles_m - first_m;
    const int32_t rows = left < grid.group ? left : grid.group;
    const int32_t in_group = rest % per_group;
    return {first_m + in_group % rows, in_group / rows, batch};
}

}  // namespace hg
