#include "arch/sm90/choose/details.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// An operand that is read once need not stay in L2: the other one's `others` rows fit one cluster tile.
bool is_read_once(const Problem& p, const Operand& o, int64_t others, int others_in_tile)
{
    const bool shared = p.batch > 1 && o.batch_stride == 0;
    return others <= others_in_tile && !shared;
}

// An output larger than L2 would only evict the operands.
bool exceeds_l2(const Problem& p)
{
    constexpr double max_of_l2 = 40e6;
    const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.columns()) * (p.d.type == Type::F32 ? 4.0 : 2.0);
    return bytes > max_of_l2;
}

// K tiles to prefetch of large operands. Few for wide tiles: TMA serves requests in order, so prefetches
// delay the first loads. Few where the last wave is nearly empty: the next kernel's CTAs then start early,
// and their prefetches take bandwidth from CTAs that still load. Measurements: DESIGN.md#l2-prefetch.
int32_t count_of_large(const Config& c, const Plan& plan, int sm_count)
{
    constexpr int narrow = 160, wide = 256;
    const int lines = c.tile_m / c.cluster_n + c.tile_n / c.cluster_m;
    const auto places = static_cast<uint32_t>(c.ctas_per_sm * sm_count);
    const uint32_t last_wave = plan.grid % places;
    if (plan.grid > places && 0 < last_wave && last_wave < places / 4)
        return 2;
    return lines <= narrow ? 4 : lines <= wide ? 3 : 1;
}

int32_t last_start(int64_t size, int tile, bool contiguous, bool overlaps)
{
    if (overlaps && size > tile && (!contiguous || size % 8 == 0))
        return static_cast<int32_t>(size - tile);
    return static_cast<int32_t>(ceil_div(size, 8) * 8);
}

// Nothing is read with the tile, so that a consumer may end while others still multiply.
bool staggers(const Config& c, const Facts& f, const Plan& plan)
{
    return plan.split == 1 && stagger(c, f.mma_b(plan.swap_ab).major) > 0 && f.output.vectors &&
           f.problem.d.type == f.problem.type_ab && !f.output.bias;
}

}  // namespace

Epilogue epilogue_of(const Config& c, const Facts& f, bool swap_ab)
{
    const Problem& p = f.problem;
    const bool asks_for_all =
                   f.output.aux || p.activation == Activation::GeluTanh || p.activation == Activation::Silu,
               can_fuse = (!asks_for_all || fuses_all(c)) && (!f.output.reads_c || fuses_c(c));
    if (!f.output.fusible || !can_fuse || (swap_ab && (f.output.reads_c || f.output.aux)))
        return Epilogue::General;
    return f.output.plain ? Epilogue::Plain : Epilogue::Fused;
}

// The general epilogue only if K is long enough to hide it, or no kernel can fuse the output.
// DESIGN.md#epilogues.
bool can_store(const Config& c, const Facts& f, bool swap_ab)
{
    constexpr int64_t long_k = 2048;
    if (c.is_split() || epilogue_of(c, f, swap_ab) != Epilogue::General)
        return true;
    return (f.output.reads_c ? reads_c_by_subtile(c) : fuses_all(c)) &&
           (f.problem.k >= long_k || !f.output.fusible);
}

int32_t count_prefetched(const Problem& p, const Config& c, const Plan& plan, int sm_count)
{
    constexpr double small = 3e6;
    constexpr int64_t many = 16;
    if (plan.sm90.stream_k || p.alpha_device || p.alpha == 0.0f)
        return 0;
    const double bytes =
        2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * static_cast<double>(p.m + p.n);
    const int64_t most = bytes <= small ? many : count_of_large(c, plan, sm_count);
    return static_cast<int32_t>(std::min(ceil_div(p.k, tile_k), most));
}

LastTile last_tile(const Config& c, const Facts& f, const Plan& plan)
{
    // D may be C, and stream-K sums each tile in an order of its own.
    const bool overlaps = !f.output.reads_c && !plan.sm90.stream_k, swap_ab = plan.swap_ab;
    const Mma mma(f.problem, swap_ab);
    return {last_start(mma.m, c.tile_m, swap_ab || f.mma_a(swap_ab).major == Major::MN, overlaps),
            last_start(mma.n, c.tile_n, !swap_ab || f.mma_b(swap_ab).major == Major::MN, overlaps)};
}

void decide_details(const Facts& f, int sm_count, Plan& plan)
{
    const Problem& p = f.problem;
    const Config& c = config_of(plan.kernel);
    const Mma mma(p, plan.swap_ab);
    const int cluster_tile_m = c.tile_m * c.cluster_m, cluster_tile_n = c.tile_n * c.cluster_n;
    Plan::Sm90& details = plan.sm90;
    const Raster raster = choose_raster(c, plan, ceil_div(mma.m, cluster_tile_m),
                                        ceil_div(mma.n, cluster_tile_n), p.k, sm_count);
    details.raster_along_n = raster.along_n;
    details.raster_group = raster.group;
    details.remapped = raster.remapped;
    if (details.stream_k)
        details.stream_k_tiles = static_cast<int32_t>(stream_shape(c, plan.tiles, p.k, sm_count).tiles);
    const LastTile last = last_tile(c, f, plan);
    details.last_m = last.m;
    details.last_n = last.n;
    details.prefetched = count_prefetched(p, c, plan, sm_count);
    details.a_once = is_read_once(p, mma.a, mma.n, cluster_tile_n);
    details.b_once = is_read_once(p, mma.b, mma.m, cluster_tile_m);
    details.d_once = exceeds_l2(p);
    details.staggered = staggers(c, f, plan);
    details.persistent = !c.is_split();
    details.epilogue = epilogue_of(c, f, plan.swap_ab);
}

void decide_output_details(const Facts& f, Plan& plan)
{
    plan.sm90.d_once = exceeds_l2(f.problem);
    plan.sm90.persistent = true;
    plan.sm90.epilogue = epilogue_of(config_of(plan.kernel), f, false);
}

}  // namespace hg::sm90
