// libcublas.so.13 as tests need it.
#include "fake.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace {

constexpr int success = 0, not_initialized = 1, invalid = 7, not_supported = 15;
constexpr int compute_16f = 64, compute_32f = 68, compute_64f = 70, compute_32i = 72;
constexpr int f32 = 0, f16 = 2, bf16 = 14;

using Int64 = int64_t;

// What the real library finds wrong with sizes, and with types.
int judge(const void* handle, int transa, int transb, int64_t m, int64_t n, int64_t k, const void* alpha,
          int64_t lda, int64_t ldb, const void* beta, int64_t ldc, int64_t batch)
{
    if (!handle)
        return not_initialized;
    const auto is_op = [](int op) { return op >= 0 && op <= 2; };
    const auto fits = [](int64_t ld, int64_t rows) { return ld >= std::max<int64_t>(rows, 1); };
    const bool sound = is_op(transa) && is_op(transb) && std::min({m, n, k, batch}) >= 0 &&
                       fits(lda, transa == 0 ? m : k) && fits(ldb, transb == 0 ? k : n) && fits(ldc, m) &&
                       alpha && beta;
    return sound ? success : invalid;
}

int judge_types(int a, int b, int c, int compute)
{
    const bool halves = a == b && (a == f16 || a == bf16) && (c == a || c == f32);
    const bool singles = a == f32 && b == f32 && c == f32;
    const bool in_single = compute >= compute_32f && compute <= 78 && compute != compute_32i &&
                           compute != compute_64f && (halves || singles);
    const bool in_half = (compute == compute_16f || compute == 65) && a == f16 && b == f16 && c == f16;
    return in_single || in_half ? success : not_supported;
}

struct {
    void (*call)(void* data);
    void* data;
} after_destroy;

// Where the last handle was that is no more: the next one lies there.
std::atomic<void*> last_destroyed;

int multiply(void* handle, FakeProduct p)
{
    const auto& h = *static_cast<FakeHandle*>(handle);
    p.scalars_on_device = h.pointer_mode == 1;
    p.d = const_cast<void*>(p.c);
    p.ldd = p.ldc;
    return fake_multiply(p, h.stream);
}

#ifndef FAKE_IS_OLDER_THAN_12_5

// Which types the real library documents for groups.
int judge_groups(int a, int b, int c, int compute)
{
    const bool halves = a == f16 || a == bf16;
    return a != c || (halves && compute != compute_32f) ? not_supported : judge_types(a, b, c, compute);
}

template <typename Int>
int multiply_groups(void* handle, const int* transa, const int* transb, const Int* m, const Int* n,
                    const Int* k, const void* alpha, const void* const* a, int type_a, const Int* lda,
                    const void* const* b, int type_b, const Int* ldb, const void* beta, void* const* c,
                    int type_c, const Int* ldc, Int groups, const Int* sizes, int compute)
{
    if (!handle)
        return not_initialized;
    if (!transa || !transb || !m || !n || !k || !a || !lda || !b || !ldb || !c || !ldc || !sizes ||
        groups < 0)
        return invalid;
    for (Int i = 0; i < groups; ++i)
        if (const int status = judge(handle, transa[i], transb[i], m[i], n[i], k[i], alpha, lda[i], ldb[i],
                                     beta, ldc[i], sizes[i]);
            status != success)
            return status;
    const auto& h = *static_cast<FakeHandle*>(handle);
    if (const int status = judge_groups(type_a, type_b, type_c, compute); status != success)
        return status;
    if (h.pointer_mode == 1)
        return not_supported;
    const auto next = [&](auto& list) {
        const void* pointer = nullptr;
        fake_read(&pointer, list++, sizeof pointer, h.stream);
        return pointer;
    };
    for (Int i = 0; i < groups; ++i)
        for (Int j = 0; j < sizes[i]; ++j)
            multiply(handle, {transa[i], transb[i], m[i], n[i], k[i], static_cast<const float*>(alpha) + i,
                              static_cast<const float*>(beta) + i, false, false, next(a), lda[i], next(b),
                              ldb[i], next(c), ldc[i], nullptr, 0, type_a, type_c});
    return success;
}

#endif

}  // namespace

extern "C" {

int cublasLtMatmulDescCreate(void** out, int compute, int scale);
int cublasLtMatmulDescDestroy(void* object);
int cublasLtMatmulDescSetAttribute(void* object, int which, const void* value, size_t bytes);
int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows, uint64_t columns, int64_t ld);
int cublasLtMatrixLayoutDestroy(void* object);
int cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* layout_a,
                   const void* b, void* layout_b, const void* beta, const void* c, void* layout_c, void* d,
                   void* layout_d, const uint64_t*, void*, size_t, void* stream);

