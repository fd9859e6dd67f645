// Parameters are those of the published sources. Where a source tunes itself they are its largest tile, as
// shared memory allows.
#include "ladder.hpp"

#include <cstring>

namespace hg::evidence {
namespace {

using sm100::Overlap;
using sm100::Pipeline;
using sm100::Store;

constexpr Overlap nothing = Overlap::Nothing, loads = Overlap::Loads, products = Overlap::Products;
constexpr Store boxes = Store::Boxes, rows = Store::Rows, waited = Store::Waited;

constexpr const char* tilus = "NVIDIA/tilus";
constexpr const char* book = "Modern GPU Programming";
constexpr const char* learn = "gau-nernst/learn-cuda";

constexpr const char* copies = "threads copy the operands one by one";
constexpr const char* narrow = "TMA boxes 16 bytes wide";
constexpr const char* order = "tiles in row order, whose operands L2 does not hold";

// TFLOP/s of a square product, as microseconds.
constexpr double at(double tflops, double size) { return 2 * size * size * size / tflops * 1e-6; }

// group, x, y, tile_k, stages, overlap, persistent, accumulators, store
const std::vector<Rung> list = {
    {tilus, "v0", "cp.async", 8192, 2240.0, {1, 128, 256, 64, 1, nothing, false, 1, rows}, nullptr},
    {tilus, "v1", "TMA", 8192, 2420.0, {1, 128, 256, 64, 1, nothing, false, 1, waited}, nullptr},
    {tilus, "v2", "stages", 8192, 996.67, {1, 128, 256, 64, 4, loads, false, 1, waited}, nullptr, true},
    {tilus,
     "v3",
     "warps with roles",
     8192,
     813.76,
     {1, 128, 256, 64, 4, products, false, 1, waited},
     nullptr,
     true},
    {tilus, "v4", "tile order", 8192, 776.29, {1, 128, 256, 64, 4, products, false, 1, waited}, nullptr},
    {tilus,
     "v5",
     "CLC, 2 accumulators",
     8192,
     729.95,
     {1, 128, 256, 64, 4, products, true, 2, waited},
     nullptr},
    {tilus, "v6", "pairs", 8192, 682.85, {2, 256, 256, 64, 6, products, true, 2, waited}, nullptr},

    {book,
     "step 1",
     "one tile at a time",
     4096,
     70000.0,
     {1, 128, 128, 64, 1, nothing, false, 1, rows},
     copies},
    {book, "step 3", "many tiles", 4096, 53642.159, {1, 128, 128, 64, 1, nothing, false, 1, rows}, copies},
    {book, "step 4", "TMA", 4096, 493.814, {1, 128, 128, 64, 1, nothing, false, 1, boxes}, nullptr, true},
    {book,
     "step 7",
     "stages, warps with roles",
     4096,
     226.613,
     {1, 128, 128, 64, 2, products, true, 1, boxes},
     nullptr,
     true},
    {book, "step 8", "pairs", 4096, 103.529, {2, 256, 256, 64, 4, products, true, 1, boxes}, nullptr, true},
    {book,
     "step 9",
     "two consumers",
     4096,
     94.139,
     {2, 512, 256, 64, 4, products, true, 1, boxes, 2},
     nullptr},

    {learn,
     "v1b",
     "tcgen05",
     4096,
     at(254.37, 4096),
     {1, 128, 256, 256, 1, nothing, false, 1, rows},
     narrow},
    {learn,
     "v2b",
     "128-byte swizzle",
     4096,
     at(721.02, 4096),
     {1, 128, 256, 256, 1, nothing, false, 1, rows},
     nullptr,
     true},
    {learn, "v3", "stages", 4096, at(914.42, 4096), {1, 128, 256, 128, 2, loads, false, 1, rows}, nullptr},
    {learn,
     "v4",
     "warps with roles",
     4096,
     at(1053.61, 4096),
     {1, 128, 128, 64, 7, products, false, 1, rows},
     nullptr,
     true},
    {learn,
     "v5",
     "pairs",
     4096,
     at(1169.65, 4096),
     {2, 256, 256, 64, 7, products, false, 1, rows},
     nullptr,
     true},
    {learn,
     "v6",
     "static, 2 accumulators",
     4096,
     at(1273.32, 4096),
     {2, 256, 256, 64, 7, products, true, 2, rows},
     nullptr},
    {learn,
     "v7a",
     "small details",
     4096,
     at(1293.38, 4096),
     {2, 256, 256, 64, 7, products, true, 2, rows},
     nullptr},
    {learn,
     "v7b",
     "128 CTAs",
     4096,
     at(1316.16, 4096),
     {2, 256, 256, 64, 7, products, true, 2, rows},
     nullptr},
    {learn, "v7a", "", 2048, at(930.34, 2048), {2, 256, 256, 64, 7, products, true, 2, rows}, nullptr},
    {learn, "v7a", "", 8192, at(1283.26, 8192), {2, 256, 256, 64, 7, products, true, 2, rows}, order},
};

}  // namespace

const std::vector<Rung>& rungs() { return list; }

sm100::Work square(const Pipeline& p, int64_t size)
{
    const int64_t along_x = (size + p.x - 1) / p.x, along_y = (size + p.y - 1) / p.y;
    const double bytes = 2.0 * static_cast<double>(size * size);
    return {along_x * along_y, size, 2 * bytes, bytes};
}

double Rung::predicted_us() const { return predict(pipeline, square(pipeline, size), sm_count).us; }

const Rung* before(const Rung& rung)
{
    const Rung* previous = &rung - 1;
    const bool same = &rung != &list.front() && !std::strcmp(previous->source, rung.source) &&
                      previous->size == rung.size;
    return same ? previous : nullptr;
}

double step_error(const Rung& rung, const Rung& earlier)
{
    const double predicted = earlier.predicted_us() / rung.predicted_us();
    return predicted / (earlier.published_us / rung.published_us) - 1;
}

}  // namespace hg::evidence
