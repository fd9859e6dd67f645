// Stands for libcublas and libcublasLt where there is none: multiplies host memory, slowly, exactly as the
// arguments say, but for the tanh of GELU, which is as good as the GPU's fast one. In a program that has
// loaded a CUDA driver it puts a fill of D on the stream instead, so that graphs have something to hold.
#include "number.hpp"

#include <dlfcn.h>

#include <cmath>
#include <cstring>

namespace {

using hg::test::bytes_of;
using hg::test::decode;
using hg::test::load;

constexpr int success = 0, invalid = 7, refused = 15;
constexpr int compute_32f = 68, r_32f = 0, r_16f = 2, r_16bf = 14;
constexpr size_t workspace_wanted = size_t{64} << 20;

enum Epilogue : uint32_t { Default = 1, Relu = 2, Bias = 4, Gelu = 32, Aux = 128 };

struct Operation {
    int first = 0, second = 0, bias_type = -1;
    uint32_t epilogue = Default;
    const void* bias = nullptr;
    void* aux = nullptr;
    int64_t ldaux = 0, stride_aux = 0;
};
struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch = 1;
    int64_t stride = 0;
};
struct Preference {
    uint64_t workspace;
    uint32_t alignment[4];
};
struct Algorithm {
    uint64_t data[8];
};
struct Result {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

hgemm_type_t type_of(int type)
{
    return type == r_32f ? HGEMM_F32 : type == r_16f ? HGEMM_F16 : HGEMM_BF16;
}

struct Matrix {
    const void* data;
    Layout layout;
    int op;  // 1: transposed

    double at(int64_t row, int64_t column) const
    {
        const int64_t place = op == 1 ? column + row * layout.ld : row + column * layout.ld;
        return decode(type_of(layout.type), static_cast<const uint16_t*>(data)[place]);
    }
    uint64_t rows() const { return op == 1 ? layout.columns : layout.rows; }
    uint64_t columns() const { return op == 1 ? layout.rows : layout.columns; }
    bool has_room() const { return layout.ld >= static_cast<int64_t>(layout.rows); }
};

using Fill = int (*)(unsigned long long, unsigned char, size_t, void*);
Fill fill_of_driver()
{
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver ? reinterpret_cast<Fill>(dlsym(driver, "cuMemsetD8Async")) : nullptr;
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

int multiply(const Operation& o, const Matrix& a, const Matrix& b, double beta, void* d, const Layout& out,
             void* stream)
{
    if (a.columns() != b.rows() || a.rows() != out.rows || b.columns() != out.columns || !a.has_room() ||
        !b.has_room() || out.ld < static_cast<int64_t>(out.rows))
        return invalid;
    if (const Fill fill = fill_of_driver())
        return fill(reinterpret_cast<unsigned long long>(d), 0, out.rows * 2, stream);
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
    return success;
}

// All problems of a batch.
int multiply_all(const Operation& o, const Matrix& a, const Matrix& b, double beta, void* d,
                 const Layout& out, void* stream)
{
    if (a.layout.batch != out.batch || b.layout.batch != out.batch)
        return invalid;
    int status = success;
    for (int64_t i = 0; i < out.batch && status == success; ++i) {
        const auto problem = [&](const void* data, const Layout& layout) {
            return static_cast<const char*>(data) +
                   i * layout.stride * static_cast<int64_t>(bytes_of(type_of(layout.type)));
        };
        Operation of_problem = o;
        if (o.aux)
            of_problem.aux = static_cast<char*>(o.aux) +
                             i * o.stride_aux * static_cast<int64_t>(bytes_of(type_of(out.type)));
        status = multiply(of_problem, {problem(a.data, a.layout), a.layout, a.op},
                          {problem(b.data, b.layout), b.layout, b.op}, beta,
                          const_cast<char*>(problem(d, out)), out, stream);
    }
    return status;
}

float value_of(const void* scalar) { return *static_cast<const float*>(scalar); }

template <typename T>
int create(void** out, T value)
{
    *out = new T(value);
    return success;
}
template <typename T>
int destroy(void* object)
{
    delete static_cast<T*>(object);
    return success;
}

size_t workspace_set = 0;

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) { return create(handle, 0); }
int cublasDestroy_v2(void* handle) { return destroy<int>(handle); }
int cublasGetVersion_v2(void*, int* version)
{
    *version = 990100;
    return success;
}
int cublasSetStream_v2(void* handle, void* stream)
{
    workspace_set = 0;
    (void)handle;
    (void)stream;
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
    return multiply_all({transa, transb}, {a, first, transa}, {b, second, transb}, value_of(beta), c,
                        {type_c, um, un, ldc, batch, stride_c}, nullptr);
}
int cublasGemmEx(void* handle, int transa, int transb, int m, int n, int k, const void* alpha,
                 const void* a, int type_a, int lda, const void* b, int type_b, int ldb, const void* beta,
                 void* c, int type_c, int ldc, int compute, int algorithm)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, type_a, lda, 0, b, type_b,
                                      ldb, 0, beta, c, type_c, ldc, 0, 1, compute, algorithm);
}

