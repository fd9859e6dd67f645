// Wrong calls of the products of libcublas.
#include "wrong_calls_parts.hpp"

#include "src/tools/support/cuda_driver.hpp"

#include <dlfcn.h>

#include <array>
#include <stdexcept>
#include <string_view>

namespace hg::test {
namespace {

using namespace shim;

template <typename Function>
void find(void* library, const char* name, Function*& function)
{
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (!function)
        throw std::runtime_error(std::string("the library has no ") + name);
}

constexpr float ones[] = {1, 1};  // for two groups
constexpr uint16_t half_one = 0x3c00;

// A call, and how the handle is set while it is made.
struct Setting {
    GemmCall call;
    void* handle;
    int pointer_mode, math_mode;
};

template <typename Int>
int gemm_ex(GemmEx<Int>* f, void* handle, const GemmCall& g)
{
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    return f(handle, g.transa, g.transb, i(g.m), i(g.n), i(g.k), g.alpha, g.a, g.type_a, i(g.lda), g.b,
             g.type_b, i(g.ldb), g.beta, g.c, g.type_c, i(g.ldc), g.compute, g.algorithm);
}

template <typename Int>
int gemm_ex(GemmStridedBatchedEx<Int>* f, void* handle, const GemmCall& g)
{
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    return f(handle, g.transa, g.transb, i(g.m), i(g.n), i(g.k), g.alpha, g.a, g.type_a, i(g.lda),
             g.stride_a, g.b, g.type_b, i(g.ldb), g.stride_b, g.beta, g.c, g.type_c, i(g.ldc), g.stride_c,
             i(g.batch), g.compute, g.algorithm);
}

template <typename Int>
int gemm_ex(GemmBatchedEx<Int>* f, void* handle, const GemmCall& g)
{
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    return f(handle, g.transa, g.transb, i(g.m), i(g.n), i(g.k), g.alpha,
             static_cast<const void* const*>(g.a), g.type_a, i(g.lda), static_cast<const void* const*>(g.b),
             g.type_b, i(g.ldb), g.beta, static_cast<void* const*>(g.c), g.type_c, i(g.ldc), i(g.batch),
             g.compute, g.algorithm);
}

// The batch as two groups.
template <typename Int>
int gemm_ex(GemmGroupedBatchedEx<Int>* f, void* handle, const GemmCall& g)
{
    const auto two = [](int64_t value) {
        return std::array{static_cast<Int>(value), static_cast<Int>(value)};
    };
    const std::array transa{g.transa, g.transa}, transb{g.transb, g.transb};
    const auto m = two(g.m), n = two(g.n), k = two(g.k), lda = two(g.lda), ldb = two(g.ldb),
               ldc = two(g.ldc);
    const std::array sizes{static_cast<Int>(g.batch / 2), static_cast<Int>(g.batch - g.batch / 2)};
    return f(handle, transa.data(), transb.data(), m.data(), n.data(), k.data(), g.alpha,
             static_cast<const void* const*>(g.a), g.type_a, lda.data(),
             static_cast<const void* const*>(g.b), g.type_b, ldb.data(), g.beta,
             static_cast<void* const*>(g.c), g.type_c, ldc.data(), 2, sizes.data(), g.compute);
}

template <typename Int>
int gemm_ex(SgemmEx<Int>* f, void* handle, const GemmCall& g)
{
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    return f(handle, g.transa, g.transb, i(g.m), i(g.n), i(g.k), static_cast<const float*>(g.alpha), g.a,
             g.type_a, i(g.lda), g.b, g.type_b, i(g.ldb), static_cast<const float*>(g.beta), g.c, g.type_c,
             i(g.ldc));
}

const uint16_t* half(const void* pointer) { return static_cast<const uint16_t*>(pointer); }
uint16_t* half(void* pointer) { return static_cast<uint16_t*>(pointer); }

template <typename Int>
int hgemm(Hgemm<Int>* f, void* handle, const GemmCall& g)
{
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    return f(handle, g.transa, g.transb, i(g.m), i(g.n), i(g.k), half(g.alpha), half(g.a), i(g.lda),
             half(g.b), i(g.ldb), half(g.beta), half(g.c), i(g.ldc));
}

template <typename Int>
int hgemm(HgemmStridedBatched<Int>* f, void* handle, const GemmCall& g)
{
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    return f(handle, g.transa, g.transb, i(g.m), i(g.n), i(g.k), half(g.alpha), half(g.a), i(g.lda),
             g.stride_a, half(g.b), i(g.ldb), g.stride_b, half(g.beta), half(g.c), i(g.ldc), g.stride_c,
             i(g.batch));
}

template <typename Int>
int hgemm(HgemmBatched<Int>* f, void* handle, const GemmCall& g)
{
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    return f(handle, g.transa, g.transb, i(g.m), i(g.n), i(g.k), half(g.alpha),
             static_cast<const uint16_t* const*>(g.a), i(g.lda), static_cast<const uint16_t* const*>(g.b),
             i(g.ldb), half(g.beta), static_cast<uint16_t* const*>(g.c), i(g.ldc), i(g.batch));
}

struct Function {
    const char* name;
    Batch kind;
    bool is_half;
    int (*call)(const Products&, void* handle, const GemmCall&);
};

#define FUNCTION(name, Int, kind, is_half, form)                                                           \
    {                                                                                                      \
#name, Batch::kind, is_half,                                                                       \
            [](const Products& p, void* handle,                                                            \
               const GemmCall& g) { return form<Int>(p.name, handle, g); }                                 \
    }
constexpr Function functions[] = {
    FUNCTION(cublasGemmEx, int, One, false, gemm_ex),
    FUNCTION(cublasGemmEx_64, int64_t, One, false, gemm_ex),
    FUNCTION(cublasGemmStridedBatchedEx, int, Strided, false, gemm_ex),
    FUNCTION(cublasGemmStridedBatchedEx_64, int64_t, Strided, false, gemm_ex),
    FUNCTION(cublasGemmBatchedEx, int, Arrays, false, gemm_ex),
    FUNCTION(cublasGemmBatchedEx_64, int64_t, Arrays, false, gemm_ex),
    FUNCTION(cublasGemmGroupedBatchedEx, int, Arrays, false, gemm_ex),
    FUNCTION(cublasGemmGroupedBatchedEx_64, int64_t, Arrays, false, gemm_ex),
    FUNCTION(cublasSgemmEx, int, One, false, gemm_ex),
    FUNCTION(cublasSgemmEx_64, int64_t, One, false, gemm_ex),
    FUNCTION(cublasHgemm, int, One, true, hgemm),
    FUNCTION(cublasHgemm_64, int64_t, One, true, hgemm),
    FUNCTION(cublasHgemmStridedBatched, int, Strided, true, hgemm),
    FUNCTION(cublasHgemmStridedBatched_64, int64_t, Strided, true, hgemm),
    FUNCTION(cublasHgemmBatched, int, Arrays, true, hgemm),
    FUNCTION(cublasHgemmBatched_64, int64_t, Arrays, true, hgemm),
};

// A right call of 24 x 17 x 40, two of them in a batch.
Setting right_call(const Function& f, const Given& given)
{
    GemmCall g{};
    g.m = 24;
    g.n = 17;
    g.k = 40;
    g.lda = g.ldc = 24;
    g.ldb = 40;
    g.stride_a = g.stride_b = g.stride_c = 1024;
    const bool arrays = f.kind == Batch::Arrays;
    g.a = arrays ? given.pointers(0) : given.operand(0);
    g.b = arrays ? given.pointers(1) : given.operand(1);
    g.c = arrays ? given.pointers(2) : given.operand(2);
    g.type_a = g.type_b = g.type_c = r_16f;
    g.alpha = g.beta = f.is_half ? static_cast<const void*>(&half_one) : ones;
    g.kind = f.kind;
    g.batch = f.kind == Batch::One ? 1 : 2;
    g.compute = compute_32f;
    g.algorithm = algo_default;
    return {g, given.handle, pointers_host, 0};
}

enum Where {
    Everywhere,
    Batched,
    Ex,
    Grouped,
    Alone  // in cublasGemmEx: ends processes
};

struct Change {
    const char* name;
    Where where;
    void (*apply)(Setting&);
};

constexpr Change changes[] = {
    {"handle null", Everywhere, [](Setting& s) { s.handle = nullptr; }},
    {"m -1", Everywhere, [](Setting& s) { s.call.m = -1; }},
    {"n -1", Everywhere, [](Setting& s) { s.call.n = -1; }},
    {"k -1", Everywhere, [](Setting& s) { s.call.k = -1; }},
    {"batch -1", Batched, [](Setting& s) { s.call.batch = -1; }},
    {"batch 0", Batched, [](Setting& s) { s.call.batch = 0; }},
    {"m 0", Everywhere, [](Setting& s) { s.call.m = 0; }},
    {"n 0", Everywhere, [](Setting& s) { s.call.n = 0; }},
    {"k 0", Everywhere, [](Setting& s) { s.call.k = 0; }},
    {"m 0 and lda 0", Everywhere, [](Setting& s) { s.call.m = s.call.lda = 0; }},
    {"all sizes 0", Everywhere,
     [](Setting& s) { s.call.m = s.call.n = s.call.k = s.call.lda = s.call.ldb = s.call.ldc = 0; }},
    {"lda 23", Everywhere, [](Setting& s) { s.call.lda = 23; }},
    {"ldb 39", Everywhere, [](Setting& s) { s.call.ldb = 39; }},
    {"ldc 23", Everywhere, [](Setting& s) { s.call.ldc = 23; }},
    {"ldc -24", Everywhere, [](Setting& s) { s.call.ldc = -24; }},
    {"transa t and lda 39", Everywhere,
     [](Setting& s) {
         s.call.transa = op_t;
         s.call.lda = 39;
     }},
    {"transb c and ldb 16", Everywhere,
     [](Setting& s) {
         s.call.transb = op_c;
         s.call.ldb = 16;
     }},
    {"transa 3", Everywhere, [](Setting& s) { s.call.transa = 3; }},
    {"transa -1", Everywhere, [](Setting& s) { s.call.transa = -1; }},
    {"transb 99", Everywhere, [](Setting& s) { s.call.transb = 99; }},
    {"math mode pedantic", Everywhere, [](Setting& s) { s.math_mode = math_pedantic; }},
    {"type of a 99", Ex, [](Setting& s) { s.call.type_a = 99; }},
    {"a bf16 and b f16", Ex, [](Setting& s) { s.call.type_a = r_16bf; }},
    {"c bf16", Ex, [](Setting& s) { s.call.type_c = r_16bf; }},
    {"c of int8", Ex, [](Setting& s) { s.call.type_c = 3; }},
    {"a and b fp32 and c f16", Ex, [](Setting& s) { s.call.type_a = s.call.type_b = r_32f; }},
    {"compute type -1", Ex, [](Setting& s) { s.call.compute = -1; }},
    {"compute type 999", Ex, [](Setting& s) { s.call.compute = 999; }},
    {"compute int32", Ex, [](Setting& s) { s.call.compute = 72; }},
    {"compute f64", Ex, [](Setting& s) { s.call.compute = 70; }},
    {"compute fast f16", Ex, [](Setting& s) { s.call.compute = compute_32f_fast_16f; }},
    {"compute fast bf16", Ex, [](Setting& s) { s.call.compute = compute_32f_fast_16bf; }},
    {"compute fast tf32", Ex, [](Setting& s) { s.call.compute = compute_32f_fast_tf32; }},
    {"compute f16 and c f32", Ex,
     [](Setting& s) {
         s.call.compute = compute_16f;
         s.call.type_c = r_32f;
     }},
    {"algorithm 999", Ex, [](Setting& s) { s.call.algorithm = 999; }},
    {"algorithm -3", Ex, [](Setting& s) { s.call.algorithm = -3; }},
    {"algorithm 23", Ex, [](Setting& s) { s.call.algorithm = 23; }},
    {"algorithm 115", Ex, [](Setting& s) { s.call.algorithm = 115; }},
    {"c f32", Grouped, [](Setting& s) { s.call.type_c = r_32f; }},
    {"scalars on the device", Grouped, [](Setting& s) { s.pointer_mode = pointers_device; }},
    {"groups without alpha", Grouped, [](Setting& s) { s.call.alpha = nullptr; }},
    {"groups without a", Grouped, [](Setting& s) { s.call.a = nullptr; }},
    {"b at an odd address", Alone, [](Setting& s) { s.call.b = static_cast<const char*>(s.call.b) + 1; }},
    {"alpha null", Alone, [](Setting& s) { s.call.alpha = nullptr; }},
    {"beta null", Alone, [](Setting& s) { s.call.beta = nullptr; }},
    {"alpha null on the device", Alone,
     [](Setting& s) {
         s.call.alpha = nullptr;
         s.pointer_mode = pointers_device;
     }},
    {"a null", Alone, [](Setting& s) { s.call.a = nullptr; }},
    {"c null", Alone, [](Setting& s) { s.call.c = nullptr; }},
};

bool applies(const Change& change, const Function& f)
{
    switch (change.where) {
    case Everywhere: return true;
    case Batched: return f.kind != Batch::One;
    case Ex: return !f.is_half;
    case Grouped: return std::string_view(f.name).starts_with("cublasGemmGrouped");
    case Alone: return &f == functions;
    }
    return false;
}

int call(const Function& f, const Products& products, const Given& given, void (*apply)(Setting&))
{
    Setting s = right_call(f, given);
    if (apply)
        apply(s);
    given.set_pointer_mode(given.handle, s.pointer_mode);
    given.set_math_mode(given.handle, s.math_mode);
    return f.call(products, s.handle, s.call);
}

}  // namespace

Products::Products(void* blas_library, void* lt_library)
{
    void* const libraries[] = {blas_library, lt_library};
    enum { Blas, Lt };
#define HGEMM_REAL(library, name, type) find(libraries[library], #name, name);
#include "products.def"
#undef HGEMM_REAL
}

Given::Given(void* blas, void* lt)
{
    int (*create)(void**);
    find(blas, "cublasCreate_v2", create);
    find(blas, "cublasSetPointerMode_v2", set_pointer_mode);
    find(blas, "cublasSetMathMode", set_math_mode);
    find(lt, "cublasLtMatmulDescCreate", make_desc);
    find(lt, "cublasLtMatmulDescDestroy", free_desc);
    find(lt, "cublasLtMatmulDescSetAttribute", set_desc);
    find(lt, "cublasLtMatrixLayoutCreate", make_layout);
    find(lt, "cublasLtMatrixLayoutDestroy", free_layout);
    find(lt, "cublasLtMatrixLayoutSetAttribute", set_layout);
    if (const int status = create(&handle); status != 0)
        throw std::runtime_error("cublasCreate answers " + std::to_string(status));
    Cuda& cuda = *Cuda::get();
    memory = static_cast<char*>(cuda.allocate(5 * part));
    cuda.fill(memory, 0, 5 * part);
    for (int i = 0; i < 3; ++i) {
        const void* list[] = {operand(i), static_cast<char*>(operand(i)) + part / 2};
        cuda.copy_in(pointers(i), list, sizeof list);
    }
    cuda.wait();
}

void add_blas_calls(std::vector<WrongCall>& calls)
{
    for (const Function& f : functions) {
        const auto add = [&](const char* what, bool is_right, void (*apply)(Setting&)) {
            calls.push_back({f.name, what, is_right, [&f, apply](const Products& p, const Given& given) {
                                 return call(f, p, given, apply);
                             }});
        };
        add("right", true, nullptr);
        for (const Change& change : changes)
            if (applies(change, f))
                add(change.name, false, change.apply);
    }
}

std::vector<WrongCall> wrong_calls()
{
    std::vector<WrongCall> calls;
    add_blas_calls(calls);
    add_lt_calls(calls);
    return calls;
}

}  // namespace hg::test
