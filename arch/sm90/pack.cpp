#include "arch/sm90/pack.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/common/triangle_order.hpp"
#include "arch/sm90/direct/host.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/remap.hpp"
#include "src/plan/gate.hpp"

#include <algorithm>
#include <utility>

namespace hg::sm90 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by box_k K (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int box_rows, int box_k,
                    CUtensorMap& map)
{
    const int lines = major_of(o) == Major::K ? box_rows : box_k;
    return encode_operand(o, p, rows_of_operand, span_elements, lines, map);
}

uint64_t policy(bool once) { return once ? evict_first : evict_normal; }

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
    Status status =
        encode_matrix(p.d, f.output.columns, p, columns, swap_ab ? transposed_box_rows : 64, params.d);
    if (params.epilogue != Epilogue::Fused)
        return status;
    if (status == ok && f.output.reads_c)
        status = encode_matrix(p.c, p.n, p, columns_of(p.c.type), 64, params.c);
    if (status == ok && f.output.aux)
        status = encode_matrix(p.aux, p.n, p, columns_of(p.aux.type), 64, params.aux);
    return status;
}

// Does a split-K kernel read C or a bias in finish_vectors() or finish_elements()?
bool prefetches_output(const Facts& f)
{
    const bool typed = f.output.vectors && f.problem.d.type == f.problem.type_ab;
    return f.output.reads_c || (f.output.bias && !typed);
}

}  // namespace

namespace {

// All but tensor maps and what depends on them.
void pack_schedule(const Facts& facts, const Plan& plan, const Config& c, Params& params)
{
    const Problem& p = facts.problem;
    const Mma mma(p, plan.swap_ab);
    const int cluster_tile_m = c.tile_m * c.cluster_m, cluster_tile_n = c.tile_n * c.cluster_n;
    params = {};
    params.output = pack_output(p);
    params.tiles = static_cast<int32_t>(plan.tiles);
    const int64_t clusters_m = ceil_div(mma.m, cluster_tile_m),
                  clusters_n = ceil_div(mma.n, cluster_tile_n);
    const Plan::Sm90& details = plan.sm90;
    params.raster_along_n = details.raster_along_n;
    params.grid = details.raster_along_n ? tile_grid(clusters_n, clusters_m, details.raster_group)
                                         : tile_grid(clusters_m, clusters_n, details.raster_group);
    params.last_m = details.last_m;
    params.last_n = details.last_n;
    params.remapped = details.remapped;
    if (details.remapped)
        remap_by_gpc(plan.cluster, static_cast<int>(plan.grid / plan.cluster), params.remap);
    params.a_is_k_major = major_of(mma.a) == Major::K;
    params.a_batch_step = mma.a.batch_stride != 0;
    params.b_batch_step = mma.b.batch_stride != 0;
    params.stream_k_tiles = details.stream_k_tiles;
    if (c.is_global())
        params.slice_clusters = divisor(static_cast<int32_t>(plan.tiles));
    params.split = plan.split;
    params.blocks_per_owner = blocks_per_owner(c, plan.split);
    params.vectors = facts.output.vectors;
    params.staggered = details.staggered;
    params.prefetches_output = c.is_split() && prefetches_output(facts);
    params.row_vectors =
        divisor(plan.swap_ab ? (params.staggered ? 64 : c.tile_m) / 8 : params.blocks_per_owner);
    params.rows_at_once = divisor((params.staggered ? 128 : 128 * c.consumers) / params.row_vectors.value);
    params.cluster = divisor(plan.cluster);
    const int64_t k_tiles = ceil_div(p.k, tile_k);
    params.k_tiles = static_cast<int32_t>(k_tiles);
    params.slices = divisor(plan.split);
    for (int slice = 0; slice <= max_cluster; ++slice) {
        params.slice_start[slice] =
            static_cast<int32_t>(k_tiles * std::min(slice, plan.split) / plan.split);
    }
    params.swap_ab = plan.swap_ab;
    params.tma_store = !c.is_split() && facts.output.tma && facts.output.own_type;
    params.epilogue = details.epilogue;
    params.pdl_early = plan.pdl == Pdl::Early;
    params.prefetched = details.prefetched;
    params.a_policy = policy(details.a_once);
    params.b_policy = policy(details.b_once);
    params.d_policy = policy(details.d_once);
}

}  // namespace

