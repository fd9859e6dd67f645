#include "arch/sm90/pack.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/direct/host.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by box_k K (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int box_rows, int box_k,
                    CUtensorMap& map)
{
    const int lines = major_of(o) == Major::K ? box_rows : box_k;
    return encode_operand(o, p, rows_of_operand, span_elements, lines, map);
}

// An operand that is read once need not stay in L2: the other one's `others` rows fit one cluster tile.
uint64_t policy(const Problem& p, const Operand& o, int64_t others, int others_in_tile)
{
    const bool shared = p.batch > 1 && o.batch_stride == 0;
    return others <= others_in_tile && !shared ? evict_first : evict_normal;
}

// An output larger than L2 would only evict the operands.
uint64_t output_policy(const Problem& p)
{
    constexpr double max_of_l2 = 40e6;
    const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * (p.d.type == Type::F32 ? 4.0 : 2.0);
    return bytes > max_of_l2 ? evict_first : evict_normal;
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

namespace {

// Boxes of D, C and aux, as the epilogues transfer them: persistent/epilogue*.cuh, staging.cuh.
Status pack_results(const Facts& f, const Config& c, bool swap_ab, Params& params)
{
    const Problem& p = f.problem;
    static_assert(transposed_box_rows == subtile_n);
    const auto columns_of = [&](Type type) { return type == Type::F32 ? 32 : box_columns(c); };
    const bool halves = p.d.type != Type::F32;
    const int columns = halves && swap_ab                                ? 64
                        : halves && params.epilogue == Epilogue::General ? subtile_n
                                                                         : columns_of(p.d.type);
    Status status = encode_matrix(p.d, p, columns, swap_ab ? transposed_box_rows : 64, params.d);
    if (params.epilogue != Epilogue::Fused)
        return status;
    if (status == ok && f.output.reads_c)
        status = encode_matrix(p.c, p, columns_of(p.c.type), 64, params.c);
    if (status == ok && f.output.aux)
        status = encode_matrix(p.aux, p, columns_of(p.aux.type), 64, params.aux);
    return status;
}

}  // namespace

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

namespace {

int32_t last_start(int64_t size, int tile, bool contiguous, bool overlaps)
{
    if (overlaps && size > tile && (!contiguous || size % 8 == 0))
        return static_cast<int32_t>(size - tile);
    return static_cast<int32_t>(ceil_div(size, 8) * 8);
}

}  // namespace

LastTile last_tile(const Config& c, const Facts& f, const Plan& plan)
{
    // D may be C, and stream-K sums each tile in an order of its own.
    const bool overlaps = !f.output.reads_c && !plan.sm90.stream_k, swap_ab = plan.swap_ab;
    const Mma mma(f.problem, swap_ab);
    return {last_start(mma.m, c.tile_m, swap_ab || f.mma_a(swap_ab).major == Major::MN, overlaps),
            last_start(mma.n, c.tile_n, !swap_ab || f.mma_b(swap_ab).major == Major::MN, overlaps)};
}

namespace {

// Does a split-K kernel read C or a bias in finish_vectors() or finish_elements()?
bool prefetches_output(const Facts& f)
{
    const bool typed = f.output.vectors && f.problem.d.type == f.problem.type_ab;
    return f.output.reads_c || (f.output.bias && !typed);
}

}  // namespace

Status pack_gemm(const Problem& p, const Plan& plan, int sm_count, Params& params)
{
    const Config& c = configs[plan.kernel];
    const Facts facts(p);
    const Mma mma(p, plan.swap_ab);
    const int cluster_tile_m = c.tile_m * c.cluster_m, cluster_tile_n = c.tile_n * c.cluster_n;
    params = {};
    params.output = pack_output(p);
    params.tiles = static_cast<int32_t>(plan.tiles);
    const int64_t clusters_m = ceil_div(mma.m, cluster_tile_m),
                  clusters_n = ceil_div(mma.n, cluster_tile_n);
    const Raster raster = choose_raster(c, plan, clusters_m, clusters_n, p.k, sm_count);
    params.raster_along_n = raster.along_n;
    params.grid = raster.along_n ? tile_grid(clusters_n, clusters_m, raster.group)
                                 : tile_grid(clusters_m, clusters_n, raster.group);
    const LastTile last = last_tile(c, facts, plan);
    params.last_m = last.m;
    params.last_n = last.n;
    params.remapped = raster.remapped;
    if (raster.remapped)
        remap_by_gpc(plan.cluster, static_cast<int>(plan.grid / plan.cluster), params.remap);
    params.a_batch_step = mma.a.batch_stride != 0;
    params.b_batch_step = mma.b.batch_stride != 0;
    if (plan.sm90.stream_k)
        params.stream_k_tiles = static_cast<int32_t>(stream_shape(c, plan.tiles, p.k, sm_count).tiles);
    if (c.is_global())
        params.slice_clusters = divisor(static_cast<int32_t>(plan.tiles));
    params.split = plan.split;
    params.blocks_per_owner = blocks_per_owner(c, plan.split);
    params.vectors = facts.output.vectors;
    params.staggered = plan.split == 1 && stagger(c, facts.mma_b(plan.swap_ab).major) > 0 &&
                       params.vectors && p.d.type == p.type_ab &&
                       params.output.bias_along == BiasAlong::None;
    params.prefetches_output = c.is_split() && prefetches_output(facts);
    params.row_vectors =
        divisor(plan.swap_ab ? (params.staggered ? 64 : c.tile_m) / 8 : params.blocks_per_owner);
    params.rows_at_once = divisor((params.staggered ? 128 : 128 * c.consumers) / params.row_vectors.value);
    params.cluster = divisor(plan.cluster);
    const int64_t k_tiles = ceil_div(p.k, tile_k);
    params.k_tiles = static_cast<int32_t>(k_tiles);
    for (int slice = 0; slice <= max_slices; ++slice) {
        params.slice_start[slice] =
            static_cast<int32_t>(k_tiles * std::min(slice, plan.split) / plan.split);
    }
    params.swap_ab = plan.swap_ab;
    params.tma_store = !c.is_split() && facts.output.tma && facts.output.own_type;
    params.epilogue = epilogue_of(c, facts, plan.swap_ab);
    params.pdl_early = plan.pdl == Pdl::Early;
    params.prefetched = count_prefetched(p, c, plan, sm_count);
    params.a_policy = policy(p, mma.a, mma.n, cluster_tile_n);
    params.b_policy = policy(p, mma.b, mma.m, cluster_tile_m);
    params.d_policy = output_policy(p);
    Status status = pack_operand(mma.a, p, mma.m, c.tile_m / c.cluster_n, tile_k / c.cluster_n, params.a);
    if (status == ok)
        status = pack_operand(mma.b, p, mma.n, c.tile_n / c.cluster_m, tile_k / c.cluster_m, params.b);
    if (status == ok && params.tma_store)
        status = pack_results(facts, c, plan.swap_ab, params);
    return status;
}

namespace {

// The problem with as many matrices A and D as there are in memory: contiguous groups share one.
Problem rows_of_groups(const Problem& p)
{
    Problem rows = p;
    if (p.groups.contiguous())
        rows.batch = 1;
    return rows;
}

}  // namespace

// Boxes of D and C serve the tiles that their group fills.
Status pack_groups(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = config_of(plan.kernel);
    const Problem in_rows = rows_of_groups(p);
    const Facts facts(in_rows);
    params = {};
    params.output = pack_output(p);
    params.groups = p.groups;
    params.group_count = static_cast<int32_t>(p.batch);
    params.group_tiles_n = static_cast<int32_t>(ceil_div(p.n, int64_t{c.tile_n} * c.cluster_n));
    params.k_tiles = static_cast<int32_t>(ceil_div(p.k, tile_k));
    params.a_batch_step = p.a.batch_stride != 0;
    params.b_batch_step = p.b.batch_stride != 0;
    params.a_policy = params.b_policy = evict_normal;
    params.d_policy = output_policy(in_rows);
    params.tma_store = facts.output.tma && facts.output.own_type;
    params.epilogue = epilogue_of(c, facts, false);
    Status status = ok;
    if (p.k > 0)
        status = pack_operand(p.a, in_rows, p.m, c.tile_m / c.cluster_n, tile_k / c.cluster_n, params.a);
    if (status == ok && p.k > 0)
        status = pack_operand(p.b, p, p.n, c.tile_n, tile_k, params.b);
    if (status == ok && params.tma_store)
        status = pack_results(facts, c, false, params);
    return status;
}

namespace {

DirectOperand pack_direct_operand(const Operand& o, int64_t rows)
{
    return {static_cast<const uint16_t*>(o.ptr),
            reinterpret_cast<const uint16_t* const*>(o.array),
            o.batch_stride,
            o.row_stride,
            o.k_stride,
            static_cast<int32_t>(rows)};
}

}  // namespace

void pack_direct(const Problem& p, const Plan& plan, DirectParams& params)
{
    const Mma mma(p, plan.swap_ab);
    const DirectConfig& config = direct_configs[plan.kernel - first_direct];
    const int64_t steps = ceil_div(p.k, step_of(p, config, plan.swap_ab));
    params = {};
    params.a = pack_direct_operand(mma.a, mma.m);
    params.b = pack_direct_operand(mma.b, mma.n);
    params.output = pack_output(p);
    params.width = static_cast<int32_t>(width_of(p, config, plan.swap_ab));
    params.grid = tile_grid(static_cast<int32_t>(ceil_div(mma.m, params.width)),
                            static_cast<int32_t>(ceil_div(mma.n, config.tile_n)), 1);
    params.k = static_cast<int32_t>(p.k);
    params.split = divisor(plan.split);
    for (int slice = 0; slice <= max_cluster; ++slice)
        params.slice_start[slice] = static_cast<int32_t>(steps * std::min(slice, plan.split) / plan.split);
    params.swap_ab = plan.swap_ab;
    params.prefetches = !params.a.array && !p.alpha_device && p.alpha != 0.0f;
    params.pdl_early = plan.pdl == Pdl::Early;
}

}  // namespace hg::sm90
