#include "arch/sm80/pack.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/sm80/kernels.hpp"

#include <algorithm>

namespace hg::sm80 {
namespace {

constexpr int group_m = 8;  // rows of tiles walked together

GateTiles gates_of(const Problem& p)
{
    const bool alternate = p.gate.block == 1, k_major = major_of(p.b) == Major::K;
    GateTiles gates{};
    gates.gate = p.gate;
    gates.alternate = alternate;
    gates.block = divisor(static_cast<int32_t>(p.gate.block));
    gates.up = alternate ? p.b.row_stride : p.gate.block * (k_major ? p.b.row_stride : 1);
    return gates;
}

}  // namespace

OperandParams pack_operand(const Operand& o, const Problem& p, int64_t rows)
{
    OperandParams params{};
    params.ptr = base_of<const uint16_t>(o);
    params.array = reinterpret_cast<const uint16_t* const*>(o.array);
    params.row_stride = o.row_stride;
    params.k_stride = o.k_stride;
    params.batch_stride = o.batch_stride;
    if (o.array || p.is_grouped() || rows == 0 || p.k == 0 || p.batch == 0)
        return params;
    const int64_t last_problem = (p.batch - 1) * o.batch_stride;
    const auto place = [&](int64_t element) {
        return reinterpret_cast<uintptr_t>(o.ptr) + static_cast<uintptr_t>(2 * element);
    };
    params.begin = place(std::min<int64_t>(0, last_problem));
    params.end = place(std::max<int64_t>(0, last_problem) + extent(params, rows, p.k));
    return params;
}

void pack_gemm(const Problem& p, const Plan& plan, Params& params)
{
    const KernelInfo& kernel = kernels[plan.kernel];
    params = {};
    params.a = pack_operand(p.a, p, p.m);
    params.b = pack_operand(p.b, p, p.n);
    params.output = pack_output(p);
    if (p.is_gated()) {
        params.gates = gates_of(p);
        if (params.gates.alternate)
            params.b.row_stride *= 2;
    }
    params.k = p.k;
    params.slices.split = divisor(plan.split);
    params.slices.k_tiles = static_cast<int32_t>(ceil_div(p.k, kernel.tile_k));
    params.groups = p.groups;
    if (p.is_grouped() && !p.groups.of_k) {
        params.group_count = static_cast<int32_t>(p.batch);
        params.group_tiles_n = static_cast<int32_t>(ceil_div(p.n, kernel.tile_n));
    } else {
        params.grid = pack_grid(p, kernel, group_m);
    }
}

}  // namespace hg::sm80
