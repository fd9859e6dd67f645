#include "arch/sm90/pack.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/choose/model.hpp"
#include "arch/sm90/choose/raster.hpp"
#include "arch/sm90/direct/host.hpp"
#include "arch/sm90/kernels.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by box_k k's (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int box_rows, int box_k,
                    CUtensorMap& map)
{
    const int lines = major_of(o) == Major::K ? box_rows : box_k;
    return encode_operand(o, p, rows_of_operand, span_elements, lines, map);
}

// Lines that only one cluster reads, since the `others` rows of the other operand fit one tile, need not
// stay in L2.
uint64_t policy(const Problem& p, const Operand& o, int64_t others, int others_in_tile)
{
    const bool shared = p.batch > 1 && o.batch_stride == 0;
    return others <= others_in_tile && !shared ? evict_first : evict_normal;
}

// An output larger than L2 only drives out the operands.
uint64_t output_policy(const Problem& p)
{
    constexpr double max_of_l2 = 40e6;
    const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * (p.d.type == Type::F32 ? 4.0 : 2.0);
    return bytes > max_of_l2 ? evict_first : evict_normal;
}

// Of large operands: no more than saves the first wait for memory, since TMA takes the requests one after
// the other, those of its first loads behind them. Fewer of wide tiles, and where the last wave is nearly
// empty, since the next kernel's CTAs then ask early and take bandwidth from those that still load.
// Microseconds with four k tiles, three, two, one: 96 x 4096 x 4096 by 64 x 96 10.94, 11.03, 11.17, 11.36;
// 192 x 32768 x 512 by pairs of 128 x 192 15.13, 14.90, 14.87, 15.18; 512 x 7168 x 2048 by 128 x 224
// 24.81, 24.64, 24.44, 24.32; 1 x 18432 x 7168, 288 CTAs on 264 places, 59.99, 58.58, 57.73, 58.30.
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

bool can_store_by_tma(const Problem& p)
{
    return is_tma_output(p) && (p.d.type == Type::F32 || p.d.type == p.type_ab);
}

namespace {

bool reads_c(const Problem& p) { return p.c.ptr || p.c.array; }

// All problems may share C: a tensor map has no stride of 0.
bool is_c_loaded_by_tma(const Problem& p)
{
    return is_tma_matrix(p.c, p.batch) && (p.batch == 1 || p.c.batch_stride > 0) &&
           (p.c.type == Type::F32 || p.c.type == p.type_ab);
}

// Of D's type, and of as many columns.
bool is_aux_stored_by_tma(const Problem& p)
{
    return is_tma_matrix(p.aux, p.batch) && p.d.type == p.type_ab;
}

// Is there a row that finishes it in place?
bool can_be_fused(const Problem& p)
{
    return can_store_by_tma(p) && p.activation != Activation::GeluErf &&
           (!p.aux.ptr || is_aux_stored_by_tma(p)) && (!reads_c(p) || is_c_loaded_by_tma(p));
}

}  // namespace

Epilogue epilogue_of(const Config& c, const Problem& p, bool swap_ab)
{
    const bool reads_or_writes_more = reads_c(p) || p.aux.ptr;
    const bool asks_for_more =
        reads_or_writes_more || p.activation == Activation::GeluTanh || p.activation == Activation::Silu;
    if (!can_be_fused(p) || (asks_for_more && !fuses_all(c)) || (reads_or_writes_more && swap_ab))
        return Epilogue::General;
    return is_plain(p) ? Epilogue::Plain : Epilogue::Fused;
}

namespace {

// Boxes as store_block_tma(), CLoader and store_block_16() take them or, of D, fill_subtile().
Status pack_results(const Problem& p, const Config& c, bool swap_ab, Params& params)
{
    static_assert(transposed_box_rows == subtile_n);
    const auto columns_of = [&](Type type) { return type == Type::F32 ? 32 : box_columns(c); };
    const bool halves = p.d.type != Type::F32;
    const int columns = halves && swap_ab                                ? 64
                        : halves && params.epilogue == Epilogue::General ? subtile_n
                                                                         : columns_of(p.d.type);
    Status status = encode_matrix(p.d, p, columns, swap_ab ? transposed_box_rows : 64, params.d);
    if (params.epilogue != Epilogue::Fused)
        return status;
    if (status == ok && reads_c(p))
        status = encode_matrix(p.c, p, columns_of(p.c.type), 64, params.c);
    if (status == ok && p.aux.ptr)
        status = encode_matrix(p.aux, p, columns_of(p.aux.type), 64, params.aux);
    return status;
}

}  // namespace

// In pieces only where products are long enough to hide them: 8192 x 8192 x 1024 with a bias and GELU takes
// 268 us by 128 x 176 in pieces, 233 by 128 x 128 in place, 512 x 11008 x 4096 by 128 x 168 in pieces 69.
bool can_store(const Config& c, const Problem& p, bool swap_ab)
{
    constexpr int64_t long_k = 2048;
    if (c.is_split() || epilogue_of(c, p, swap_ab) != Epilogue::General)
        return true;
    return (reads_c(p) ? reads_c_by_subtile(c) : fuses_all(c)) && (p.k >= long_k || !can_be_fused(p));
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

Status pack_gemm(const Problem& p, const Plan& plan, int sm_count, Params& params)
{
    const Config& c = configs[plan.kernel];
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
    params.vectors = is_vector_output(p);
    params.staggered = plan.split == 1 && stagger(c, major_of(mma.b)) > 0 && params.vectors &&
                       p.d.type == p.type_ab && params.output.bias_along == BiasAlong::None;
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
    params.tma_store = !c.is_split() && can_store_by_tma(p);
    params.epilogue = epilogue_of(c, p, plan.swap_ab);
    params.pdl_early = plan.pdl == Pdl::Early;
    params.prefetched = count_prefetched(p, c, plan, sm_count);
    params.a_policy = policy(p, mma.a, mma.n, cluster_tile_n);
    params.b_policy = policy(p, mma.b, mma.m, cluster_tile_m);
    params.d_policy = output_policy(p);
    Status status = pack_operand(mma.a, p, mma.m, c.tile_m / c.cluster_n, tile_k / c.cluster_n, params.a);
    if (status == ok)
        status = pack_operand(mma.b, p, mma.n, c.tile_n / c.cluster_m, tile_k / c.cluster_m, params.b);
    if (status == ok && params.tma_store)
        status = pack_results(p, c, plan.swap_ab, params);
    return status;
}

namespace {

// A problem with groups, with as many matrices A and D as there are: one, of contiguous groups.
Problem rows_of_groups(const Problem& p)
{
    Problem rows = p;
    if (p.groups.offsets)
        rows.batch = 1;
    return rows;
}

}  // namespace

// D and C in TMA's boxes where a group fills a tile.
Status pack_groups(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = config_of(plan.kernel);
    const Problem in_rows = rows_of_groups(p);
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
    params.tma_store = can_store_by_tma(in_rows);
    params.epilogue = epilogue_of(c, in_rows, false);
    Status status = ok;
    if (p.k > 0)
        status = pack_operand(p.a, in_rows, p.m, c.tile_m / c.cluster_n, tile_k / c.cluster_n, params.a);
    if (status == ok && p.k > 0)
        status = pack_operand(p.b, p, p.n, c.tile_n, tile_k, params.b);
    if (status == ok && params.tma_store)
        status = pack_results(in_rows, c, false, params);
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
