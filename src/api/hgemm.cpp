// The C API of Level 3: the arguments of every function become an hgemm_args_t, are checked one by one, and
// become a Problem.
#include "src/api/general_form.hpp"
#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"
#include "src/check/request.hpp"
#include "src/run/composite.hpp"
#include "src/run/execute.hpp"
#include "src/run/handle.hpp"
#include "src/run/lending.hpp"

#include <cinttypes>
#include <cstdio>

namespace hg {
namespace {

// The arguments of each function, in order.
namespace signatures {
using enum Arg;

constexpr Arg short_args[] = {Handle, M, N, K, Alpha, A, Lda, B, Ldb, Beta, InOut, LdInOut};
constexpr Arg cblas_args[] = {Handle, Layout, TransA, TransB, M,    N,     K,      Alpha,
                              A,      Lda,    B,      Ldb,    Beta, InOut, LdInOut};
constexpr Arg strided_args[] = {Handle, Layout, TransA,  TransB,      M,    N,   K,
                                Alpha,  A,      Lda,     StrideA,     B,    Ldb, StrideB,
                                Beta,   InOut,  LdInOut, StrideInOut, Count};
constexpr Arg array_args[] = {Handle, Layout, TransA, TransB, M,    N,     K,       Alpha,
                              A,      Lda,    B,      Ldb,    Beta, InOut, LdInOut, Count};
}  // namespace signatures

struct Operands {
    const void* a;
    int64_t lda;
    const void* b;
    int64_t ldb;
    void* c;
    int64_t ldc;
};

Status short_form(const char* function, hgemm_handle_t handle, hgemm_type_t type, hgemm_op_t transa,
                  hgemm_op_t transb, int64_t m, int64_t n, int64_t k, float alpha, float beta, Operands o)
{
    hgemm_args_t g = basic_args(type, HGEMM_COL_MAJOR, transa, transb, m, n, k, alpha, beta);
    set_matrices(g, o.a, o.lda, o.b, o.ldb, o.c, o.ldc);
    return run_form(function, handle, signatures::short_args, g);
}

}  // namespace

}  // namespace hg

using namespace hg;

#define HGEMM_SHORT_FORM(name, element, type, transa, transb)                                              \
    extern "C" hgemm_status_t name(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,    \
                                   const element* A, int64_t lda, const element* B, int64_t ldb,           \
                                   float beta, element* C, int64_t ldc)                                    \
    {                                                                                                      \
        return short_form(#name, handle, type, transa, transb, m, n, k, alpha, beta,                       \
                          {A, lda, B, ldb, C, ldc});                                                       \
    }

HGEMM_SHORT_FORM(hgemm_nn, hgemm_half_t, HGEMM_F16, HGEMM_NO_TRANS, HGEMM_NO_TRANS)
HGEMM_SHORT_FORM(hgemm_nt, hgemm_half_t, HGEMM_F16, HGEMM_NO_TRANS, HGEMM_TRANS)
HGEMM_SHORT_FORM(hgemm_tn, hgemm_half_t, HGEMM_F16, HGEMM_TRANS, HGEMM_NO_TRANS)
HGEMM_SHORT_FORM(hgemm_tt, hgemm_half_t, HGEMM_F16, HGEMM_TRANS, HGEMM_TRANS)
HGEMM_SHORT_FORM(bgemm_nn, hgemm_bfloat16_t, HGEMM_BF16, HGEMM_NO_TRANS, HGEMM_NO_TRANS)
HGEMM_SHORT_FORM(bgemm_nt, hgemm_bfloat16_t, HGEMM_BF16, HGEMM_NO_TRANS, HGEMM_TRANS)
HGEMM_SHORT_FORM(bgemm_tn, hgemm_bfloat16_t, HGEMM_BF16, HGEMM_TRANS, HGEMM_NO_TRANS)
HGEMM_SHORT_FORM(bgemm_tt, hgemm_bfloat16_t, HGEMM_BF16, HGEMM_TRANS, HGEMM_TRANS)

