// Do two matrices in memory share elements? Told exactly, however their lines lie, in logarithmic time.
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

// Matrices of `lines` lines of `width` elements, `pitch` elements apart: the smallest distance between two
// of `count` matrices, `stride` elements apart, that share elements; 0 where none do. Negative strides lead
// backwards; width <= pitch.
int64_t overlapping_distance(int64_t stride, int64_t count, int64_t lines, int64_t pitch, int64_t width);

// The problems of a batch as one region, where their lines together lie like those of a matrix; else the
// first one alone. `stride` is the distance in bytes between `count` problems.
Region region_of_batch(const Region& problem, int64_t stride, int64_t count);

}  // namespace hg
