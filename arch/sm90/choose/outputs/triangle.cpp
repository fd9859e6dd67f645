#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/common/triangle_order.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/candidates.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/details.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/params.hpp"
#include "src/plan/backend.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// Rows of tiles. For each tile a role steps through the bands before it.
constexpr int64_t max_rows = 1024;

int64_t rows_of(const Problem& p) { return ceil_div(p.n, int64_t{triangle_configs[0].tile_n}); }

int64_t tiles_of(const Problem& p) { return p.batch * tiles_of_triangle(rows_of(p)); }

const char* refusal_of(const Facts& f, const Options& o)
{
    const Problem& p = f.problem;
    if (is_forced_away(o, kernels[first_triangle]) || o.split > 1 || o.swap_ab == SwapAb::On)
        return "what was forced does not fit";
    if (p.k == 0)
        return "k is 0";
    if (const char* const why_not = tma_refusal(f))
        return why_not;
    if (f.a.major != f.b.major)
        return "A and B are contiguous along different dimensions";
    if (p.d.type != p.type_ab || epilogue_of(triangle_configs[0], f, false) == Epilogue::General)
        return "TMA cannot store D in the type of A and B, or load C";
    return rows_of(p) > max_rows || tiles_of(p) > max_tiles ? "D is too large" : nullptr;
}

// The model and calibrations know the kernel of the same tile that computes all of D, here with fewer
// tiles.
Candidate candidate_of(const Problem& p, bool stream_k)
{
    static constexpr int like = kernel_named("sm90_pingpong_128x128");
    static_assert(configs[like].tile_m == triangle_configs[0].tile_m && !configs[like].is_split());
    return {like, false, 1, stream_k, tiles_of(p), false};
}

// Stream-K pays where whole tiles would leave nearly half of the SMs idle, and K is long. In microseconds
// with and without it, H200, bf16: n = 2048, K = 512, 2048 and 8192 12.8 and 10.0, 22.5 and 24.0, 72.5 and
// 81.2; n = 3072 = K 55.5 and 49.1; 16 of n = 1024 = K 41.5 and 35.9.
bool pays_to_stream(const Problem& p, int64_t tiles, int sm_count)
{
    constexpr double worth = 1.7;
    constexpr int64_t long_k = 2048;
    const double waves = static_cast<double>(tiles) / sm_count;
    return p.k >= long_k && static_cast<double>(ceil_div(tiles, int64_t{sm_count})) >= worth * waves;
}

void fill(const Facts& f, const Candidate& candidate, const Prediction& prediction, const Options& o,
          int sm_count, Plan& plan)
{
    const Config& c = triangle_configs[0];
    const Problem& p = f.problem;
    plan.kernel = first_triangle;
    plan.variant = major_variant(p.type_ab, p.a, p.b);
    plan.split = 1;
    plan.cluster = c.ctas();
    plan.pdl = o.pdl == Pdl::Free ? prediction.pdl : o.pdl;
    plan.tiles = candidate.clusters;
    plan.grid = persistent_clusters(p, c, candidate, sm_count);
    plan.predicted_us = prediction.us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
    plan.counts = candidate.stream_k;
    Plan::Sm90& details = plan.sm90;
    details.stream_k = candidate.stream_k;
    if (candidate.stream_k) {
        details.stream_k_tiles = static_cast<int32_t>(stream_shape(c, plan.tiles, p.k, sm_count).tiles);
        plan.workspace = static_cast<size_t>(stream_k_bytes(c, plan.grid));
    }
    decide_output_details(f, plan);
}

}  // namespace

bool choose_triangle(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    const Facts facts(p);
    plan.refusal = refusal_of(facts, o);
    if (plan.refusal)
        return false;
    const int sm_count = o.sm_count(device);
    const int64_t tiles = tiles_of(p);
    const bool can_stream =
        o.stream_k != StreamK::Off && can_stream_k(p, triangle_configs[0], tiles, o, sm_count);
    if (o.stream_k == StreamK::On && !can_stream) {
        plan.refusal = "stream-K is not possible";
        return false;
    }
    const bool streams = can_stream && (o.stream_k == StreamK::On || pays_to_stream(p, tiles, sm_count));
    const Candidate candidate = candidate_of(p, streams);
    const Factors& factors = KernelFactors(device, kernels)[candidate.kernel];
    fill(facts, candidate, predict(facts, candidate, sm_count, factors), o, sm_count, plan);
    return true;
}

}  // namespace hg::sm90
