// Order of the output tiles on and above the diagonal, for reuse in the L2 cache: bands of tile rows are
// walked column by column. Also compiled on the host.
//
//     0 1 3 6      A band begins with the tiles at the diagonal, whose columns have 1, 2, ... tiles. The
//       2 4 7      columns behind it have as many tiles as the band has rows. The last band has no columns
//         5 8      behind.
//           9
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/tile_order.hpp"

#include <cstdint>

namespace hg {

struct TriangleOrder {
    Divisor problem;  // tiles of a problem
    int32_t rows;     // of tiles, and columns
};

// Sixteen columns of a band are 128 tiles, about one wave of an H100, and read 8 rows and 16 columns.
constexpr int32_t band_rows = 8;

constexpr int64_t tiles_of_triangle(int64_t rows) { return rows * (rows + 1) / 2; }

constexpr TriangleOrder triangle_order(int32_t rows)
{
    return {divisor(static_cast<int32_t>(tiles_of_triangle(rows))), rows};
}

constexpr Tile tile_of_triangle(const TriangleOrder& order, int32_t index)
{
    constexpr auto at_diagonal = static_cast<int32_t>(tiles_of_triangle(band_rows));
    const int32_t batch = order.problem.quotient(index);
    int32_t rest = index - batch * order.problem.value, first = 0, behind = order.rows - band_rows;
    while (behind > 0 && rest >= at_diagonal + behind * band_rows) {
        rest -= at_diagonal + behind * band_rows;
        first += band_rows;
        behind -= band_rows;
    }
    if (behind > 0 && rest >= at_diagonal) {
        rest -= at_diagonal;
        return {first + rest % band_rows, first + band_rows + rest / band_rows, batch};
    }
    int32_t column = 0;
    while (rest > column)
        rest -= ++column;
    return {first + rest, first + column, batch};
}

}  // namespace hg