int cublasLtCreate(void** handle) { return create(handle, 0); }
int cublasLtDestroy(void* handle) { return destroy<int>(handle); }
size_t cublasLtGetVersion() { return 990200; }
int cublasLtMatmulDescCreate(void** out, int compute, int scale)
{
    return compute == compute_32f && scale == r_32f ? create(out, Operation{}) : invalid;
}
int cublasLtMatmulDescDestroy(void* operation) { return destroy<Operation>(operation); }
int cublasLtMatmulDescSetAttribute(void* operation, int which, const void* value, size_t bytes)
{
    auto* o = static_cast<Operation*>(operation);
    const auto set = [&](auto& attribute) {
        if (bytes != sizeof attribute)
            return invalid;
        std::memcpy(&attribute, value, bytes);
        return success;
    };
    switch (which) {
    case 3: return set(o->first);
    case 4: return set(o->second);
    case 7: return set(o->epilogue);
    case 8: return set(o->bias);
    case 11: return set(o->aux);
    case 12: return set(o->ldaux);
    case 13: return set(o->stride_aux);
    case 26: return set(o->bias_type);
    default: return invalid;
    }
}
int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    return type == r_16f || type == r_16bf || type == r_32f ? create(out, Layout{type, rows, columns, ld})
                                                            : invalid;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int which, const void* value, size_t bytes)
{
    auto* l = static_cast<Layout*>(layout);
    if (which == 5 && bytes == sizeof l->batch)
        std::memcpy(&l->batch, value, bytes);
    else if (which == 6 && bytes == sizeof l->stride)
        std::memcpy(&l->stride, value, bytes);
    else
        return invalid;
    return success;
}
int cublasLtMatrixLayoutDestroy(void* layout) { return destroy<Layout>(layout); }
int cublasLtMatmulPreferenceCreate(void** out) { return create(out, Preference{0, {256, 256, 256, 256}}); }
int cublasLtMatmulPreferenceDestroy(void* preference) { return destroy<Preference>(preference); }
int cublasLtMatmulPreferenceSetAttribute(void* preference, int which, const void* value, size_t bytes)
{
    auto* p = static_cast<Preference*>(preference);
    if (which == 1 && bytes == sizeof p->workspace)
        std::memcpy(&p->workspace, value, bytes);
    else if (which >= 5 && which <= 8 && bytes == sizeof(uint32_t))
        std::memcpy(&p->alignment[which - 5], value, bytes);
    else
        return invalid;
    return success;
}

// One result that does not hold, one that needs too much workspace, one for each alignment up to the
// promised ones.
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void* preference, int wanted,
                                   Result* results, int* count)
{
    const auto* p = static_cast<const Preference*>(preference);
    if (p->workspace != workspace_wanted)
        return invalid;
    *count = 0;
    const auto add = [&](uint64_t alignment, size_t workspace, int state) {
        if (*count < wanted)
            results[(*count)++] = {{{alignment}}, workspace, state, 1.0f, {}};
    };
    add(1, 0, refused);
    add(1, workspace_wanted + 1, success);
    for (uint32_t alignment = 2; alignment <= 256; alignment *= 2)
        if (alignment <= p->alignment[0] && alignment <= p->alignment[1] && alignment <= p->alignment[2] &&
            alignment <= p->alignment[3])
            add(alignment, workspace_wanted, success);
    return success;
}

int cublasLtMatmul(void*, void* operation, const void* alpha, const void* a, void* layout_a, const void* b,
                   void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
                   const Algorithm* algorithm, void*, size_t workspace, void* stream)
{
    const auto misaligned = [&](const void* pointer) {
        return reinterpret_cast<uintptr_t>(pointer) % algorithm->data[0] != 0;
    };
    if (c != d || layout_c != layout_d || workspace != workspace_wanted || misaligned(a) || misaligned(b) ||
        misaligned(d) || value_of(alpha) != 1)
        return invalid;
    const auto* o = static_cast<const Operation*>(operation);
    return multiply_all(*o, {a, *static_cast<const Layout*>(layout_a), o->first},
                        {b, *static_cast<const Layout*>(layout_b), o->second}, value_of(beta), d,
                        *static_cast<const Layout*>(layout_d), stream);
}

}  // extern "C"
