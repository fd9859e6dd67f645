#include "src/check/overlap.hpp"

#include <algorithm>

namespace hg {
namespace {

__extension__ using Wide = __int128;  // holds the product of two sizes

Wide floor_div(Wide x, Wide y) { return x / y - (x % y < 0); }
Wide floor_mod(Wide x, Wide y) { return x - floor_div(x, y) * y; }
Wide ceil_div(Wide x, Wide y) { return -floor_div(-x, y); }

uintptr_t end_of(const Region& r)
{
    return r.begin + static_cast<uintptr_t>((r.lines - 1) * std::max(r.pitch, r.width) + r.width);
}

// The smallest x >= 0 with low <= a * x mod m <= high, or -1; 0 <= a < m and 0 <= low <= high < m. Works
// like Euclid's algorithm: if no multiple of a lies in [low, high], find the smallest y such that one lies
// in [low + m * y, high + m * y].
Wide first_between(Wide a, Wide m, Wide low, Wide high)
{
    if (low == 0)
        return 0;
    if (a == 0)
        return -1;
    if (ceil_div(low, a) * a <= high)
        return ceil_div(low, a);
    const Wide rounds = first_between(m % a, a, floor_mod(-high, a), floor_mod(-low, a));
    return rounds < 0 ? -1 : ceil_div(low + m * rounds, a);
}

// The smallest x >= 0 with (a * x + b) mod m <= limit, or -1.
Wide first_at_most(Wide a, Wide b, Wide m, Wide limit)
{
    const Wide start = floor_mod(b, m);
    if (start <= limit)
        return 0;
    return first_between(floor_mod(a, m), m, m - start, m - start + limit);
}

}  // namespace

// Line i of y begins at distance + i * y.pitch from x. It overlaps line h of x if
// -y.width < distance + i * y.pitch - h * x.pitch < x.width.
bool overlap(const Region& x, const Region& y)
{
    if (end_of(x) <= y.begin || end_of(y) <= x.begin)
        return false;
    const Wide distance = static_cast<Wide>(y.begin) - static_cast<Wide>(x.begin);
    const Wide pitch_x = std::max(x.pitch, x.width), pitch_y = std::max(y.pitch, y.width);
    // The lines of y that end after the first byte of x and begin before its last one.
    const Wide first = std::max<Wide>(0, ceil_div(1 - y.width - distance, pitch_y));
    const Wide last =
        std::min<Wide>(y.lines - 1, floor_div((x.lines - 1) * pitch_x + x.width - 1 - distance, pitch_y));
    if (first > last)
        return false;
    // A line of y overlaps x if a line of x begins within x.width + y.width - 2 bytes before its end.
    const Wide end = distance + first * pitch_y + y.width - 1;
    const Wide steps = first_at_most(pitch_y, end, pitch_x, static_cast<Wide>(x.width) + y.width - 2);
    return steps >= 0 && steps <= last - first;
}

int64_t overlapping_distance(int64_t stride, int64_t count, int64_t lines, int64_t pitch, int64_t width)
{
    if (count < 2)
        return 0;
    if (stride == 0)
        return 1;
    const Wide step = stride < 0 ? -static_cast<Wide>(stride) : stride;
    const Wide line = std::max(pitch, width), reach = width - 1;
    // Matrices with a greater difference of indices cannot overlap.
    const Wide furthest = std::min<Wide>(count - 1, ((lines - 1) * line + reach) / step);
    if (furthest < 1)
        return 0;
    // Two lines overlap if they begin at most `reach` elements apart.
    const Wide more = first_at_most(step, step + reach, line, 2 * reach);
    return more >= 0 && more + 1 <= furthest ? static_cast<int64_t>(more + 1) : 0;
}

Region region_of_batch(const Region& r, int64_t stride, int64_t count)
{
    if (count < 2 || stride == 0)
        return r;
    const bool behind = r.lines == 1 ? stride >= r.width : stride == r.lines * r.pitch;
    if (behind && r.lines == 1)
        return {r.begin, count, stride, r.width};
    if (behind)
        return {r.begin, r.lines * count, r.pitch, r.width};
    const bool beside = stride == r.width && r.width <= r.pitch / count;
    return beside ? Region{r.begin, r.lines, r.pitch, r.width * count} : r;
}

}  // namespace hg