void fake_set_after_destroy(void (*call)(void* data), void* data) { after_destroy = {call, data}; }

int cublasGetProperty(int which, int* value)
{
    *value = which == 0 ? fake_major() : 0;
    return success;
}

int cublasCreate_v2(void** handle)
{
    void* const place = last_destroyed.exchange(nullptr);
    *handle = new (place ? place : operator new(sizeof(FakeHandle))) FakeHandle;
    return success;
}

int cublasDestroy_v2(void* handle)
{
    fake_record("cublasDestroy_v2");
    if (handle) {
        static_cast<FakeHandle*>(handle)->~FakeHandle();
        operator delete(last_destroyed.exchange(handle));
    }
    if (const auto after = std::exchange(after_destroy, {}); after.call)
        after.call(after.data);
    return handle ? success : not_initialized;
}

#define FAKE_MEMBER(name, Type, member)                                                                    \
    int cublasSet##name(void* handle, Type value)                                                          \
    {                                                                                                      \
        if (!handle)                                                                                       \
            return not_initialized;                                                                        \
        static_cast<FakeHandle*>(handle)->member = value;                                                  \
        return success;                                                                                    \
    }                                                                                                      \
    int cublasGet##name(void* handle, Type* value)                                                         \
    {                                                                                                      \
        if (!handle)                                                                                       \
            return not_initialized;                                                                        \
        *value = static_cast<FakeHandle*>(handle)->member;                                                 \
        return success;                                                                                    \
    }
FAKE_MEMBER(Stream_v2, void*, stream)
FAKE_MEMBER(PointerMode_v2, int, pointer_mode)
FAKE_MEMBER(MathMode, int, math_mode)
FAKE_MEMBER(SmCountTarget, int, sm_count)

int cublasSetWorkspace_v2(void* handle, void*, size_t) { return handle ? success : not_initialized; }

static int through_lt(void* handle, const FakeProduct& p)
{
    void *desc, *a, *b, *c;
    cublasLtMatmulDescCreate(&desc, compute_32f, 0);
    cublasLtMatmulDescSetAttribute(desc, 3, &p.transa, sizeof p.transa);
    cublasLtMatmulDescSetAttribute(desc, 4, &p.transb, sizeof p.transb);
    const auto m = static_cast<uint64_t>(p.m), n = static_cast<uint64_t>(p.n),
               k = static_cast<uint64_t>(p.k);
    cublasLtMatrixLayoutCreate(&a, p.type_ab, p.transa ? k : m, p.transa ? m : k, p.lda);
    cublasLtMatrixLayoutCreate(&b, p.type_ab, p.transb ? n : k, p.transb ? k : n, p.ldb);
    cublasLtMatrixLayoutCreate(&c, p.type_d, m, n, p.ldc);
    const int status =
        cublasLtMatmul(handle, desc, p.alpha, p.a, a, p.b, b, p.beta, p.c, c, const_cast<void*>(p.c), c,
                       nullptr, nullptr, 0, static_cast<FakeHandle*>(handle)->stream);
    cublasLtMatmulDescDestroy(desc);
    for (void* layout : {a, b, c})
        cublasLtMatrixLayoutDestroy(layout);
    return status;
}

#define FAKE_GEMM_EX(name, Int)                                                                            \
    int name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha, const void* a,  \
             int type_a, Int lda, const void* b, int type_b, Int ldb, const void* beta, void* c,           \
             int type_c, Int ldc, int compute, int)                                                        \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        int status = judge(handle, transa, transb, m, n, k, alpha, lda, ldb, beta, ldc, 1);                \
        if (status == success)                                                                             \
            status = judge_types(type_a, type_b, type_c, compute);                                         \
        if (status != success)                                                                             \
            return status;                                                                                 \
        const FakeProduct p{transa, transb, m,   n, k,   alpha, beta, false,  false, a,                    \
                            lda,    b,      ldb, c, ldc, c,     ldc,  type_a, type_c};                     \
        return fake_is_nested() ? through_lt(handle, p) : multiply(handle, p);                             \
    }
FAKE_GEMM_EX(cublasGemmEx, int)
FAKE_GEMM_EX(cublasGemmEx_64, Int64)

