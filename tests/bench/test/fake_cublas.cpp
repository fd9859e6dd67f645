// Stands for libcublas where there is none, and multiplies host memory, slowly, exactly as the
// arguments say, but for the tanh of GELU, which is as good as the GPU's fast one. In a program that has
// loaded a CUDA driver, whose memory must be the host's, it does so when the stream gets there.
#include "fake_cublas.hpp"

#include <dlfcn.h>

#include <cmath>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

namespace fake {
namespace {

using hg::test::bytes_of;
using hg::test::load;

// Puts `work` on the stream of a driver that is loaded, else does it at once. A graph may repeat it, so it
// is kept.
int submit(void* stream, std::function<void()> work)
{
    using Launch = int (*)(void*, void (*)(void*), void*);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto launch = driver ? reinterpret_cast<Launch>(dlsym(driver, "cuLaunchHostFunc")) : nullptr;
    if (!launch) {
        work();
        return success;
    }
    static std::deque<std::function<void()>> kept;
    kept.push_back(std::move(work));
    return launch(
        stream, [](void* one) { (*static_cast<std::function<void()>*>(one))(); }, &kept.back());
}

double activate(uint32_t epilogue, double x)
{
    if ((epilogue & Relu) != 0)
        return std::fmax(x, 0);
    if ((epilogue & Gelu) == 0)
        return x;
    const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return x / 2 * (1 + hg::test::round_to(HGEMM_F16, t));  // 11 digits
}

// One element of D, and of aux.
void store(const Operation& o, const Layout& out, void* d, uint64_t i, uint64_t j, double value)
{
    const hgemm_type_t type = type_of(out.type);
    const auto element = [&](void* base, int64_t ld) {
        return static_cast<char*>(base) + (i + j * static_cast<uint64_t>(ld)) * bytes_of(type);
    };
    if ((o.epilogue & Bias) != 0)
        value += load(type_of(o.bias_type), static_cast<const uint16_t*>(o.bias) + i);
    if ((o.epilogue & Aux) != 0)
        hg::test::store(type, element(o.aux, o.ldaux), value);
    hg::test::store(type, element(d, out.ld), activate(o.epilogue, value));
}

void multiply(const Operation& o, const Matrix& a, const Matrix& b, double beta, void* d, const Layout& out)
{
    const hgemm_type_t type = type_of(out.type);
    for (uint64_t j = 0; j < out.columns; ++j)
        for (uint64_t i = 0; i < out.rows; ++i) {
            const uint64_t place = i + j * static_cast<uint64_t>(out.ld);
            double sum = beta == 0 ? 0 : beta * load(type, static_cast<char*>(d) + place * bytes_of(type));
            for (uint64_t l = 0; l < a.columns(); ++l)
                sum += a.at(static_cast<int64_t>(i), static_cast<int64_t>(l)) *
                       b.at(static_cast<int64_t>(l), static_cast<int64_t>(j));
            store(o, out, d, i, j, sum);
        }
}

// All problems of a batch.
void multiply_all(const Operation& o, const Matrix& a, const Matrix& b, double beta, void* d,
                  const Layout& out)
{
    for (int64_t i = 0; i < out.batch; ++i) {
        const auto problem = [&](const void* data, const Layout& layout) {
            return static_cast<const char*>(data) +
                   i * layout.stride * static_cast<int64_t>(bytes_of(type_of(layout.type)));
        };
        Operation of_problem = o;
        if (o.aux)
            of_problem.aux = static_cast<char*>(o.aux) +
                             i * o.stride_aux * static_cast<int64_t>(bytes_of(type_of(out.type)));
        multiply(of_problem, {problem(a.data, a.layout), a.layout, a.op},
                 {problem(b.data, b.layout), b.layout, b.op}, beta, const_cast<char*>(problem(d, out)),
                 out);
    }
}

}  // namespace

bool match(const Matrix& a, const Matrix& b, const Layout& out)
{
    return a.columns() == b.rows() && a.rows() == out.rows && b.columns() == out.columns && a.has_room() &&
           b.has_room() && out.ld >= static_cast<int64_t>(out.rows) && a.layout.batch == out.batch &&
           b.layout.batch == out.batch;
}

int launch(const Operation& o, const Matrix& a, const Matrix& b, double beta, void* d, const Layout& out,
           void* stream, std::chrono::microseconds delay)
{
    if (!match(a, b, out))
        return invalid;
    return submit(stream, [=] {
        multiply_all(o, a, b, beta, d, out);
        std::this_thread::sleep_for(delay);
    });
}

}  // namespace fake

using namespace fake;

namespace {

size_t workspace_set = 0;
void* stream_set = nullptr;

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) { return create(handle, 0); }
int cublasDestroy_v2(void* handle) { return destroy<int>(handle); }
int cublasGetVersion_v2(void*, int* version)
{
    *version = 990100;
    return success;
}
int cublasSetStream_v2(void*, void* stream)
{
    workspace_set = 0;
    stream_set = stream;
    return success;
}
int cublasSetWorkspace_v2(void*, void*, size_t bytes)
{
    workspace_set = bytes;
    return success;
}
int cublasGemmStridedBatchedEx(void*, int transa, int transb, int m, int n, int k, const void* alpha,
                               const void* a, int type_a, int lda, long long stride_a, const void* b,
                               int type_b, int ldb, long long stride_b, const void* beta, void* c,
                               int type_c, int ldc, long long stride_c, int batch, int compute, int)
{
    if (compute != compute_32f || workspace_set != workspace_wanted || value_of(alpha) != 1)
        return invalid;
    const auto um = static_cast<uint64_t>(m), un = static_cast<uint64_t>(n), uk = static_cast<uint64_t>(k);
    const Layout first{type_a, transa == 1 ? uk : um, transa == 1 ? um : uk, lda, batch, stride_a};
    const Layout second{type_b, transb == 1 ? un : uk, transb == 1 ? uk : un, ldb, batch, stride_b};
    return launch({transa, transb}, {a, first, transa}, {b, second, transb}, value_of(beta), c,
                  {type_c, um, un, ldc, batch, stride_c}, stream_set);
}
int cublasGemmEx(void* handle, int transa, int transb, int m, int n, int k, const void* alpha,
                 const void* a, int type_a, int lda, const void* b, int type_b, int ldb, const void* beta,
                 void* c, int type_c, int ldc, int compute, int algorithm)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, type_a, lda, 0, b, type_b,
                                      ldb, 0, beta, c, type_c, ldc, 0, 1, compute, algorithm);
}

}  // extern "C"
