// The public functions: arguments become a row-major hgemm_args_t, are checked one by one, and the GEMM is
// routed to the CPU or the GPU.
#include "hgemm_cblas.h"

#include "fork.hpp"
#include "route.hpp"
#include "src/base/convert.hpp"
#include "src/base/log.hpp"
#include "src/check/arguments.hpp"

#include <atomic>

namespace hg::cblas {
namespace {

using enum Arg;

constexpr Arg arguments[] = {Layout, TransA, TransB, M, N, K, Alpha, A, Lda, B, Ldb, Beta, InOut, LdInOut};

std::atomic<hgemm_cblas_handler_t> error_handler = nullptr;
thread_local hgemm_status_t last_status = HGEMM_STATUS_SUCCESS;

void log_error()
{
    static const Log log = [] {
        Log opened;
        open_log_of_environment(opened);
        return opened;
    }();
    if (log.wants(LogLevel::Error))
        log.line("%s", error_text());
}

hgemm_op_t real_op(hgemm_op_t op) { return static_cast<int>(op) == 114 ? HGEMM_NO_TRANS : op; }

struct Types {
    hgemm_type_t ab, c;
};

struct Sizes {
    hgemm_layout_t layout;
    hgemm_op_t transa, transb;
    int m, n, k;
};

struct Operands {
    const void* a;
    int lda;
    const void* b;
    int ldb;
    void* c;
    int ldc;
};

hgemm_args_t to_args(const Types& types, const Sizes& sizes, float alpha, float beta, const Operands& o)
{
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.layout = sizes.layout;
    g.transa = real_op(sizes.transa);
    g.transb = real_op(sizes.transb);
    g.type_ab = types.ab;
    g.type_c = g.type_d = types.c;
    g.m = sizes.m;
    g.n = sizes.n;
    g.k = sizes.k;
    g.alpha = alpha;
    g.beta = beta;
    g.a = o.a;
    g.lda = o.lda;
    g.b = o.b;
    g.ldb = o.ldb;
    g.c = g.d = o.c;
    g.ldc = g.ldd = o.ldc;
    return g;
}

Status compute(const hgemm_args_t& args)
{
    const InProduct in_product;
    Status status = check_arguments({arguments, false}, args, Pointers::Checked);
    if (status == ok && !is_empty(args))
        status = run(row_major(args));
    if (status != ok)
        log_error();
    return status;
}

void product(const char* function, const Types& types, const Sizes& sizes, float alpha, float beta,
             const Operands& operands)
{
    const Call call(function);
    last_status = compute(to_args(types, sizes, alpha, beta, operands));
    const hgemm_cblas_handler_t handler = error_handler;
    if (last_status != ok && handler)
        handler(function, error_argument(), error_text());
}

constexpr Types f16{HGEMM_F16, HGEMM_F16}, bf16{HGEMM_BF16, HGEMM_BF16};
constexpr Types f16_to_f32{HGEMM_F16, HGEMM_F32}, bf16_to_f32{HGEMM_BF16, HGEMM_F32};

}  // namespace
}  // namespace hg::cblas

extern "C" {

void cblas_hgemm(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m, int n, int k,
                 hgemm_half_t alpha, const hgemm_half_t* A, int lda, const hgemm_half_t* B, int ldb,
                 hgemm_half_t beta, hgemm_half_t* C, int ldc)
{
    hg::cblas::product("cblas_hgemm", hg::cblas::f16, {layout, transa, transb, m, n, k},
                       hg::half_to_float(alpha), hg::half_to_float(beta), {A, lda, B, ldb, C, ldc});
}

void cblas_bgemm(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m, int n, int k,
                 hgemm_bfloat16_t alpha, const hgemm_bfloat16_t* A, int lda, const hgemm_bfloat16_t* B,
                 int ldb, hgemm_bfloat16_t beta, hgemm_bfloat16_t* C, int ldc)
{
    hg::cblas::product("cblas_bgemm", hg::cblas::bf16, {layout, transa, transb, m, n, k},
                       hg::bfloat16_to_float(alpha), hg::bfloat16_to_float(beta), {A, lda, B, ldb, C, ldc});
}

// The functions with fp32 results, each pair of names with the same arguments.
#define HGEMM_CBLAS_TO_F32(name, element, types)                                                           \
    void name(hgemm_layout_t layout, hgemm_op_t transa, hgemm_op_t transb, int m, int n, int k,            \
              float alpha, const element* A, int lda, const element* B, int ldb, float beta, float* C,     \
              int ldc)                                                                                     \
    {                                                                                                      \
        hg::cblas::product(#name, types, {layout, transa, transb, m, n, k}, alpha, beta,                   \
                           {A, lda, B, ldb, C, ldc});                                                      \
    }
HGEMM_CBLAS_TO_F32(cblas_shgemm, hgemm_half_t, hg::cblas::f16_to_f32)
HGEMM_CBLAS_TO_F32(cblas_gemm_f16f16f32, hgemm_half_t, hg::cblas::f16_to_f32)
HGEMM_CBLAS_TO_F32(cblas_sbgemm, hgemm_bfloat16_t, hg::cblas::bf16_to_f32)
HGEMM_CBLAS_TO_F32(cblas_gemm_bf16bf16f32, hgemm_bfloat16_t, hg::cblas::bf16_to_f32)
#undef HGEMM_CBLAS_TO_F32

hgemm_cblas_handler_t hgemm_cblas_set_handler(hgemm_cblas_handler_t handler)
{
    return hg::cblas::error_handler.exchange(handler);
}

hgemm_status_t hgemm_cblas_status(void) { return hg::cblas::last_status; }

}  // extern "C"
