#include "src/api/general_form.hpp"

#include "src/check/canonical.hpp"
#include "src/check/request.hpp"
#include "src/run/execute.hpp"

namespace hg {
namespace {

// The arguments of each function, in order.
namespace signatures {
using enum Arg;

constexpr Arg ex_args[] = {Handle,   Args,  Size,       Layout,  TransA, TransB,    TypeAb,
                           TypeC,    TypeD, M,          N,       K,      Alpha,     Beta,
                           Count,    A,     Lda,        StrideA, B,      Ldb,       StrideB,
                           C,        Ldc,   StrideC,    D,       Ldd,    StrideD,   BiasMode,
                           BiasType, Bias,  Activation, Aux,     Ldaux,  StrideAux, Flags};
}  // namespace signatures

}  // namespace

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

}  // namespace hg
