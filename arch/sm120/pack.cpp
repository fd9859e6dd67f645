#include "arch/sm120/pack.hpp"

#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm120/kernels.hpp"

namespace hg::sm120 {
namespace {

// Boxes: tile_k by the tile's rows (K-major), or a panel of rows by tile_k (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int tile_rows, int tile_k,
                    CUtensorMap& map)
{
    const bool k_major = major_of(o) == Major::K;
    return encode_operand(o, p, rows_of_operand, k_major ? tile_k : panel, k_major ? tile_rows : tile_k,
                          map);
}

}  // namespace

Status pack_gemm(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = configs[plan.kernel];
    const Facts facts(p);
    params = {};
    params.output = pack_output(p);
    params.k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(plan.tiles);
    params.grid = square_grid(p.m, p.n, c.tile_m, c.tile_n, static_cast<int>(plan.grid));
    params.a_batch_step = p.a.batch_stride != 0;
    params.b_batch_step = p.b.batch_stride != 0;
    params.tma_store = facts.output.plain && facts.output.tma;
    Status status = pack_operand(p.a, p, p.m, c.tile_m, c.tile_k, params.a);
    if (status == ok)
        status = pack_operand(p.b, p, p.n, c.tile_n, c.tile_k, params.b);
    if (status == ok && params.tma_store)
        status = encode_matrix(p.d, facts.output.columns, p, box_columns(c, p.d.type), box_rows, params.d);
    return status;
}

}  // namespace hg::sm120
