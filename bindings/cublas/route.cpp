// The GEMM functions of libcublas. Calls that the real library would refuse are passed on, so that the
// caller gets its status.
#include "route.hpp"

#include "route_common.hpp"

#include "src/base/convert.hpp"

#include <cstring>

namespace hg::shim {
namespace {

constexpr const char* texts[] = {
    "served",
#define HGEMM_REASON(name, strict, text) text,
#include "reasons.def"
#undef HGEMM_REASON
};

enum class Strict { Fails, Passes };
constexpr Strict in_strict_mode[] = {
    Strict::Passes,
#define HGEMM_REASON(name, strict, text) Strict::strict,
#include "reasons.def"
#undef HGEMM_REASON
};

bool is_algorithm(int algorithm)
{
    return (algorithm >= algo_default && algorithm <= algo_last) ||
           (algorithm >= algo_tensor_default && algorithm <= algo_tensor_last);
}

bool fits(int op, int64_t ld, int64_t rows, int64_t columns)
{
    return ld >= (op == op_n ? rows : columns) && ld >= 1;
}

bool is_sound(const GemmCall& g)
{
    return is_op(g.transa) && is_op(g.transb) && g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0 &&
           fits(g.transa, g.lda, g.m, g.k) && fits(g.transb, g.ldb, g.k, g.n) &&
           fits(op_n, g.ldc, g.m, g.n) && g.alpha && g.beta && g.a && g.b && g.c;
}

float widen(const void* half)
{
    uint16_t bits;
    std::memcpy(&bits, half, sizeof bits);
    return half_to_float(bits);
}

void set_matrices(const GemmCall& g, hgemm_args_t& args)
{
    args.lda = g.lda;
    args.ldb = g.ldb;
    args.ldc = args.ldd = g.ldc;
    args.batch_count = g.batch;
    if (g.kind == Batch::Arrays) {
        args.a_array = static_cast<const void* const*>(g.a);
        args.b_array = static_cast<const void* const*>(g.b);
        args.d_array = static_cast<void* const*>(g.c);
        args.c_array = args.d_array;
        return;
    }
    args.a = g.a;
    args.b = g.b;
    args.c = args.d = g.c;
    args.stride_a = g.stride_a;
    args.stride_b = g.stride_b;
    args.stride_c = args.stride_d = g.stride_c;
}

}  // namespace

const char* text_of(Reason reason) { return texts[static_cast<int>(reason)]; }

bool passes_in_strict_mode(Reason reason)
{
    return in_strict_mode[static_cast<int>(reason)] == Strict::Passes;
}

bool is_half(const GemmCall& g) { return is_half(g.type_a) || is_half(g.type_b); }

void use_symmetry(hgemm_args_t& g)
{
    const bool is_same =
        g.a && g.a == g.b && g.lda == g.ldb && (g.batch_count == 1 || g.stride_a == g.stride_b);
    const bool is_transpose = (g.transa == HGEMM_NO_TRANS) != (g.transb == HGEMM_NO_TRANS);
    // A C need not be symmetric, nor a bias.
    const bool is_alone = !g.beta_device && g.beta == 0 && g.bias_mode == HGEMM_BIAS_NONE &&
                          g.activation == HGEMM_ACTIVATION_NONE && !g.aux;
    if (is_same && is_transpose && is_alone && g.m == g.n)
        g.uplo = HGEMM_BOTH;
}

Reason route(const GemmCall& g, int pointer_mode, hgemm_args_t& args)
{
    if (!is_sound(g))
        return Reason::Arguments;
    if (g.m == 0 || g.n == 0 || g.k == 0 || g.batch == 0)
        return Reason::Empty;
    if (g.compute != compute_32f)
        return Reason::Compute;
    hgemm_args_init(&args, sizeof args);
    if (!set_types(g.type_a, g.type_b, g.type_c, args))
        return Reason::Types;
    if (!is_algorithm(g.algorithm))
        return Reason::Algorithm;
    if (g.half_scalars && pointer_mode == pointers_host) {
        args.alpha = widen(g.alpha);
        args.beta = widen(g.beta);
    } else if (g.half_scalars || !set_scalars(pointer_mode, g.alpha, g.beta, args)) {
        return Reason::Scalars;
    }
    args.transa = transposition(g.transa);
    args.transb = transposition(g.transb);
    args.m = g.m;
    args.n = g.n;
    args.k = g.k;
    set_matrices(g, args);
    return Reason::None;
}

}  // namespace hg::shim
