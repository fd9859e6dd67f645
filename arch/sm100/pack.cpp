// Problem + Plan -> Params: orientation, tensor maps, tile order.
#include "arch/common/tma.hpp"
#include "arch/sm100/rows.hpp"

namespace hg::sm100 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by 64 k's (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows, int box_rows, CUtensorMap& map)
{
    return encode_operand(o, p, rows, span_elements, major_of(o) == Major::K ? box_rows : tile_k, map);
}

// Boxes as store_strip_tma() fills them: 32 lanes along x, 4,096 bytes.
Status pack_result(const Problem& p, bool swapped, CUtensorMap& map)
{
    const int along_y = box_bytes / 32 / static_cast<int>(bytes_of(p.d.type));
    return swapped ? encode_matrix(p.d, p, 32, along_y, map) : encode_matrix(p.d, p, along_y, 32, map);
}

}  // namespace

Status pack_product(const Problem& p, const Plan& plan, int sm_count, Params& params)
{
    const Config& c = configs[plan.row];
    const Operand &x = plan.swapped ? p.b : p.a, &y = plan.swapped ? p.a : p.b;
    const int at_once = sm_count / c.group;
    params = {};
    params.output = pack_output(p);
    params.k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(plan.tiles);
    params.grid =
        plan.swapped ? square_grid(p.m, p.n, c.y, c.x, at_once) : square_grid(p.m, p.n, c.x, c.y, at_once);
    params.x_batch_step = x.batch_stride != 0;
    params.y_batch_step = y.batch_stride != 0;
    params.x_major = major_of(x);
    params.y_major = major_of(y);
    params.instruction = instruction_descriptor(c, p.type_ab, params.x_major, params.y_major);
    params.split = plan.split;
    const int blocks = c.y / 8, owners = std::min(plan.split, blocks);
    for (int slice = 0; slice <= max_split; ++slice)
        params.part_start[slice] = static_cast<uint8_t>(std::min(slice, owners) * blocks / owners);
    params.swapped = plan.swapped;
    params.tma_store = !c.is_split() && can_tma_store(p);
    Status status = pack_operand(x, p, plan.swapped ? p.n : p.m, 128, params.x);
    if (status == ok)
        status = pack_operand(y, p, plan.swapped ? p.m : p.n, y_rows(c), params.y);
    if (status == ok && params.tma_store)
        status = pack_result(p, plan.swapped, params.d);
    return status;
}

}  // namespace hg::sm100
