#include "arch/common/host/gate.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/facts.hpp"
#include "src/plan/problem.hpp"

#include <cstdint>

namespace hg {
namespace {

constexpr int64_t vector = 8;  // elements

bool is_aligned(const Matrix& x, int64_t batch)
{
    return !x.array && is_vector_aligned(x.ptr, x.ld, batch > 1 ? x.batch_stride : 0, bytes_of(x.type));
}

// Can all accesses be vectors?
bool takes_vectors(const GatePass& pass)
{
    const bool sums = is_vector_aligned(pass.sums, pass.ld, pass.problem_stride, sizeof(float)) &&
                      pass.apart % vector == 0 && pass.block % vector == 0 && pass.columns % vector == 0;
    const bool aux = !pass.aux.ptr || (is_aligned(pass.aux, pass.batch) && pass.gate.block % vector == 0);
    return sums && aux && is_aligned(pass.d, pass.batch);
}

}  // namespace

GateParams pack_gates(const GatePass& pass)
{
    GateParams p{};
    p.sums = pass.sums;
    p.d = base_of<void>(pass.d);
    p.d_array = pass.d.array;
    p.aux = pass.aux.ptr;
    p.ld = pass.ld;
    p.problem_stride = pass.problem_stride;
    p.apart = pass.apart;
    p.ldd = pass.d.ld;
    p.stride_d = pass.d.batch_stride;
    p.ldaux = pass.aux.ld;
    p.stride_aux = pass.aux.batch_stride;
    p.aux_apart = pass.gate.block;
    p.vectors = takes_vectors(pass);
    const int64_t units = pass.columns / (p.vectors ? vector : 1);
    p.units_of_row = divisor(static_cast<int32_t>(units));
    p.units_of_problem = divisor(static_cast<int32_t>(units * pass.rows));
    if (pass.block != 0)
        p.block = divisor(static_cast<int32_t>(pass.block));
    p.units = static_cast<int32_t>(units * pass.rows * pass.batch);
    p.gate = pass.gate;
    p.activation = pass.activation;
    p.type_d = pass.d.type;
    p.groups = pass.groups;
    p.group_count = static_cast<int32_t>(pass.group_count);
    p.rows = pass.rows;
    return p;
}

}  // namespace hg
