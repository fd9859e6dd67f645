// Groups of few rows, whose sizes lie in device memory. Each has its own B, and reading it takes most of
// the time. So wgmma's M are 64 columns of D, as with swap_ab, and its N are rows of a group: many CTAs
// read B at once. A CTA finds its tile by itself. There are CTAs for as many tiles as there may be, and
// those without one end.
//
// Rows of a tile past its group's end are those of the next group: they are multiplied, and not stored.
#pragma once

#include "arch/common/groups.cuh"
#include "arch/common/ptx/grid.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/mainloop.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

constexpr int32_t no_group = -1;

// Is it a tile of a group?
__device__ inline bool exists(const TileCoord& at) { return at.batch != no_group; }

// Each lane holds four groups, so that a warp waits once for the sizes of 128.
template <int Rows>
struct GroupsOfLane {
    static constexpr int count = 4, of_warp = 32 * count;
    GroupRows rows[count];

    __device__ GroupsOfLane(const Params& p, int32_t first)
    {
        const int32_t own = first + count * static_cast<int32_t>(ptx::lane_id());
#pragma unroll
        for (int i = 0; i < count; ++i)
            rows[i] =
                own + i < p.group_count ? GroupRows::of(p.groups, own + i, p.output.m) : GroupRows{0, 0};
    }

    // Tiles along the group's rows.
    __device__ int32_t row_tiles(int i) const { return (rows[i].count + Rows - 1) / Rows; }

    // Tile number `tile` of these groups. Those that read the same columns of a B follow each other.
    __device__ GroupTile at(int32_t tile, int32_t tiles_n) const
    {
        GroupTile found{};
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const int32_t tiles = row_tiles(i) * tiles_n;
            if (0 <= tile && tile < tiles) {
                const int32_t n = tile / row_tiles(i);
                found = {rows[i].first + (tile - n * row_tiles(i)) * Rows, rows[i].first + rows[i].count, n,
                         i};
            }
            tile -= tiles;
        }
        return found;
    }
};

struct GroupedWork {
    TileCoord at;
    int32_t end;  // the row after the group's last, in A and D
};

// Tile number `tile`: its group is at.batch, no_group if there is no such tile. Called by whole warps.
// Waits for earlier grids, which may write the sizes.
template <Config C>
__device__ inline GroupedWork find_tile_of_group(const Params& p, int32_t tile)
{
    static_assert(C.schedule == Schedule::SplitK && C.ctas() == 1);
    using Groups = GroupsOfLane<C.tile_n>;
    constexpr uint32_t all = 0xffffffff;
    const auto lane = static_cast<int32_t>(ptx::lane_id());
    ptx::wait_for_earlier_grids();
#pragma unroll 1
    for (int32_t first = 0; first < p.group_count; first += Groups::of_warp) {
        const Groups groups(p, first);
        int32_t own = 0;
#pragma unroll
        for (int i = 0; i < Groups::count; ++i)
            own += groups.row_tiles(i) * p.group_tiles_n;
        int32_t end = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int32_t before = __shfl_up_sync(all, end, step);
            end += lane >= step ? before : 0;
        }
        const int32_t tiles = __shfl_sync(all, end, 31);
        if (tile < tiles) {
            const int from = __ffs(static_cast<int>(__ballot_sync(all, tile < end))) - 1;
            const GroupTile found = groups.at(tile - (end - own), p.group_tiles_n);
            const auto of_lane = [&](int32_t value) { return __shfl_sync(all, value, from); };
            return {{of_lane(found.n) * C.tile_m, of_lane(found.row),
                     first + Groups::count * from + of_lane(found.batch)},
                    of_lane(found.end)};
        }
        tile -= tiles;
    }
    return {{0, 0, no_group}, 0};
}

}  // namespace hg::sm90
