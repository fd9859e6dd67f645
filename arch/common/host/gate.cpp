#include "arch/common/host/gate.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/facts.hpp"
#include "src/base/displaced.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
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

// The same of a gradient, where gates and up elements may also alternate.
bool takes_vectors(const GateGradient& what)
{
    const int64_t block = what.gate.block;
    return what.columns % vector == 0 && (block == 1 || block % vector == 0) &&
           is_vector_aligned(what.product, what.ld_product, 0, bytes_of(what.type_product)) &&
           is_vector_aligned(what.of_d, what.ld_of_d, 0, bytes_of(what.type_of_d)) &&
           is_vector_aligned(what.of_product, what.ld_of_product, 0, bytes_of(what.type_of_product));
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

int64_t rows_at_once(const GateGradient& what)
{
    constexpr int64_t elements = int64_t{1} << 30;
    return std::max<int64_t>(1, elements / what.columns);
}

GateGradientParams pack_gate_gradient(const GateGradient& what, int64_t first, int64_t rows)
{
    GateGradientParams p{};
    p.product = displaced(what.product, first * what.ld_product * bytes_of(what.type_product));
    p.of_d = displaced(what.of_d, first * what.ld_of_d * bytes_of(what.type_of_d));
    p.of_product = displaced(what.of_product, first * what.ld_of_product * bytes_of(what.type_of_product));
    p.ld_product = what.ld_product;
    p.ld_of_d = what.ld_of_d;
    p.ld_of_product = what.ld_of_product;
    p.vectors = takes_vectors(what);
    p.alternate = p.vectors && what.gate.block == 1;
    const int64_t units = what.columns / (p.vectors ? vector : 1);
    p.units_of_row = divisor(static_cast<int32_t>(units));
    p.units = static_cast<int32_t>(units * rows);
    p.block = divisor(static_cast<int32_t>(what.gate.block));
    p.gate = what.gate;
    p.activation = what.activation;
    p.type_product = what.type_product;
    p.type_of_d = what.type_of_d;
    p.type_of_product = what.type_of_product;
    return p;
}

}  // namespace hg
