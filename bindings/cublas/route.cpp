// The GEMM functions of libcublas. Calls that the real library would refuse are passed on, so that the
// caller gets its status.
#include "route.hpp"

#include "route_common.hpp"

#include "src/base/convert.hpp"

#include <cstring>
#include <initializer_list>

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

bool has_no_output(const GemmCall& g) { return g.m == 0 || g.n == 0 || g.batch == 0; }

// A sound call that changes C.
Reason translate(const GemmCall& g, int pointer_mode, hgemm_args_t& args)
{
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

bool has_all_arrays(const GroupedCall& g)
{
    for (const PerGroup& list : {g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.sizes})
        if (list.is_null())
            return false;
    return g.transa && g.transb && g.alpha && g.beta && g.a && g.b && g.c;
}

// A group as a batch; its pointers begin at `first`.
GemmCall group_of(const GroupedCall& g, int64_t i, int64_t first)
{
    GemmCall group{};
    group.transa = g.transa[i];
    group.transb = g.transb[i];
    group.m = g.m[i];
    group.n = g.n[i];
    group.k = g.k[i];
    group.alpha = static_cast<const float*>(g.alpha) + i;
    group.a = g.a + first;
    group.type_a = g.type_a;
    group.lda = g.lda[i];
    group.b = g.b + first;
    group.type_b = g.type_b;
    group.ldb = g.ldb[i];
    group.beta = static_cast<const float*>(g.beta) + i;
    group.c = const_cast<void**>(g.c + first);
    group.type_c = g.type_c;
    group.ldc = g.ldc[i];
    group.kind = Batch::Arrays;
    group.batch = g.sizes[i];
    group.compute = g.compute;
    group.algorithm = algo_default;
    return group;
}

}  // namespace

const char* text_of(Reason reason) { return texts[static_cast<int>(reason)]; }

bool passes_in_strict_mode(Reason reason)
{
    return in_strict_mode[static_cast<int>(reason)] == Strict::Passes;
}

bool is_half(const GemmCall& g) { return is_half(g.type_a) || is_half(g.type_b); }
bool is_half(const GroupedCall& g) { return is_half(g.type_a) || is_half(g.type_b); }

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
    if (has_no_output(g) || g.k == 0)
        return Reason::Empty;
    return translate(g, pointer_mode, args);
}

// Wrong arguments of any group come before other reasons, for cuBLAS to refuse them in strict mode too. Of
// alpha and beta in device memory and of an fp32 C it says that it does not support them.
Reason route(const GroupedCall& g, int pointer_mode, std::vector<hgemm_args_t>& problems)
{
    if (!has_all_arrays(g) || g.groups < 0)
        return Reason::Arguments;
    Reason reason = pointer_mode == pointers_host ? Reason::None : Reason::Scalars;
    if (g.type_c != g.type_a)
        reason = Reason::Types;
    bool multiplies = false;
    int64_t first = 0, next = 0;
    for (int64_t i = 0; i < g.groups; ++i, first = next) {
        const GemmCall group = group_of(g, i, first);
        if (!is_sound(group) || __builtin_add_overflow(first, group.batch, &next))
            return Reason::Arguments;
        if (has_no_output(group))
            continue;
        multiplies = multiplies || group.k > 0;
        hgemm_args_t args;
        if (reason == Reason::None)
            reason = translate(group, pointer_mode, args);
        if (reason == Reason::None)
            problems.push_back(args);
    }
    return multiplies ? reason : Reason::Empty;
}

}  // namespace hg::shim
