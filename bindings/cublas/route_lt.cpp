// cublasLtMatmul: D = epilogue(alpha * op(A) * op(B) + beta * C).
#include "route.hpp"
#include "route_common.hpp"

#include <initializer_list>

namespace hg::shim {
namespace {

// A matrix in the other order than D counts as its transpose.
struct Operand {
    bool transposed;
    int64_t rows, columns;  // of op(X)
};

Operand as_operand(const LtMatrix& x, int op, int order)
{
    const auto rows = static_cast<int64_t>(x.rows), columns = static_cast<int64_t>(x.columns);
    const bool swapped = op != op_n;
    return {swapped != (x.order != order), swapped ? columns : rows, swapped ? rows : columns};
}

bool has_room(const LtMatrix& x)
{
    const uint64_t line = x.order == order_row ? x.columns : x.rows;
    return x.ld >= 1 && static_cast<uint64_t>(x.ld) >= line;
}

// Of another one, the layout's rows, columns and ld may not be what they are named.
bool is_known_batch(const LtMatrix& x)
{
    return x.batch_mode == batch_strided || x.batch_mode == batch_pointer_array;
}

bool is_plain_order(const LtMatrix& x) { return x.order == order_col || x.order == order_row; }

bool is_sound(const LtCall& call, const Operand& a, const Operand& b)
{
    const auto m = static_cast<int64_t>(call.d.rows), n = static_cast<int64_t>(call.d.columns);
    return a.rows == m && b.columns == n && a.columns == b.rows && call.c.rows == call.d.rows &&
           call.c.columns == call.d.columns && has_room(call.a) && has_room(call.b) && has_room(call.c) &&
           has_room(call.d) && call.alpha && call.beta && call.a_data && call.b_data && call.d_data &&
           call.d.batch >= 0;
}

// The bias lies along the rows of D.
bool set_epilogue(const LtCall& call, hgemm_args_t& args)
{
    const bool has_bias = call.epilogue & epilogue_bias;
    const uint32_t activation = call.epilogue & ~epilogue_bias;
    if (has_bias) {
        if (call.d.order != order_col || !call.bias ||
            (call.bias_type != -1 && call.bias_type != call.d.type))
            return false;
        args.bias_mode = HGEMM_BIAS_M;
        args.bias_type = args.type_d;
        args.bias = call.bias;
        args.stride_bias = call.bias_stride;
    }
    switch (activation) {
    case 0: return has_bias;
    case epilogue_default: return !has_bias;
    case epilogue_relu: args.activation = HGEMM_ACTIVATION_RELU; return true;
    case epilogue_gelu: args.activation = HGEMM_ACTIVATION_GELU_TANH; return true;
    default: return false;
    }
}

bool set_batch(const LtCall& call, hgemm_args_t& args)
{
    for (const LtMatrix* x : {&call.a, &call.b, &call.c})
        if (x->batch != call.d.batch || x->batch_mode != call.d.batch_mode)
            return false;
    args.batch_count = call.d.batch;
    if (call.d.batch_mode == batch_pointer_array) {
        args.a_array = static_cast<const void* const*>(call.a_data);
        args.b_array = static_cast<const void* const*>(call.b_data);
        args.c_array = static_cast<const void* const*>(call.c_data);
        args.d_array = static_cast<void* const*>(call.d_data);
        return call.epilogue == epilogue_default;
    }
    args.a = call.a_data;
    args.b = call.b_data;
    args.c = call.c_data;
    args.d = call.d_data;
    args.stride_a = call.a.stride;
    args.stride_b = call.b.stride;
    args.stride_c = call.c.stride;
    args.stride_d = call.d.stride;
    return true;
}

}  // namespace

bool ignores_c(const LtCall& call)
{
    return call.pointer_mode == pointers_host && call.scale_type == r_32f && call.beta &&
           *static_cast<const float*>(call.beta) == 0;
}

bool is_half(const LtCall& call)
{
    return is_half(call.a.type) || is_half(call.b.type) || call.a.type == -1;
}

Reason route(const LtCall& call, hgemm_args_t& args)
{
    hgemm_args_init(&args, sizeof args);
    if (call.compute != compute_32f || call.scale_type != r_32f)
        return Reason::Compute;
    if (call.c.type != call.d.type || !set_types(call.a.type, call.b.type, call.d.type, args))
        return Reason::Types;
    if (!is_plain_order(call.a) || !is_plain_order(call.b) || !is_plain_order(call.d) ||
        call.c.order != call.d.order || call.transc != op_n || call.fill != fill_full)
        return Reason::Order;
    for (const LtMatrix* x : {&call.a, &call.b, &call.c, &call.d})
        if (!is_known_batch(*x))
            return Reason::Batch;
    if (call.scaled)
        return Reason::Scaling;
    if (!is_op(call.transa) || !is_op(call.transb))
        return Reason::Doubtful;
    const Operand a = as_operand(call.a, call.transa, call.d.order);
    const Operand b = as_operand(call.b, call.transb, call.d.order);
    if (!is_sound(call, a, b))
        return Reason::Arguments;
    if (!call.c_data && !ignores_c(call))
        return Reason::Doubtful;
    args.m = a.rows;
    args.n = b.columns;
    args.k = a.columns;
    if (args.m == 0 || args.n == 0 || args.k == 0 || call.d.batch == 0)
        return Reason::Empty;
    if (!set_scalars(call.pointer_mode, call.alpha, call.beta, args))
        return Reason::Scalars;
    if (!set_batch(call, args))
        return Reason::Batch;
    if (!set_epilogue(call, args))
        return Reason::Epilogue;
    args.layout = call.d.order == order_row ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    args.transa = a.transposed ? HGEMM_TRANS : HGEMM_NO_TRANS;
    args.transb = b.transposed ? HGEMM_TRANS : HGEMM_NO_TRANS;
    args.lda = call.a.ld;
    args.ldb = call.b.ld;
    args.ldc = call.c.ld;
    args.ldd = call.d.ld;
    return Reason::None;
}

}  // namespace hg::shim