#define FAKE_SGEMM_EX(name, Int)                                                                           \
    int name(void* handle, int transa, int transb, Int m, Int n, Int k, const float* alpha, const void* a, \
             int type_a, Int lda, const void* b, int type_b, Int ldb, const float* beta, void* c,          \
             int type_c, Int ldc)                                                                          \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        int status = judge(handle, transa, transb, m, n, k, alpha, lda, ldb, beta, ldc, 1);                \
        if (status == success)                                                                             \
            status = judge_types(type_a, type_b, type_c, compute_32f);                                     \
        return status == success ? multiply(handle, {transa, transb, m, n, k, alpha, beta, false, false,   \
                                                     a, lda, b, ldb, c, ldc, c, ldc, type_a, type_c})      \
                                 : status;                                                                 \
    }
FAKE_SGEMM_EX(cublasSgemmEx, int)
FAKE_SGEMM_EX(cublasSgemmEx_64, Int64)

// The others only judge their arguments.
#define FAKE_STRIDED_EX(name, Int)                                                                         \
    int name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha, const void*,    \
             int type_a, Int lda, long long, const void*, int type_b, Int ldb, long long,                  \
             const void* beta, void*, int type_c, Int ldc, long long, Int batch, int compute, int)         \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        const int status = judge(handle, transa, transb, m, n, k, alpha, lda, ldb, beta, ldc, batch);      \
        return status == success ? judge_types(type_a, type_b, type_c, compute) : status;                  \
    }
FAKE_STRIDED_EX(cublasGemmStridedBatchedEx, int)
FAKE_STRIDED_EX(cublasGemmStridedBatchedEx_64, Int64)

#define FAKE_BATCHED_EX(name, Int)                                                                         \
    int name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha,                 \
             const void* const*, int type_a, Int lda, const void* const*, int type_b, Int ldb,             \
             const void* beta, void* const*, int type_c, Int ldc, Int batch, int compute, int)             \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        const int status = judge(handle, transa, transb, m, n, k, alpha, lda, ldb, beta, ldc, batch);      \
        return status == success ? judge_types(type_a, type_b, type_c, compute) : status;                  \
    }
FAKE_BATCHED_EX(cublasGemmBatchedEx, int)
FAKE_BATCHED_EX(cublasGemmBatchedEx_64, Int64)

#ifndef FAKE_IS_OLDER_THAN_12_5
#define FAKE_GROUPED(name, Int)                                                                            \
    int name(void* handle, const int* transa, const int* transb, const Int* m, const Int* n, const Int* k, \
             const void* alpha, const void* const* a, int type_a, const Int* lda, const void* const* b,    \
             int type_b, const Int* ldb, const void* beta, void* const* c, int type_c, const Int* ldc,     \
             Int groups, const Int* sizes, int compute)                                                    \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return multiply_groups(handle, transa, transb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,     \
                               beta, c, type_c, ldc, groups, sizes, compute);                              \
    }
FAKE_GROUPED(cublasGemmGroupedBatchedEx, int)
FAKE_GROUPED(cublasGemmGroupedBatchedEx_64, Int64)
#endif

#define FAKE_HGEMM(name, Int)                                                                              \
    int name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha, const void*,    \
             Int lda, const void*, Int ldb, const void* beta, void*, Int ldc)                              \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return judge(handle, transa, transb, m, n, k, alpha, lda, ldb, beta, ldc, 1);                      \
    }
FAKE_HGEMM(cublasHgemm, int)
FAKE_HGEMM(cublasHgemm_64, Int64)

#define FAKE_HGEMM_STRIDED(name, Int)                                                                      \
    int name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha, const void*,    \
             Int lda, long long, const void*, Int ldb, long long, const void* beta, void*, Int ldc,        \
             long long, Int batch)                                                                         \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return judge(handle, transa, transb, m, n, k, alpha, lda, ldb, beta, ldc, batch);                  \
    }
FAKE_HGEMM_STRIDED(cublasHgemmStridedBatched, int)
FAKE_HGEMM_STRIDED(cublasHgemmStridedBatched_64, Int64)

#define FAKE_HGEMM_BATCHED(name, Int)                                                                      \
    int name(void* handle, int transa, int transb, Int m, Int n, Int k, const void* alpha,                 \
             const void* const*, Int lda, const void* const*, Int ldb, const void* beta, void* const*,     \
             Int ldc, Int batch)                                                                           \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return judge(handle, transa, transb, m, n, k, alpha, lda, ldb, beta, ldc, batch);                  \
    }
FAKE_HGEMM_BATCHED(cublasHgemmBatched, int)
FAKE_HGEMM_BATCHED(cublasHgemmBatched_64, Int64)

}  // extern "C"
