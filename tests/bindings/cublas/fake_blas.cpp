// libcublas.so.13 as tests need it.
#include "fake.hpp"

#include <initializer_list>

namespace {

constexpr int success = 0, not_initialized = 1, invalid = 7;
constexpr int compute_32f = 68;

using Int64 = int64_t;

bool is_negative(std::initializer_list<int64_t> values)
{
    for (const int64_t value : values)
        if (value < 0)
            return true;
    return false;
}

int multiply(void* handle, FakeProduct p)
{
    const auto& h = *static_cast<FakeHandle*>(handle);
    p.scalars_on_device = h.pointer_mode == 1;
    p.d = const_cast<void*>(p.c);
    p.ldd = p.ldc;
    return fake_multiply(p, h.stream);
}

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

int cublasGetProperty(int which, int* value)
{
    *value = which == 0 ? fake_major() : 0;
    return success;
}

int cublasCreate_v2(void** handle)
{
    *handle = new FakeHandle;
    return success;
}

int cublasDestroy_v2(void* handle)
{
    fake_record("cublasDestroy_v2");
    delete static_cast<FakeHandle*>(handle);
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
             int type_a, Int lda, const void* b, int, Int ldb, const void* beta, void* c, int type_c,      \
             Int ldc, int, int)                                                                            \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        if (!handle)                                                                                       \
            return not_initialized;                                                                        \
        if (is_negative({m, n, k}))                                                                        \
            return invalid;                                                                                \
        const FakeProduct p{transa, transb, m,   n, k,   alpha, beta, false,  false, a,                    \
                            lda,    b,      ldb, c, ldc, c,     ldc,  type_a, type_c};                     \
        return fake_is_nested() ? through_lt(handle, p) : multiply(handle, p);                             \
    }
FAKE_GEMM_EX(cublasGemmEx, int)
FAKE_GEMM_EX(cublasGemmEx_64, Int64)

// The others only tell that they were called.
#define FAKE_STRIDED_EX(name, Int)                                                                         \
    int name(void* handle, int, int, Int m, Int n, Int k, const void*, const void*, int, Int, long long,   \
             const void*, int, Int, long long, const void*, void*, int, Int, long long, Int batch, int,    \
             int)                                                                                          \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return !handle ? not_initialized : is_negative({m, n, k, batch}) ? invalid : success;              \
    }
FAKE_STRIDED_EX(cublasGemmStridedBatchedEx, int)
FAKE_STRIDED_EX(cublasGemmStridedBatchedEx_64, Int64)

#define FAKE_BATCHED_EX(name, Int)                                                                         \
    int name(void* handle, int, int, Int m, Int n, Int k, const void*, const void* const*, int, Int,       \
             const void* const*, int, Int, const void*, void* const*, int, Int, Int batch, int, int)       \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return !handle ? not_initialized : is_negative({m, n, k, batch}) ? invalid : success;              \
    }
FAKE_BATCHED_EX(cublasGemmBatchedEx, int)
FAKE_BATCHED_EX(cublasGemmBatchedEx_64, Int64)

#define FAKE_HGEMM(name, Int)                                                                              \
    int name(void* handle, int, int, Int m, Int n, Int k, const void*, const void*, Int, const void*, Int, \
             const void*, void*, Int)                                                                      \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return !handle ? not_initialized : is_negative({m, n, k}) ? invalid : success;                     \
    }
FAKE_HGEMM(cublasHgemm, int)
FAKE_HGEMM(cublasHgemm_64, Int64)

#define FAKE_HGEMM_STRIDED(name, Int)                                                                      \
    int name(void* handle, int, int, Int m, Int n, Int k, const void*, const void*, Int, long long,        \
             const void*, Int, long long, const void*, void*, Int, long long, Int batch)                   \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return !handle ? not_initialized : is_negative({m, n, k, batch}) ? invalid : success;              \
    }
FAKE_HGEMM_STRIDED(cublasHgemmStridedBatched, int)
FAKE_HGEMM_STRIDED(cublasHgemmStridedBatched_64, Int64)

#define FAKE_HGEMM_BATCHED(name, Int)                                                                      \
    int name(void* handle, int, int, Int m, Int n, Int k, const void*, const void* const*, Int,            \
             const void* const*, Int, const void*, void* const*, Int, Int batch)                           \
    {                                                                                                      \
        fake_record(#name);                                                                                \
        return !handle ? not_initialized : is_negative({m, n, k, batch}) ? invalid : success;              \
    }
FAKE_HGEMM_BATCHED(cublasHgemmBatched, int)
FAKE_HGEMM_BATCHED(cublasHgemmBatched_64, Int64)

}  // extern "C"
