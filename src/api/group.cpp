#include "src/api/group.hpp"

#include "src/base/displaced.hpp"

namespace hg {
namespace {

hgemm_args_t shared_args(const hgemm_grouped_args_t& g)
{
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;
    args.transa = g.transa;
    args.transb = g.transb;
    args.type_ab = g.type_ab;
    args.type_c = args.type_d = g.type_d;
    args.m = g.m;
    args.n = g.n;
    args.k = g.k;
    args.alpha = g.alpha;
    args.beta = g.beta;
    args.lda = g.lda;
    args.ldb = g.ldb;
    args.ldd = args.ldc = g.ldd;
    args.activation = g.activation;
    args.gate = g.gate;
    return args;
}

// Some rows of a group as the arguments of a GEMM.
hgemm_args_t args_of_rows(const hgemm_grouped_args_t& g, int64_t group, GroupSizes::Rows rows)
{
    const bool masked = is_masked(g);
    hgemm_args_t args = shared_args(g);
    args.m = rows.count;
    args.a = displaced(g.a, 2 * ((masked ? group * g.stride_a : 0) + rows.first * g.lda));
    args.b = displaced(g.b, 2 * group * g.stride_b);
    args.d = displaced(g.d, bytes_of_d(g) * ((masked ? group * g.stride_d : 0) + rows.first * g.ldd));
    args.c = args.d;
    args.aux =
        displaced(g.aux, bytes_of_d(g) * ((masked ? group * g.stride_aux : 0) + rows.first * g.ldaux));
    args.ldaux = g.ldaux;
    if (g.bias) {
        args.bias_mode = HGEMM_BIAS_N;
        args.bias_type = g.bias_type;
        args.bias = displaced(g.bias, bytes_of(static_cast<Type>(g.bias_type)) * group * g.stride_bias);
    }
    return args;
}

// Some K of a group.
hgemm_args_t args_of_k(const hgemm_grouped_args_t& g, int64_t group, GroupSizes::Rows k)
{
    hgemm_args_t args = shared_args(g);
    args.k = k.count;
    args.a = displaced(g.a, 2 * k.first * (g.transa == HGEMM_NO_TRANS ? 1 : g.lda));
    args.b = displaced(g.b, 2 * k.first * (g.transb == HGEMM_NO_TRANS ? g.ldb : 1));
    args.d = displaced(g.d, bytes_of_d(g) * group * g.stride_d);
    args.c = args.d;
    return args;
}

}  // namespace

hgemm_args_t args_of(const hgemm_grouped_args_t& g, int64_t group, GroupSizes::Rows range)
{
    return is_of_k(g) ? args_of_k(g, group, range) : args_of_rows(g, group, range);
}

}  // namespace hg
