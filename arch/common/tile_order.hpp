// Raster order of the output tiles, for reuse in the L2 cache: `group` rows of tiles are walked together,
// column by column, so that the tiles in flight share few rows of A and few columns of B. Also compiled on
// the host.
#pragma once

#include "arch/common/divisor.hpp"

namespace hg {

struct TileGrid {
    Divisor problem, group;      // tiles of a problem; of a group of tile rows
    Divisor rows, rows_of_last;  // tile rows of a group; of the last group
    int32_t tiles_m;
};

// A group has at most all rows of tiles, which also keeps its number of tiles within 32 bits.
constexpr TileGrid tile_grid(int32_t tiles_m, int32_t tiles_n, int32_t group)
{
    group = group < tiles_m ? group : tiles_m;
    const int32_t rest = tiles_m % group;
    return {divisor(tiles_m * tiles_n), divisor(group * tiles_n), divisor(group),
            divisor(rest ? rest : group), tiles_m};
}

struct Tile {
    int32_t m, n, batch;
};

constexpr Tile tile_at(const TileGrid& grid, int32_t index)
{
    const int32_t batch = grid.problem.quotient(index);
    const int32_t rest = index - batch * grid.problem.value;
    const int32_t group = grid.group.quotient(rest);
    const int32_t in_group = rest - group * grid.group.value;
    const int32_t first_m = group * grid.rows.value;
    const bool last = first_m + grid.rows.value > grid.tiles_m;
    const Divisor& rows = last ? grid.rows_of_last : grid.rows;
    const int32_t n = rows.quotient(in_group);
    return {first_m + in_group - n * rows.value, n, batch};
}

}  // namespace hg
