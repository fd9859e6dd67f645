// Groups of rows whose sizes lie in device memory: which tile of which group has a given number. Tiles of a
// group follow each other along its rows, so that those in flight read the same columns of B; high groups
// are walked in bands, so that the tiles in flight form a block whose sides are about equal.
#pragma once

#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"

namespace hg {

// A tile: rows `row` ... `end` - 1 of A and D, if it is so high, and column `n` of tiles. `batch`: the
// group.
struct GroupTile {
    int32_t row, end, n, batch;
};

// Rows first ... first + count - 1 of A and D. What lies outside of 0 ... m is cut off.
struct GroupRows {
    int32_t first, count;

    __device__ static GroupRows of(const Groups& groups, int32_t group, int64_t m)
    {
        if (groups.counts)
            return {0, cut(groups.counts[group], 0, m)};
        const int32_t first = cut(groups.offsets[group], 0, m);
        return {first, cut(groups.offsets[group + 1], first, m) - first};
    }

    __device__ static int32_t cut(int64_t value, int64_t least, int64_t most)
    {
        return static_cast<int32_t>(max(least, min(value, most)));
    }
};

// A walk along the tiles, of Rows rows. Whole warps: a lane knows one group of a chunk of 32.
template <int Rows>
class GroupWalk {
public:
    // Begins with tile number `tile`. `m`: rows of all groups, or those that each has room for; `across`:
    // tiles that lie along columns.
    __device__ GroupWalk(const Groups& groups, int32_t count, int64_t m, int32_t across, int32_t tile)
        : groups_(groups), m_(m), count_(count), across_(across), tile_(tile)
    {
        take_chunk();
    }

    __device__ void advance(int32_t tiles) { tile_ += tiles; }

    // False behind the last tile.
    __device__ bool find(GroupTile& at)
    {
        int32_t tiles = __shfl_sync(all, end_, 31);
        while (tile_ >= tiles) {
            tile_ -= tiles;
            chunk_ += 32;
            if (chunk_ >= count_)
                return false;
            take_chunk();
            tiles = __shfl_sync(all, end_, 31);
        }
        const int lane = __ffs(static_cast<int>(__ballot_sync(all, tile_ < end_))) - 1;
        const int32_t within = tile_ - __shfl_sync(all, begin_, lane);
        const int32_t first = __shfl_sync(all, rows_.first, lane),
                      count = __shfl_sync(all, rows_.count, lane);
        const int32_t first_of_band = within / (band_tiles * across_) * band_tiles;
        const int32_t along = min(band_tiles, ceil_div(count) - first_of_band);
        const int32_t left = within - first_of_band * across_, n = left / along;
        at = {first + (first_of_band + left - n * along) * Rows, first + count, n, chunk_ + lane};
        return true;
    }

    // Once that was false: how many tiles behind the last.
    __device__ int32_t behind() const { return tile_; }

private:
    static constexpr uint32_t all = 0xffffffff;
    static constexpr int32_t band_tiles = 1536 / Rows;

    const Groups& groups_;
    const int64_t m_;
    const int32_t count_, across_;
    int32_t tile_, chunk_ = 0;  // `tile_` counts from the first tile of the chunk
    GroupRows rows_;
    int32_t begin_, end_;  // of the group's tiles, likewise

    __device__ static int32_t ceil_div(int32_t rows) { return (rows + Rows - 1) / Rows; }

    __device__ void take_chunk()
    {
        const auto lane = static_cast<int>(ptx::lane_id());
        rows_ = chunk_ + lane < count_ ? GroupRows::of(groups_, chunk_ + lane, m_) : GroupRows{0, 0};
        const int32_t tiles = ceil_div(rows_.count) * across_;
        end_ = tiles;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int32_t before = __shfl_up_sync(all, end_, step);
            end_ += lane >= step ? before : 0;
        }
        begin_ = end_ - tiles;
    }
};

}  // namespace hg