Status pack_gemm(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = config_of(plan.kernel);
    const Facts facts(p);
    const Mma mma(p, plan.swap_ab);
    pack_schedule(facts, plan, c, params);
    params.leaves = static_cast<int32_t>(p.leaves);
    params.stored_levels = stored_levels(params.leaves);
    Status status = pack_operand(mma.a, p, mma.m, c.tile_m / c.cluster_n, tile_k / c.cluster_n, params.a);
    if (status == ok)
        status = pack_operand(mma.b, p, mma.n, c.tile_n / c.cluster_m, tile_k / c.cluster_m, params.b);
    if (status == ok && params.tma_store)
        status = pack_results(facts, c, plan.swap_ab, params);
    return status;
}

namespace {

bool is_n_major(const Problem& p) { return major_of(p.b) == Major::MN; }

// Where gates and others take turns, two rows of B are one of the tensor map, if they are contiguous along
// K.
bool pairs_rows(const Problem& p) { return p.gate.block == 1 && !is_n_major(p); }

// How many gates of a tile lie together. Behind the last ones in front of a line are up elements, which
// no one reads.
int64_t gates_of_box(const Config& c, const Problem& p)
{
    const int64_t half = c.gates_of_tile();
    return pairs_rows(p) || has_halves(p) ? half : std::min(p.gate.block, half);
}

GateLayout layout_of(const Config& c, const Problem& p)
{
    const auto block = static_cast<int32_t>(p.gate.block);
    const auto box = static_cast<int32_t>(gates_of_box(c, p));
    GateLayout layout{};
    layout.gate = p.gate;
    layout.boxes = c.gates_of_tile() / box;
    layout.box_bytes = box * span_bytes;
    layout.block = divisor(pairs_rows(p) ? max_gate_block : block);
    layout.rows = pairs_rows(p) ? 0 : block;
    layout.k = pairs_rows(p) ? static_cast<int32_t>(p.b.row_stride) : 0;
    layout.box_step = 2 * block;
    return layout;
}

Status pack_gates(const Config& c, const Problem& p, CUtensorMap& map)
{
    const auto box = static_cast<int>(gates_of_box(c, p));
    if (!pairs_rows(p))
        return pack_operand(p.b, p, p.n, box, tile_k / c.cluster_m, map);
    Problem pairs = p;
    pairs.k = p.b.row_stride + p.k;
    pairs.b.row_stride = 2 * p.b.row_stride;
    return pack_operand(pairs.b, pairs, p.n / 2, box, tile_k, map);
}

}  // namespace

// Boxes begin at multiples of eight rows of a stage, where the swizzle's pattern begins. The last K of one
// row of a pair is followed by the other row, not by zeros.
bool finds_gates(const Config& c, const Problem& p)
{
    constexpr int pattern = 8;
    const int64_t half = c.gates_of_tile(), block = p.gate.block;
    if (is_n_major(p))
        return finds_n_major_gates(c) && block <= max_gate_block &&
               (block == 1 || has_halves(p) || block % span_elements == 0);
    if (pairs_rows(p))
        return p.k % tile_k == 0 && p.b.row_stride <= max_gate_block - p.k;
    const bool fits = has_halves(p) || block % half == 0 || half % block == 0;
    return block <= max_gate_block && fits && gates_of_box(c, p) % pattern == 0;
}

namespace {

// Groups of K: the host knows all tiles.
void pack_k_groups(const Problem& p, const Plan& plan, const Config& c, Params& params)
{
    constexpr int rows_of_tiles = 8;  // that are walked together
    params.group_k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(plan.tiles);
    params.grid =
        tile_grid(static_cast<int32_t>(ceil_div(p.m, c.tile_m)), params.group_tiles_n, rows_of_tiles);
    params.last_m = params.last_n = INT32_MAX;
}

}  // namespace

