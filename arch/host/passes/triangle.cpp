#include "arch/host/passes/triangle.hpp"

#include "arch/host/epilogue.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t tile = 32;  // rows and columns that stay in the cache while they are transposed

// The part of problem z of `count` rows from `i0` on.
template <typename Element>
void move_rows(const TriangleMove& move, int64_t z, int64_t i0, int64_t count)
{
    const int64_t ld = move.to.ld, from_ld = move.from.ld;
    int64_t from_first, to_first;
    const auto* const from = static_cast<const Element*>(base(move.from, z, from_first)) + from_first;
    auto* const to = static_cast<Element*>(base(move.to, z, to_first)) + to_first;
    for (int64_t j0 = move.upper ? i0 / tile * tile : 0; j0 < (move.upper ? move.n : i0 + count);
         j0 += tile)
        for (int64_t i = i0; i < i0 + count; ++i) {
            const int64_t apart = move.mirrored ? 1 : 0;  // from the diagonal
            const int64_t begin = move.upper ? std::max(j0, i + apart) : j0;
            const int64_t end = std::min(j0 + tile, move.upper ? move.n : i + 1 - apart);
            for (int64_t j = begin; j < end; ++j)
                (move.mirrored ? to[j * ld + i] : to[i * ld + j]) = from[i * from_ld + j];
        }
}

template <typename Element>
void move_all(Pool& pool, const TriangleMove& move, int threads)
{
    // Fewer elements are not worth a second thread.
    constexpr int64_t elements_of_part = int64_t{1} << 15;
    const int64_t bands = (move.n + tile - 1) / tile;
    const auto parts = std::clamp<int64_t>(move.batch * move.n * move.n / elements_of_part, 1, threads);
    pool.parallel_for(static_cast<int>(parts), move.batch * bands, [&](int64_t begin, int64_t end) {
        for (int64_t band = begin; band < end; ++band) {
            const int64_t z = band / bands, i0 = (band - z * bands) * tile;
            move_rows<Element>(move, z, i0, std::min(tile, move.n - i0));
        }
    });
}

}  // namespace

void move_triangle(Pool& pool, const TriangleMove& move, int threads)
{
    if (move.to.type == Type::F32)
        move_all<uint32_t>(pool, move, threads);
    else
        move_all<uint16_t>(pool, move, threads);
}

}  // namespace hg
