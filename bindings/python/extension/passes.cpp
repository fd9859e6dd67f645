#include "passes.hpp"

#include <algorithm>

#include "view.hpp"

namespace hgemm_torch {
namespace {

// A new tensor, which function(handle, args) writes at `address`, a member of args. Owns `result`.
template <typename Function, typename Args>
Tensor write(const View& beside, Tensor result, void*& address, Function* function, const Args& args)
{
    Shared* shared = result != nullptr ? beside.take_handle(false) : nullptr;
    const bool is_done =
        shared != nullptr && !api.get_data_ptr(result, &address) && !function(shared->handle, &args);
    if (shared != nullptr)
        shared->give_back();
    if (is_done || result == nullptr)
        return result;
    api.delete_tensor(result);
    return nullptr;
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
    return write(x, x.new_rows(lines.columns, y.dtype), args.of_product, api.gate_gradient, args);
}

}  // namespace hgemm_torch
