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

// TFLOP/s of a square product, as microseconds.
constexpr double at(double tflops, double size) { return 2 * size * size * size / tflops * 1e-6; }

// What a rung stands for: constants of the model come from it or not, or what the model lacks.
constexpr const char *fitted = "fitted", *unused = "", *copies = "threads copy elements",
                     *narrow = "TMA boxes 16 bytes wide",
                     *order = "tiles in row order, whose operands L2 does not hold";

const std::vector<Rung> list = {
#define RUNG(source, name, technique, size, us, group, x, y, k, stages, overlap, stays, accumulators,      \
             store, writers, standing)                                                                     \
    {source,                                                                                               \
     name,                                                                                                 \
     technique,                                                                                            \
     size,                                                                                                 \
     us,                                                                                                   \
     {group, x, y, k, stages, overlap, stays, accumulators, store, writers},                               \
     standing == fitted || standing == unused ? nullptr : standing,                                        \
     standing == fitted},
#include "ladder.def"
#undef RUNG
};

constexpr Load published_loads[] = {{tilus, "v0", 0.2324, 1.75}, {tilus, "v1", 0.2102, 1.77},
                                    {tilus, "v2", 0.5755, 1.58}, {tilus, "v3", 0.7935, 1.41},
                                    {tilus, "v4", 0.8319, 1.40}, {tilus, "v5", 0.9399, 1.32},
                                    {tilus, "v6", 0.9606, 1.38}};

}  // namespace

const std::vector<Rung>& rungs() { return list; }

sm100::Work square(const Pipeline& p, int64_t size)
{
    const int64_t tiles_m = (size + p.tile_m - 1) / p.tile_m, tiles_n = (size + p.tile_n - 1) / p.tile_n;
    const double bytes = 2.0 * static_cast<double>(size * size);
    return {tiles_m * tiles_n, size, 2 * bytes, bytes};
}

sm100::Prediction Rung::predicted() const
{
    return predict_pipeline(pipeline, square(pipeline, size), sm_count);
}

const Load* load_of(const Rung& rung)
{
    for (const Load& load : published_loads)
        if (!std::strcmp(load.source, rung.source) && !std::strcmp(load.name, rung.name))
            return &load;
    return nullptr;
}

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
