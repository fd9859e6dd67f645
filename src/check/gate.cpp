#include "src/check/gate.hpp"

#include "src/base/decimal.hpp"
#include "src/plan/problem.hpp"

#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <cstdint>

namespace hg {
namespace {

Status check_sizes(const hgemm_gate_gradient_args_t& x)
{
    if (x.rows < 0)
        return fail_argument(2, "args->rows", "is %" PRId64 ", must be at least 0", x.rows);
    if (x.columns < 0 || x.columns > most_columns)
        return fail_argument(2, "args->columns", "is %" PRId64 ", must be 0 to 2^30", x.columns);
    return ok;
}

Status check_types(const hgemm_gate_gradient_args_t& x)
{
    Status status = check_type(2, "args->type_product", x.type_product);
    if (status == ok)
        status = check_type(2, "args->type_of_d", x.type_of_d);
    return status == ok ? check_type(2, "args->type_of_product", x.type_of_product) : status;
}

Status check_gates(const hgemm_gate_gradient_args_t& x)
{
    if (x.activation < HGEMM_ACTIVATION_NONE || x.activation > HGEMM_ACTIVATION_SILU)
        return fail_argument(2, "args->activation", "is %d, must be an hgemm_activation_t from 0 to 4",
                             static_cast<int>(x.activation));
    if (x.gate.block == 0)
        return fail_argument(2, "args->gate.block", "is 0, must be at least 1");
    return check_gate(2, x.gate, x.activation, {x.columns, x.rows, "columns"});
}

Status check_lds(const hgemm_gate_gradient_args_t& x)
{
    const Stored line = {x.columns, x.rows, "columns"}, half = {x.columns / 2, x.rows, "columns / 2"};
    Status status = check_leading(2, "args->ld_product", x.ld_product, line, element_bytes(x.type_product));
    if (status == ok)
        status = check_leading(2, "args->ld_of_d", x.ld_of_d, half, element_bytes(x.type_of_d));
    return status == ok ? check_leading(2, "args->ld_of_product", x.ld_of_product, line,
                                        element_bytes(x.type_of_product))
                        : status;
}

Status check_pointers(const hgemm_gate_gradient_args_t& x, Pointers pointers)
{
    Status status = check_pointer(2, "args->product", x.product, element_bytes(x.type_product), pointers);
    if (status == ok)
        status = check_pointer(2, "args->of_d", x.of_d, element_bytes(x.type_of_d), pointers);
    if (status == ok)
        status =
            check_pointer(2, "args->of_product", x.of_product, element_bytes(x.type_of_product), pointers);
    if (status != ok || x.of_product != x.product)
        return status;
    if (x.type_of_product != x.type_product)
        return fail_argument(
            2, "args->of_product",
            "equals args->product, so args->type_of_product must equal args->type_product");
    if (x.ld_of_product != x.ld_product)
        return fail_argument(2, "args->of_product",
                             "equals args->product, so args->ld_of_product = %" PRId64
                             " must equal args->ld_product = %" PRId64,
                             x.ld_of_product, x.ld_product);
    return ok;
}

}  // namespace

Status check_gate(int position, const hgemm_gate_t& gate, hgemm_activation_t activation, const Stored& line)
{
    const auto bad_member = [=](const char* member, double value, const char* wanted) {
        return fail_argument(position, member, "is %s, must be %s", general(value).text(), wanted);
    };
    if (gate.block < 0)
        return fail_argument(position, "args->gate.block", "is %" PRId64 ", must be at least 0",
                             gate.block);
    if (gate.block > 0 && line.inner > 0 &&
        (gate.block > line.inner / 2 || line.inner % (2 * gate.block) != 0))
        return fail_argument(position, "args->gate.block",
                             "is %" PRId64 ", twice of it must divide args->%s = %" PRId64, gate.block,
                             line.inner_name, line.inner);
    if (!(gate.limit >= 0.0f && gate.limit <= FLT_MAX))
        return bad_member("args->gate.limit", gate.limit, "finite and at least 0");
    if (!(gate.slope >= 0.0f && gate.slope <= FLT_MAX))
        return bad_member("args->gate.slope", gate.slope, "finite and at least 0");
    if (gate.slope != 0.0f && activation != HGEMM_ACTIVATION_SILU)
        return bad_member("args->gate.slope", gate.slope, "0 without HGEMM_ACTIVATION_SILU");
    if (!std::isfinite(gate.offset))
        return bad_member("args->gate.offset", gate.offset, "finite");
    if (gate.block == 0 && (gate.limit != 0.0f || gate.slope != 0.0f || gate.offset != 0.0f))
        return fail_argument(position, "args->gate.block",
                             "is 0, so the other members of args->gate must be 0 as well");
    return ok;
}

Status check_gate_gradient(const hgemm_gate_gradient_args_t& x, Pointers pointers)
{
    Status status = check_sizes(x);
    if (status == ok)
        status = check_types(x);
    if (status == ok)
        status = check_gates(x);
    if (status == ok)
        status = check_lds(x);
    const bool is_empty = x.rows == 0 || x.columns == 0;
    return status == ok && !is_empty ? check_pointers(x, pointers) : status;
}

}  // namespace hg
