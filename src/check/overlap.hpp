// Do two matrices in memory share elements? The answer is exact, for any strides, in logarithmic time. A
// line is a contiguous run: a row of a row-major matrix, a column of a column-major one.
#pragma once

#include <cstdint>

namespace hg {

// `lines` lines of `width` bytes each, `pitch` bytes apart; lines >= 1, 1 <= width, and width <= pitch
// where there are several lines.
struct Region {
    uintptr_t begin;
    int64_t lines, pitch, width;
};

bool overlap(const Region& x, const Region& y);

// For `count` matrices, `stride` elements apart, each of `lines` lines of `width` elements, `pitch`
// elements apart: the smallest difference of indices of two that share elements; 0 where none do. `stride`
// may be negative; width <= pitch.
int64_t overlapping_distance(int64_t stride, int64_t count, int64_t lines, int64_t pitch, int64_t width);

// The problems of a batch as one region, if their lines together form a matrix; else the first problem
// alone. `stride` is the distance in bytes between `count` problems.
Region region_of_batch(const Region& problem, int64_t stride, int64_t count);

}  // namespace hg
