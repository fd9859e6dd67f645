#include "src/api/general_form.hpp"

#include "src/check/canonical.hpp"
#include "src/check/request.hpp"
#include "src/plan/problem.hpp"
#include "src/run/composite.hpp"
#include "src/run/execute.hpp"
#include "src/run/lending.hpp"

namespace hg {
namespace {

// The arguments of each function, in order.
namespace signatures {
using enum Arg;

constexpr Arg ex_args[] = {Handle,  Args,  Size,      Layout,  TransA,   TransB,   TypeAb, TypeC,
                           TypeD,   M,     N,         K,       Gate,     Alpha,    Beta,   Count,
                           A,       Lda,   StrideA,   B,       Ldb,      StrideB,  C,      Ldc,
                           StrideC, D,     Ldd,       StrideD, BiasMode, BiasType, Bias,   Activation,
                           Aux,     Ldaux, StrideAux, Flags,   Uplo};
}  // namespace signatures

}  // namespace

hgemm_args_t basic_args(hgemm_type_t type, hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb,
                        int64_t m, int64_t n, int64_t k, float alpha, float beta)
{
    hgemm_args_t g{};
    g.size = sizeof g;
    g.layout = layout;
    g.transa = transa;
    g.transb = transb;
    g.type_ab = g.type_c = g.type_d = g.bias_type = type;
    g.m = m;
    g.n = n;
    g.k = k;
    g.alpha = alpha;
    g.beta = beta;
    g.batch_count = 1;
    return g;
}

void set_matrices(hgemm_args_t& g, const void* a, int64_t lda, const void* b, int64_t ldb, void* c,
                  int64_t ldc)
{
    g.a = a;
    g.lda = lda;
    g.b = b;
    g.ldb = ldb;
    g.c = g.d = c;
    g.ldc = g.ldd = ldc;
}

Status run_form(const char* function, hgemm_handle_t handle, std::span<const Arg> args,
                const hgemm_args_t& g) noexcept
{
    return with_handle(function, handle, [&](hg::Handle& h) {
        Status status;
        if (repeat(h, g, status))
            return status;
        status = check_arguments({args, false}, g, pointers_of(h));
        return status == ok ? run_checked(h, g) : status;
    });
}

Status copy_args(const hgemm_args_t* args, hgemm_args_t& copy)
{
    return copy_struct(args, "hgemm_args", copy);
}

Status check_members(const hgemm_args_t& args, Pointers pointers)
{
    return check_arguments({signatures::ex_args, true}, args, pointers);
}

Status check_args(const hgemm_args_t* args, Pointers pointers, hgemm_args_t& copy)
{
    const Status status = copy_args(args, copy);
    return status == ok ? check_members(copy, pointers) : status;
}

Status run_checked(hg::Handle& handle, const hgemm_args_t& args)
{
    return is_empty(args) ? ok : execute(handle, args, to_problem(args));
}

Status prepare_product(hg::Handle& handle, const hgemm_args_t* args)
{
    hgemm_args_t checked;
    Status status = check_args(args, pointers_of(handle), checked);
    if (status != ok || is_empty(checked))
        return status;
    const Problem problem = to_problem(checked);
    if (problem.changes_nothing())
        return ok;
    if (const Composite* const composite = composite_of(handle, problem))
        return prepare_composite(handle, *composite, problem);
    Plan decided;
    status = decide(handle, problem, decided);
    if (status == ok)
        status = check_workspace(handle, decided);
    return status == ok ? provide_workspace(handle, decided.workspace, decided.counts) : status;
}

Status run_product(hg::Handle& handle, const hgemm_args_t* args)
{
    hgemm_args_t checked;
    Status status = check_args(args, pointers_of(handle), checked);
    if (status == ok && !repeat(handle, checked, status))
        status = run_checked(handle, checked);
    return status;
}

}  // namespace hg
