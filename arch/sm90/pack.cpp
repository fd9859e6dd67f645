// Problem + Plan -> Params: orientation, tensor maps, tile order.
#include "arch/common/tma.hpp"
#include "arch/sm90/model.hpp"
#include "arch/sm90/rows.hpp"

namespace hg::sm90 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by box_k k's (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int box_rows, int box_k,
                    CUtensorMap& map)
{
    const int lines = major_of(o) == Major::K ? box_rows : box_k;
    return encode_operand(o, p, rows_of_operand, span_elements, lines, map);
}

// Boxes as store_block_tma() fills them.
Status pack_result(const Problem& p, const Config& config, bool swapped, CUtensorMap& map)
{
    const int columns = p.d.type == Type::F32 ? 32 : swapped ? 64 : box_columns(config);
    return encode_result(p, columns, swapped ? swapped_box_rows : 64, map);
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
    constexpr double most_of_l2 = 40e6;
    const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * (p.d.type == Type::F32 ? 4.0 : 2.0);
    return bytes > most_of_l2 ? evict_first : evict_normal;
}

// Rows of both operands that `window` clusters read which follow each other in runs along one side.
int64_t rows_read(int64_t window, int64_t side, int64_t clusters, int64_t other_side)
{
    const int64_t run = std::min(window, clusters);
    return run * side + ceil_div(window, run) * other_side;
}

}  // namespace

// Clusters that follow each other run side by side, and L2 delivers the faster the less they read. Along
// the longer side of a cluster they share least of what its own CTAs do not share already.
bool goes_along_y(const Config& c, int64_t clusters_x, int64_t clusters_y)
{
    constexpr int64_t window = 8;
    const int64_t x = c.x * c.cluster, y = c.y * c.across;
    const int64_t along_x = rows_read(window, x, clusters_x, y) * (c.cluster > c.across ? 3 : 2);
    const int64_t along_y = rows_read(window, y, clusters_y, x) * (c.across > c.cluster ? 3 : 2);
    if (along_x != along_y)
        return along_y < along_x;
    return c.cluster != c.across ? c.cluster > c.across : clusters_y < clusters_x;
}

bool is_stored_by_tma(const Problem& p)
{
    return takes_bias_at_most(p) && is_tma_output(p) && (p.d.type == Type::F32 || p.d.type == p.type_ab);
}

// All of small operands; of large ones no more than saves the first wait for memory, since it delays the
// loads of the kernels in front.
int32_t count_prefetched(const Problem& p, bool streams)
{
    constexpr double small = 3e6;
    constexpr int64_t few = 4, many = 16;
    if (streams || p.alpha_device || p.alpha == 0.0f)
        return 0;
    const double bytes =
        2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * static_cast<double>(p.m + p.n);
    return static_cast<int32_t>(std::min(ceil_div(p.k, tile_k), bytes <= small ? many : few));
}

Status pack_product(const Problem& p, const Plan& plan, int sm_count, Params& params)
{
    const Config& c = configs[plan.row];
    const Operand &x = plan.swapped ? p.b : p.a, &y = plan.swapped ? p.a : p.b;
    const int cluster_x = c.x * c.cluster, cluster_y = c.y * c.across;
    const int64_t rows_x = plan.swapped ? p.n : p.m, rows_y = plan.swapped ? p.m : p.n;
    params = {};
    params.output = pack_output(p);
    params.k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(plan.tiles);
    const bool thin = p.k <= 2 * tile_k;  // what matters is the order of the stores: along m
    params.along_y =
        thin ? plan.swapped : goes_along_y(c, ceil_div(rows_x, cluster_x), ceil_div(rows_y, cluster_y));
    params.grid = params.along_y ? square_grid(rows_y, rows_x, cluster_y, cluster_x, sm_count)
                                 : square_grid(rows_x, rows_y, cluster_x, cluster_y, sm_count);
    params.x_batch_step = x.batch_stride != 0;
    params.y_batch_step = y.batch_stride != 0;
    if (plan.streams)
        params.stream_tiles = static_cast<int32_t>(stream_shape(c, plan.tiles, p.k, sm_count).tiles);
    params.split = plan.split;
    params.cluster = divisor(plan.cluster);
    const int owners = std::min(plan.split, c.y / 8);
    const int64_t k_tiles = ceil_div(p.k, tile_k);
    for (int slice = 0; slice <= max_cluster; ++slice) {
        params.slice_start[slice] =
            static_cast<int32_t>(k_tiles * std::min(slice, plan.split) / plan.split);
        params.part_start[slice] = static_cast<uint8_t>(std::min(slice, owners) * (c.y / 8) / owners);
    }
    params.swapped = plan.swapped;
    params.tma_store = !c.is_split() && is_stored_by_tma(p);
    params.vectors = is_vector_output(p);
    params.early = plan.early;
    params.prefetched = count_prefetched(p, plan.streams);
    params.x_policy = policy(p, x, rows_y, cluster_y);
    params.y_policy = policy(p, y, rows_x, cluster_x);
    params.d_policy = output_policy(p);
    Status status = pack_operand(x, p, rows_x, c.x / c.across, tile_k / c.across, params.x);
    if (status == ok)
        status = pack_operand(y, p, rows_y, c.y / c.cluster, tile_k / c.cluster, params.y);
    if (status == ok && params.tma_store)
        status = pack_result(p, c, plan.swapped, params.d);
    return status;
}

}  // namespace hg::sm90