// The kernel's M is N of the problem. Its operands are those of a batch of B's beside one A.
Status pack_few_rows(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = config_of(plan.kernel);
    const Problem in_rows = rows_of_groups(p);
    pack_schedule(Facts(in_rows), plan, c, params);
    params.output.stride_d = 0;
    params.groups = p.groups;
    params.group_count = static_cast<int32_t>(p.batch);
    params.group_tiles_n = static_cast<int32_t>(ceil_div(p.n, c.tile_m));
    params.a_batch_step = p.b.batch_stride != 0;
    params.b_batch_step = 0;
    params.prefetches_output = false;
    const Status status = pack_operand(p.a, in_rows, p.m, c.tile_n, tile_k, params.b);
    if (status != ok)
        return status;
    if (!c.is_gated())
        return pack_operand(p.b, p, p.n, c.tile_m, tile_k, params.a);
    params.gate = layout_of(c, p);
    return pack_gates(c, p, params.a);
}

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
    if (p.groups.of_k)
        pack_k_groups(p, plan, c, params);
    params.k_tiles = static_cast<int32_t>(ceil_div(p.k, tile_k));
    params.a_batch_step = p.a.batch_stride != 0;
    params.b_batch_step = p.b.batch_stride != 0;
    params.a_policy = params.b_policy = evict_normal;
    params.d_policy = policy(plan.sm90.d_once);
    params.tma_store = facts.output.tma && facts.output.own_type;
    params.epilogue = plan.sm90.epilogue;
    Status status = ok;
    if (p.k > 0)
        status = pack_operand(p.a, in_rows, p.m, c.tile_m / c.cluster_n, tile_k / c.cluster_n, params.a);
    if (c.is_gated()) {
        params.gate = layout_of(c, p);
        status = status == ok ? pack_gates(c, p, params.b) : status;
        return status == ok ? encode_matrix(p.d, p.columns(), in_rows, gated_box_columns(c), 64, params.d)
                            : status;
    }
    if (status == ok && p.k > 0)
        status = pack_operand(p.b, p, p.n, c.tile_n, tile_k, params.b);
    if (status == ok && params.tma_store)
        status = pack_results(facts, c, false, params);
    return status;
}

// Where tiles begin is not limited: none overlap. Boxes of D at its mirror are transposed ones.
Status pack_triangle_product(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = config_of(plan.kernel);
    const Facts facts(p);
    params = {};
    params.output = pack_output(p);
    params.tiles = static_cast<int32_t>(plan.tiles);
    params.triangle = triangle_order(static_cast<int32_t>(ceil_div(p.n, c.tile_n)));
    params.upper = p.triangle == Triangle::Upper;
    params.mirrored = p.mirrored;
    params.last_m = params.last_n = INT32_MAX;
    params.a_batch_step = p.a.batch_stride != 0;
    params.b_batch_step = p.b.batch_stride != 0;
    params.stream_k_tiles = plan.sm90.stream_k_tiles;
    params.k_tiles = static_cast<int32_t>(ceil_div(p.k, tile_k));
    params.tma_store = true;
    params.epilogue = plan.sm90.epilogue;
    params.pdl_early = plan.pdl == Pdl::Early;
    params.a_policy = params.b_policy = evict_normal;
    params.d_policy = policy(plan.sm90.d_once);
    Status status = pack_operand(p.a, p, p.m, c.tile_m, tile_k, params.a);
    if (status == ok)
        status = pack_operand(p.b, p, p.n, c.tile_n, tile_k, params.b);
    if (status == ok)
        status = pack_results(facts, c, false, params);
    if (status == ok)
        status = encode_matrix(p.d, p.n, p, 64, transposed_box_rows, params.aux);
    return status;
}

Status pack_gated_product(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = config_of(plan.kernel);
    const Facts facts(p);
    const bool along_m = c.gates == Gates::AlongM;
    pack_schedule(facts, plan, c, params);
    params.gate = layout_of(c, p);
    const auto [rows, share] =
        along_m ? std::pair(c.tile_n, c.cluster_m) : std::pair(c.tile_m, c.cluster_n);
    Status status = pack_operand(p.a, p, p.m, rows / share, tile_k, along_m ? params.b : params.a);
    if (status == ok)
        status = pack_gates(c, p, along_m ? params.a : params.b);
    params.tma_store = !c.is_split();
    params.prefetches_output = false;
    if (status == ok && params.tma_store)
        status = encode_matrix(p.d, p.columns(), p, gated_box_columns(c), 64, params.d);
    return status;
}

namespace {

DirectOperand pack_direct_operand(const Operand& o, int64_t rows)
{
    return {base_of<const uint16_t>(o),
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
