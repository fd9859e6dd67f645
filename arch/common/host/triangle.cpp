#include "arch/common/host/triangle.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/facts.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t max_chunks = int64_t{1} << 30;

int64_t tiles_of(const TriangleMove& move) { return (move.n + triangle_tile - 1) / triangle_tile; }

}  // namespace

int64_t problems_of_triangle_launch(const TriangleMove& move)
{
    return std::max<int64_t>(max_chunks / triangle_chunks(tiles_of(move)), 1);
}

TriangleParams pack_triangle(const TriangleMove& move, int64_t first, int64_t count)
{
    const int64_t bytes = bytes_of(move.to.type), tiles = tiles_of(move), chunks = triangle_chunks(tiles);
    TriangleParams p{};
    const Matrix from = move.from.from(first, 0, 0), to = move.to.from(first, 0, 0);
    p.from = base_of<const void>(from);
    p.from_array = from.array;
    p.to = base_of<void>(to);
    p.to_array = to.array;
    p.from_ld = from.ld;
    p.from_stride = from.batch_stride;
    p.to_ld = move.to.ld;
    p.to_stride = move.to.batch_stride;
    p.n = static_cast<int32_t>(move.n);
    p.tiles = static_cast<int32_t>(tiles);
    p.chunks = static_cast<int32_t>(chunks * count);
    p.chunks_of_problem = divisor(static_cast<int32_t>(chunks));
    p.chunks_of_pair = divisor(static_cast<int32_t>(tiles + 1));
    p.words = move.to.type == Type::F32;
    p.vectors = !from.array && !to.array &&
                is_vector_aligned(p.from, p.from_ld, count > 1 ? p.from_stride : 0, bytes) &&
                is_vector_aligned(p.to, p.to_ld, count > 1 ? p.to_stride : 0, bytes);
    p.upper = move.upper;
    p.mirrored = move.mirrored;
    return p;
}

}  // namespace hg
