// Groups of rows whose sizes lie in device memory: finds the tile with a given index. Consecutive tiles of
// a group lie along M, so that those in flight read the same columns of B; groups with many rows are walked
// in bands, so that the tiles in flight form a block with about equal sides.
#pragma once

#include "arch/common/finish.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"

namespace hg {

// A tile: rows row ... end - 1 of A and D, or fewer if the tile has fewer, and column `n` of tiles.
// `batch`: the group.
struct GroupTile {
    int32_t row, end, n, batch;
};

// The rows of a group in A and D: first ... first + count - 1. Sizes outside of 0 ... m, counted from the
// origin, are clamped.
struct GroupRows {
    int32_t first, count;

    __device__ static GroupRows of(const Groups& groups, int32_t group, int64_t m)
    {
        if (groups.masked())
            return {0, clamp(size_at(groups, group), 0, m)};
        const int32_t end = group + (groups.by == GroupsBy::Offsets ? 1 : 0);
        const int32_t first = end > 0 ? clamp(size_at(groups, end - 1), 0, m) : 0;
        return {first, clamp(size_at(groups, end), first, m) - first};
    }

    // Less than 0: it lies before the origin.
    __device__ static int64_t size_at(const Groups& groups, int32_t i)
    {
        const int64_t size = groups.narrow ? static_cast<const int32_t*>(groups.sizes)[i]
                                           : static_cast<const int64_t*>(groups.sizes)[i];
        return size - groups.origin;
    }

    __device__ static int32_t clamp(int64_t value, int64_t low, int64_t high)
    {
        return static_cast<int32_t>(max(low, min(value, high)));
    }
};

// A group without K leaves beta * C, as a problem without K does: see Problem::multiply_nothing().
__device__ inline Scalars scalars_of_k_group(const Scalars& s, int32_t count)
{
    return {count > 0 ? s.alpha : s.beta != 0.0f ? -0.0f : 0.0f, s.beta};
}

// Walks over all tiles, of Rows rows each. Called by whole warps: each lane holds one group of a chunk of
// 32.
template <int Rows>
class GroupWalk {
public:
    // Begins with tile index `tile`. `m`: rows of all groups together, or the rows that each has room for;
    // `tiles_n`: tiles along N.
    __device__ GroupWalk(const Groups& groups, int32_t count, int64_t m, int32_t tiles_n, int32_t tile)
        : groups_(groups), m_(m), count_(count), tiles_n_(tiles_n), tile_(tile)
    {
        load_chunk();
    }

    __device__ void advance(int32_t tiles) { tile_ += tiles; }

    // Finds the current tile; returns false after the last one.
    __device__ bool find(GroupTile& at)
    {
        int32_t tiles = __shfl_sync(all, end_, 31);
        while (tile_ >= tiles) {
            tile_ -= tiles;
            chunk_ += 32;
            if (chunk_ >= count_)
                return false;
            load_chunk();
            tiles = __shfl_sync(all, end_, 31);
        }
        const int lane = __ffs(static_cast<int>(__ballot_sync(all, tile_ < end_))) - 1;
        const int32_t within = tile_ - __shfl_sync(all, begin_, lane);
        const int32_t first = __shfl_sync(all, rows_.first, lane),
                      count = __shfl_sync(all, rows_.count, lane);
        const int32_t first_of_band = within / (band_tiles * tiles_n_) * band_tiles;
        const int32_t band_rows = min(band_tiles, ceil_div(count) - first_of_band);
        const int32_t in_band = within - first_of_band * tiles_n_, n = in_band / band_rows;
        at = {first + (first_of_band + in_band - n * band_rows) * Rows, first + count, n, chunk_ + lane};
        return true;
    }

    // After find() has returned false: how far the index is past the last tile.
    __device__ int32_t past_end() const { return tile_; }

private:
    static constexpr uint32_t all = 0xffffffff;
    static constexpr int32_t band_tiles = 1536 / Rows;

    const Groups& groups_;
    const int64_t m_;
    const int32_t count_, tiles_n_;
    int32_t tile_, chunk_ = 0;  // `tile_`: counted from the chunk's first tile
    GroupRows rows_;
    int32_t begin_, end_;  // of the lane's group: its tiles, counted like `tile_`

    __device__ static int32_t ceil_div(int32_t rows) { return (rows + Rows - 1) / Rows; }

    __device__ void load_chunk()
    {
        const auto lane = static_cast<int>(ptx::lane_id());
        rows_ = chunk_ + lane < count_ ? GroupRows::of(groups_, chunk_ + lane, m_) : GroupRows{0, 0};
        const int32_t tiles = ceil_div(rows_.count) * tiles_n_;
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
