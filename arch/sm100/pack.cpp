#include "arch/sm100/pack.hpp"

#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm100/config.hpp"
#include "arch/sm100/kernels.hpp"

namespace hg::sm100 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by 64 K (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows, int box_rows, CUtensorMap& map)
{
    return encode_operand(o, p, rows, span_elements, major_of(o) == Major::K ? box_rows : tile_k, map);
}

// Boxes as store_strip_tma() fills them: 32 lanes along the MMA's M, 4,096 bytes.
Status pack_result(const Problem& p, bool swap_ab, CUtensorMap& map)
{
    const int columns = staging_buffer_bytes / 32 / static_cast<int>(bytes_of(p.d.type));
    return swap_ab ? encode_matrix(p.d, p.columns(), p, 32, columns, map)
                   : encode_matrix(p.d, p.columns(), p, columns, 32, map);
}

}  // namespace

Status pack_gemm(const Problem& p, const Plan& plan, int sm_count, Params& params)
{
    const Config& c = configs[plan.kernel];
    const Mma mma(p, plan.swap_ab);
    const int resident = sm_count / c.cta_group;
    const Facts facts(p);
    params = {};
    params.output = pack_output(p);
    params.k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(plan.tiles);
    params.grid = plan.swap_ab ? square_grid(p.m, p.n, c.tile_n, c.tile_m, resident)
                               : square_grid(p.m, p.n, c.tile_m, c.tile_n, resident);
    params.a_batch_step = mma.a.batch_stride != 0;
    params.b_batch_step = mma.b.batch_stride != 0;
    params.a_major = major_of(mma.a);
    params.b_major = major_of(mma.b);
    params.instruction = instruction_descriptor(c, p.type_ab, params.a_major, params.b_major);
    params.split = plan.split;
    const int blocks = c.tile_n / 8, owners = std::min(plan.split, blocks);
    for (int slice = 0; slice <= max_slices; ++slice)
        params.owner_start[slice] = static_cast<uint8_t>(std::min(slice, owners) * blocks / owners);
    params.swap_ab = plan.swap_ab;
    params.tma_store = !c.is_split() && facts.output.plain && facts.output.tma;
    Status status = pack_operand(mma.a, p, mma.m, 128, params.a);
    if (status == ok)
        status = pack_operand(mma.b, p, mma.n, b_rows(c), params.b);
    if (status == ok && params.tma_store)
        status = pack_result(p, plan.swap_ab, params.d);
    return status;
}

}  // namespace hg::sm100
