// Problem + Plan -> Params: orientation, tensor maps, tile order.
#include "arch/common/pack.hpp"
#include "arch/sm90/model.hpp"
#include "arch/sm90/rows.hpp"
#include "src/driver.hpp"

#include <cmath>

namespace hg::sm90 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by box_k k's (MN-major).
// A batch that shares the operand has one matrix in its map.
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int box_rows, int box_k,
                    CUtensorMap& map)
{
    const bool k_major = major_of(o) == Major::K;
    const bool batched = p.batch > 1 && o.batch_stride > 0;
    driver::TensorMapRequest r{};
    r.base = o.ptr;
    r.type = p.type_ab;
    r.size[0] = k_major ? p.k : rows_of_operand;
    r.size[1] = k_major ? rows_of_operand : p.k;
    r.size[2] = batched ? p.batch : 1;
    r.stride_bytes[0] = 2 * line_stride(o);
    r.stride_bytes[1] = batched ? 2 * o.batch_stride : 16;
    r.box[0] = span_elements;
    r.box[1] = k_major ? box_rows : box_k;
    r.box[2] = 1;
    r.span_bytes = span_bytes;
    return driver::encode_tensor_map(r, &map);
}

// A TMA store writes whole 16-byte units: one that reaches past column n would overwrite what lies there.
bool can_tma_store(const Problem& p)
{
    const int64_t bytes = bytes_of(p.d.type);
    const int64_t batch_stride = p.batch > 1 ? p.d.batch_stride : 0;
    return is_plain(p) && !p.d.array && p.n * bytes % 16 == 0 && p.d.ld > 0 && batch_stride >= 0 &&
           is_vector_aligned(p.d.ptr, p.d.ld, batch_stride, bytes) && p.d.ld * bytes < int64_t{1} << 40 &&
           batch_stride * bytes < int64_t{1} << 40;
}

// Boxes as store_block_tma() fills them.
Status pack_result(const Problem& p, const Config& config, bool swapped, CUtensorMap& map)
{
    const int64_t bytes = bytes_of(p.d.type);
    const int columns = p.d.type == Type::F32 ? 32 : swapped ? 64 : box_columns(config);
    driver::TensorMapRequest r{};
    r.base = p.d.ptr;
    r.type = p.d.type;
    r.size[0] = p.n;
    r.size[1] = p.m;
    r.size[2] = p.batch;
    r.stride_bytes[0] = bytes * p.d.ld;
    r.stride_bytes[1] = p.batch > 1 ? bytes * p.d.batch_stride : 16;
    r.box[0] = static_cast<uint32_t>(columns);
    r.box[1] = swapped ? swapped_box_rows : 64;
    r.box[2] = 1;
    r.span_bytes = static_cast<uint32_t>(columns * bytes);
    return driver::encode_tensor_map(r, &map);
}

// Rows of tiles walked together: the tiles in flight form a block whose sides in elements are equal, so
// that they read the fewest bytes.
TileGrid pack_tiles(const Problem& p, int tile_m, int tile_n, int sm_count)
{
    const double side = std::sqrt(static_cast<double>(sm_count) * tile_n / tile_m);
    const auto tiles_m = static_cast<int32_t>(ceil_div(p.m, tile_m));
    const auto tiles_n = static_cast<int32_t>(ceil_div(p.n, tile_n));
    return {tiles_m, tiles_n, std::clamp(static_cast<int32_t>(side), 1, tiles_m)};
}

}  // namespace

Status pack_product(const Problem& p, const Plan& plan, int sm_count, Params& params)
{
    const Config& c = configs[plan.row];
    const Operand &x = plan.swapped ? p.b : p.a, &y = plan.swapped ? p.a : p.b;
    const int cluster_x = c.x * c.cluster, cluster_y = c.y * c.across;
    params = {};
    params.output = pack_output(p);
    params.k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(plan.tiles);
    params.grid = plan.swapped ? pack_tiles(p, cluster_y, cluster_x, sm_count)
                               : pack_tiles(p, cluster_x, cluster_y, sm_count);
    params.x_batch_step = x.batch_stride != 0;
    params.y_batch_step = y.batch_stride != 0;
    if (plan.streams)
        params.stream_tiles = static_cast<int32_t>(stream_shape(c, plan.tiles, p.k, sm_count).tiles);
    params.split = plan.split;
    const int owners = std::min(plan.split, c.y / 8);
    for (int slice = 0; slice <= max_cluster; ++slice)
        params.part_start[slice] = static_cast<uint8_t>(std::min(slice, owners) * (c.y / 8) / owners);
    params.swapped = plan.swapped;
    params.tma_store = !c.is_split() && can_tma_store(p);
    params.plain_vectors = can_tma_store(p) && p.n % 8 == 0;
    Status status =
        pack_operand(x, p, plan.swapped ? p.n : p.m, c.x / c.across, tile_k / c.across, params.x);
    if (status == ok)
        status =
            pack_operand(y, p, plan.swapped ? p.m : p.n, c.y / c.cluster, tile_k / c.cluster, params.y);
    if (status == ok && params.tma_store)
        status = pack_result(p, c, plan.swapped, params.d);
    return status;
}

}  // namespace hg::sm90