// The three CBLAS-like forms of one element type.
#define HGEMM_CBLAS_FORMS(prefix, element, type)                                                           \
    extern "C" hgemm_status_t prefix(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t transa,      \
                                     hgemm_op_t transb, int64_t m, int64_t n, int64_t k, float alpha,      \
                                     const element* A, int64_t lda, const element* B, int64_t ldb,         \
                                     float beta, element* C, int64_t ldc)                                  \
    {                                                                                                      \
        hgemm_args_t g = basic_args(type, layout, transa, transb, m, n, k, alpha, beta);                   \
        set_matrices(g, A, lda, B, ldb, C, ldc);                                                           \
        return run_form(#prefix, handle, signatures::cblas_args, g);                                       \
    }                                                                                                      \
    extern "C" hgemm_status_t prefix##_strided_batched(                                                    \
        hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int64_t m,     \
        int64_t n, int64_t k, float alpha, const element* A, int64_t lda, int64_t stride_a,                \
        const element* B, int64_t ldb, int64_t stride_b, float beta, element* C, int64_t ldc,              \
        int64_t stride_c, int64_t batch_count)                                                             \
    {                                                                                                      \
        hgemm_args_t g = basic_args(type, layout, transa, transb, m, n, k, alpha, beta);                   \
        set_matrices(g, A, lda, B, ldb, C, ldc);                                                           \
        g.stride_a = stride_a;                                                                             \
        g.stride_b = stride_b;                                                                             \
        g.stride_c = g.stride_d = stride_c;                                                                \
        g.batch_count = batch_count;                                                                       \
        return run_form(#prefix "_strided_batched", handle, signatures::strided_args, g);                  \
    }                                                                                                      \
    extern "C" hgemm_status_t prefix##_batched(                                                            \
        hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int64_t m,     \
        int64_t n, int64_t k, float alpha, const element* const* A, int64_t lda, const element* const* B,  \
        int64_t ldb, float beta, element* const* C, int64_t ldc, int64_t batch_count)                      \
    {                                                                                                      \
        hgemm_args_t g = basic_args(type, layout, transa, transb, m, n, k, alpha, beta);                   \
        set_matrices(g, nullptr, lda, nullptr, ldb, nullptr, ldc);                                         \
        g.a_array = reinterpret_cast<const void* const*>(A);                                               \
        g.b_array = reinterpret_cast<const void* const*>(B);                                               \
        g.c_array = reinterpret_cast<const void* const*>(C);                                               \
        g.d_array = reinterpret_cast<void* const*>(C);                                                     \
        g.batch_count = batch_count;                                                                       \
        return run_form(#prefix "_batched", handle, signatures::array_args, g);                            \
    }

HGEMM_CBLAS_FORMS(hgemm, hgemm_half_t, HGEMM_F16)
HGEMM_CBLAS_FORMS(bgemm, hgemm_bfloat16_t, HGEMM_BF16)

extern "C" void hgemm_args_init(hgemm_args_t* args, size_t size)
{
    fill_struct(args, size,
                basic_args(HGEMM_F16, HGEMM_COL_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 0, 0, 0, 1, 0));
}

extern "C" hgemm_status_t hgemm_gemm_ex(hgemm_handle_t handle, const hgemm_args_t* args)
{
    return with_handle("hgemm_gemm_ex", handle, [&](hg::Handle& h) {
        hgemm_args_t g;
        Status status = copy_args(args, g);
        if (status != ok || repeat(h, g, status))
            return status;
        status = check_members(g, pointers_of(h));
        return status == ok ? run_checked(h, g) : status;
    });
}

extern "C" hgemm_status_t hgemm_workspace_size(hgemm_handle_t handle, const hgemm_args_t* args,
                                               size_t* bytes)
{
    return with_handle("hgemm_workspace_size", handle, [&](hg::Handle& h) {
        hgemm_args_t g;
        Status status = check_args(args, Pointers::Unchecked, g);
        if (status == ok && !bytes)
            return fail_argument(3, "bytes", "is NULL, must point to a size_t");
        if (status == ok)
            status = find_place(h);
        Plan decided{};
        if (status == ok && !is_empty(g) && !to_problem(g).changes_nothing()) {
            const Composite* const composite = composite_of(h, to_problem(g));
            Needs needs;
            status =
                composite ? composite->check(h, to_problem(g), needs) : plan(h, to_problem(g), decided);
            if (composite)
                decided.workspace = needs.bytes;
        }
        if (status == ok)
            *bytes = decided.workspace;
        return status;
    });
}

extern "C" hgemm_status_t hgemm_explain(hgemm_handle_t handle, const hgemm_args_t* args, char* buffer,
                                        size_t length)
{
    return with_handle("hgemm_explain", handle, [&](hg::Handle& h) {
        hgemm_args_t g;
        Status status = check_args(args, Pointers::Unchecked, g);
        if (status == ok && !buffer && length > 0)
            return fail_argument(3, "buffer", "is NULL, must point to %zu bytes", length);
        if (status != ok || is_empty(g)) {
            if (status == ok)
                std::snprintf(buffer, length, "nothing to compute: m, n or batch_count is 0");
            return status;
        }
        const Problem problem = to_problem(g);
        if (problem.changes_nothing()) {
            std::snprintf(buffer, length, "nothing to compute: D is C as it is");
            return ok;
        }
        Plan decided;
        status = find_place(h);
        if (const Composite* const composite = composite_of(h, problem); status == ok && composite)
            return composite->explain(h, problem, buffer, length);
        if (status == ok)
            status = plan(h, problem, decided);
        if (status == ok)
            decided.print(buffer, length);
        return status;
    });
}
