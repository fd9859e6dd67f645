#include "passes.hpp"

#include <algorithm>
#include <utility>

#include "groups.hpp"
#include "view.hpp"

namespace hgemm_torch {
namespace {

// The result of function(handle, args), which writes it.
template <typename Function, typename Args>
Tensor written(const View& beside, Owned result, Function* function, const Args& args)
{
    return written(beside, {}, std::move(result), nullptr,
                   [&](hgemm_handle_t handle) { return function(handle, &args); });
}

// A matrix, and its leading dimension.
bool read_lines(Tensor tensor, View& x, std::int64_t& ld)
{
    if (!x.read(tensor) || x.dimensions != 2)
        return false;
    ld = leading(x.matrix());
    return ld != 0;
}

class Rows {
public:
    hgemm_rows_args_t args;
    View a;

    // Whose lines are of tokens, or of choices.
    bool read(Tensor lines, Tensor rows, bool are_tokens)
    {
        View x;
        if (!read_lines(lines, a, args.lda) || !x.read(rows) || !x.is_beside(a) || x.dimensions != 2 ||
            !x.is_contiguous() || x.dtype != api.i32)
            return false;
        args.tokens = x.sizes[0];
        args.choices = x.sizes[1];
        args.columns = a.sizes[1];
        args.row_of_choice = static_cast<const std::int32_t*>(x.data);
        args.a = a.data;
        args.type_a = args.type_d = a.type();
        args.ldd = std::max<std::int64_t>(1, args.columns);
        return args.type_a != hgemm_type_t{} && a.sizes[0] == (are_tokens ? args.tokens : choices());
    }

    bool weigh(Tensor weights)
    {
        View x;
        if (!read_lines(weights, x, args.ldw) || !x.is_beside(a))
            return false;
        args.weights = x.data;
        args.type_weights = x.type();
        return args.type_weights != hgemm_type_t{} && x.sizes[0] == args.tokens &&
               x.sizes[1] == args.choices;
    }

    std::int64_t choices() const { return args.tokens * args.choices; }

    Rows() { api.rows_args_init(&args, sizeof args); }
};

// Rows behind the last end of d, which has as many rows and columns.
bool clear(const View& beside, Tensor ends, const hgemm_rows_args_t& of)
{
    hgemm_grouped_args_t args;
    api.grouped_args_init(&args, sizeof args);
    args.m = of.tokens * of.choices;
    args.n = of.columns;
    args.d = of.d;
    args.ldd = of.ldd;
    args.type_d = of.type_d;
    if (!read_ends(ends, beside, args))
        return false;
    const Lent lent = beside.take_handle(false);
    return lent && !api.clear_rows(lent->handle, &args);
}

}  // namespace

Tensor gate_gradient(Tensor product, Tensor grad, const Options& options)
{
    View x, y;
    Matrix lines, half_lines;
    if (!x.read(product) || !y.read(grad) || !x.is_beside(y) || !x.as_rows(lines) ||
        !y.as_rows(half_lines) || lines.rows != half_lines.rows || lines.columns != 2 * half_lines.columns)
        return nullptr;
    hgemm_gate_gradient_args_t args;
    api.gate_gradient_args_init(&args, sizeof args);
    args.rows = lines.rows;
    args.columns = lines.columns;
    args.product = x.data;
    args.ld_product = leading(lines);
    args.of_d = y.data;
    args.ld_of_d = leading(half_lines);
    args.ld_of_product = std::max<std::int64_t>(1, lines.columns);
    args.type_product = x.type();
    args.type_of_d = args.type_of_product = y.type();
    args.activation = options.activation();
    args.gate = options.gate;
    if (args.ld_product == 0 || args.ld_of_d == 0)
        return nullptr;
    return written(x, x.new_rows(lines.columns, y.dtype, args.of_product), api.gate_gradient, args);
}

Routed route(Tensor indices, std::int64_t experts)
{
    View x;
    hgemm_route_args_t args;
    api.route_args_init(&args, sizeof args);
    if (!read_lines(indices, x, args.ld) || (x.dtype != api.i32 && x.dtype != api.i64))
        return {};
    args.tokens = x.sizes[0];
    args.choices = x.sizes[1];
    args.experts = experts;
    if (x.dtype == api.i32)
        args.chosen_i32 = static_cast<const std::int32_t*>(x.data);
    else
        args.chosen = static_cast<const std::int64_t*>(x.data);
    void *address = nullptr, *ends_address = nullptr;
    Owned rows = x.new_tensor({args.tokens, args.choices}, api.i32, address);
    Owned ends = x.new_tensor({experts}, api.i32, ends_address);
    args.row_of_choice = static_cast<std::int32_t*>(address);
    args.ends = static_cast<std::int32_t*>(ends_address);
    Tensor written_rows = ends ? written(x, std::move(rows), api.route, args) : nullptr;
    return written_rows != nullptr ? Routed{written_rows, ends.release()} : Routed{};
}

Tensor gather(Tensor x, Tensor weights, Tensor rows, Tensor ends, const Options& options)
{
    Rows of;
    if (!of.read(x, rows, true) || (options.has(ADDED) && !of.weigh(weights)))
        return nullptr;
    Owned d = of.a.new_tensor({of.choices(), of.args.columns}, of.a.dtype, of.args.d);
    Owned gathered(written(of.a, std::move(d), api.gather_rows, of.args));
    return gathered && (!options.has(CLEAR) || clear(of.a, ends, of.args)) ? gathered.release() : nullptr;
}

Tensor combine(Tensor values, Tensor weights, Tensor rows, const Options& options)
{
    Rows of;
    if (!of.read(values, rows, false) || (options.has(ADDED) && !of.weigh(weights)))
        return nullptr;
    Owned d = of.a.new_tensor({of.args.tokens, of.args.columns}, of.a.dtype, of.args.d);
    return written(of.a, std::move(d), api.combine_rows, of.args);
}

Tensor dot(Tensor x, Tensor values, Tensor rows, hgemm_type_t type)
{
    Rows of;
    View b;
    if (!of.read(x, rows, true) || !read_lines(values, b, of.args.ldb) || !b.is_beside(of.a) ||
        b.sizes[0] != of.choices() || b.sizes[1] != of.args.columns)
        return nullptr;
    of.args.b = b.data;
    of.args.type_b = b.type();
    of.args.type_d = type;
    of.args.ldd = std::max<std::int64_t>(1, of.args.choices);
    Owned d = of.a.new_tensor({of.args.tokens, of.args.choices}, dtype_of(type), of.args.d);
    return written(of.a, std::move(d), api.dot_rows, of.args);
}

}  // namespace hgemm_torch
