// The C API of Level 2: a matrix-vector product is a GEMM with n = 1.
#include "arch/common/types.hpp"
#include "src/base/status.hpp"
#include "src/check/arguments.hpp"
#include "src/check/overlap.hpp"
#include "src/run/execute.hpp"
#include "src/run/handle.hpp"

#include <cinttypes>
#include <cstdlib>

namespace hg {
namespace {

struct VectorCall {
    const char* function;
    Type type;
    bool transposed;
    int64_t m, n;
    float alpha;
    const void* a;
    int64_t lda;
    const void* x;
    int64_t incx;
    float beta;
    void* y;
    int64_t incy;
};

Status check_vector(int position, const char* name, const void* vector, int64_t length, int64_t increment,
                    Pointers pointers)
{
    if (pointers != Pointers::Unchecked)
        if (Status status = check_pointer(position, name, vector, 2, pointers); status != ok)
            return status;
    const char* increment_name = *name == 'x' ? "incx" : "incy";
    if (increment == 0)
        return fail_argument(position + 1, increment_name, "is 0, must not be 0");
    if (is_too_far(increment, length, 2))
        return fail_argument(position + 1, increment_name,
                             "is %" PRId64 ", too large: %" PRId64 " elements must stay within 2^62 bytes",
                             increment, length);
    return ok;
}

// A vector as lines of one 2-byte element. A negative increment occupies the same memory.
Region region_of(const void* vector, int64_t length, int64_t increment)
{
    return {reinterpret_cast<uintptr_t>(vector), length, 2 * std::abs(increment), 2};
}

// y is written; A and x are read, unless alpha is 0.
Status check_apart(const VectorCall& v)
{
    const Region y = region_of(v.y, v.transposed ? v.n : v.m, v.incy);
    if (overlap(y, {reinterpret_cast<uintptr_t>(v.a), v.n, 2 * v.lda, 2 * v.m}))
        return fail_argument(10, "y", "overlaps A, must lie apart from it");
    if (overlap(y, region_of(v.x, v.transposed ? v.m : v.n, v.incx)))
        return fail_argument(10, "y", "overlaps x, must lie apart from it");
    return ok;
}

Status check(const VectorCall& v, Pointers pointers)
{
    const bool empty = v.m == 0 || v.n == 0;
    const bool reads = !empty && v.alpha != 0.0f;
    const Pointers read = reads ? pointers : Pointers::Unchecked;
    if (v.m < 0)
        return fail_argument(2, "m", "is %" PRId64 ", must be at least 0", v.m);
    if (v.n < 0)
        return fail_argument(3, "n", "is %" PRId64 ", must be at least 0", v.n);
    if (reads)
        if (Status status = check_pointer(5, "A", v.a, 2, pointers); status != ok)
            return status;
    Status status = check_leading(6, "lda", v.lda, {v.m, v.n, "m"}, 2);
    if (status == ok)
        status = check_vector(7, "x", v.x, v.transposed ? v.m : v.n, v.incx, read);
    if (status == ok)
        status = check_vector(10, "y", v.y, v.transposed ? v.n : v.m, v.incy,
                              empty ? Pointers::Unchecked : pointers);
    return status == ok && reads ? check_apart(v) : status;
}

// The address of element 0. With a negative increment it is stored last.
const void* first_element(const void* vector, int64_t length, int64_t increment)
{
    const int64_t offset = increment < 0 ? (1 - length) * increment : 0;
    return static_cast<const uint16_t*>(vector) + offset;
}

Problem to_problem(const VectorCall& v)
{
    Problem p{};
    p.m = v.transposed ? v.n : v.m;
    p.n = p.batch = 1;
    const int64_t k = v.transposed ? v.m : v.n;
    const bool reads = v.alpha != 0.0f;
    p.k = k;
    p.type_ab = v.type;
    p.alpha = v.alpha;
    p.beta = v.beta;
    if (reads) {
        p.a = {v.a, nullptr, v.transposed ? v.lda : 1, v.transposed ? 1 : v.lda, 0, 0};
        p.b = {first_element(v.x, k, v.incx), nullptr, k, v.incx, 0, 0};
    } else {
        p.multiply_nothing();
    }
    p.d = {const_cast<void*>(first_element(v.y, p.m, v.incy)), nullptr, v.incy, 0, v.type, 0};
    if (v.beta != 0.0f)
        p.c = p.d;
    p.simplify();
    return p;
}

// `size` stays 0, unlike that of any hgemm_args_t, so that such requests differ from Level 3's.
Request to_request(const VectorCall& v)
{
    Request r{};
    r.type_ab = static_cast<hgemm_type_t>(v.type);
    r.transa = v.transposed ? HGEMM_TRANS : HGEMM_NO_TRANS;
    r.m = v.m;
    r.n = v.n;
    r.alpha = v.alpha;
    r.a = v.a;
    r.lda = v.lda;
    r.b = v.x;
    r.ldb = v.incx;
    r.beta = v.beta;
    r.d = v.y;
    r.ldd = v.incy;
    return r;
}

Status run(hgemm_handle_t handle, const VectorCall& v) noexcept
{
    return with_handle(v.function, handle, [&](hg::Handle& h) {
        const Request request = to_request(v);
        Status status;
        if (repeat(h, request, status))
            return status;
        status = check(v, h.context ? Pointers::Checked : Pointers::OnHost);
        if (status != ok || v.m == 0 || v.n == 0)
            return status;
        return execute(h, request, to_problem(v));
    });
}

}  // namespace
}  // namespace hg

#define HGEMM_GEMV(name, element, type, transposed)                                                        \
    extern "C" hgemm_status_t name(hgemm_handle_t handle, int64_t m, int64_t n, float alpha,               \
                                   const element* A, int64_t lda, const element* x, int64_t incx,          \
                                   float beta, element* y, int64_t incy)                                   \
    {                                                                                                      \
        return hg::run(handle, {#name, type, transposed, m, n, alpha, A, lda, x, incx, beta, y, incy});    \
    }

HGEMM_GEMV(hgemv_n, hgemm_half_t, hg::Type::F16, false)
HGEMM_GEMV(hgemv_t, hgemm_half_t, hg::Type::F16, true)
HGEMM_GEMV(bgemv_n, hgemm_bfloat16_t, hg::Type::BF16, false)
HGEMM_GEMV(bgemv_t, hgemm_bfloat16_t, hg::Type::BF16, true)
