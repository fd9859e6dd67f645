// Target: libhgemm_cblas on the host, with any 32-bit integers.
#include "hgemm_cblas.h"

#include "caller.hpp"
#include "oracle.hpp"
#include "report.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace hg::fuzz {
namespace {

// In hgemm_cblas.h's order.
enum Position { Layout = 1, TransA, TransB, M, N, K, Alpha, A, Lda, B, Ldb, Beta, C, Ldc };

struct Failure {
    int calls = 0, argument = -1;
    std::string function, message;
};
Failure failure;

void keep_failure(const char* function, int argument, const char* message)
{
    ++failure.calls;
    failure.argument = argument;
    failure.function = function;
    failure.message = message;
}

struct Function {
    const char* name;
    hgemm_type_t ab, c;
};
constexpr Function functions[] = {
    {"cblas_hgemm", HGEMM_F16, HGEMM_F16},   {"cblas_bgemm", HGEMM_BF16, HGEMM_BF16},
    {"cblas_shgemm", HGEMM_F16, HGEMM_F32},  {"cblas_gemm_f16f16f32", HGEMM_F16, HGEMM_F32},
    {"cblas_sbgemm", HGEMM_BF16, HGEMM_F32}, {"cblas_gemm_bf16bf16f32", HGEMM_BF16, HGEMM_F32}};

struct Call {
    int function = 0;
    int layout = 0, transa = 0, transb = 0;  // as they are passed
    Product p;
    std::vector<int> wrong;
    bool may_be_refused = false;
};

int draw_odd_int(Input& input)
{
    constexpr int values[] = {0,           -1,      1,     2,      INT_MAX, INT_MIN, INT_MAX - 1, 1 << 30,
                              INT_MIN / 2, 1 << 16, 65535, -65536, 46341,   99,      7,           -7};
    const int kind = input.byte();
    return kind < 192 ? values[kind % 16] : static_cast<int>(input.bits(4));
}

hgemm_op_t real_op(int op) { return op == 111 || op == 114 ? HGEMM_NO_TRANS : HGEMM_TRANS; }

Block make(Product& p, hgemm_type_t type, const Extent& extent, Input& input)
{
    p.has_memory = p.has_memory && extent.span() >= 0;
    Block block(type, extent.span() < 0 ? Extent{} : extent, input.below(4));
    block.fill(input.byte());
    return block;
}

void spoil(Input& input, bool odd, const void*& pointer)
{
    if (odd)
        pointer = input.below(2) == 0 ? nullptr : static_cast<const char*>(pointer) + 1;
}

void draw_memory(Input& input, Product& p, int odd)
{
    hgemm_args_t& g = p.g;
    p.a = make(p, g.type_ab, p.reads_ab() ? p.extent_a() : Extent{}, input);
    p.b = make(p, g.type_ab, p.reads_ab() ? p.extent_b() : Extent{}, input);
    p.d = make(p, g.type_d, p.is_empty() ? Extent{} : p.extent_d(), input);
    g.a = p.a.ptr();
    g.b = p.b.ptr();
    const void* c = p.d.ptr();
    spoil(input, odd == A, g.a);
    spoil(input, odd == B, g.b);
    spoil(input, odd == C, c);
    g.c = g.d = const_cast<void*>(c);
}

int draw_ld(Input& input, bool odd, const Extent& extent)
{
    if (odd)
        return draw_odd_int(input);
    const int64_t least = std::max<int64_t>(extent.length, 1);
    return static_cast<int>(least < INT_MAX ? least + input.below(2) : least);
}

Call draw(Input& input)
{
    constexpr int ops[] = {111, 112, 113, 114};
    constexpr float alphas[] = {1, -1, 2, 0}, betas[] = {0, 1, -1, 0.5f};
    Call call;
    hgemm_args_t& g = call.p.g;
    const int odd = input.byte() < 128 ? 0 : input.below(Ldc + 1);
    const auto number = [&](int position, int usual) {
        return odd == position ? draw_odd_int(input) : usual;
    };
    call.function = input.below(6);
    call.layout = number(Layout, input.one_in(2) ? 101 : 102);
    call.transa = number(TransA, input.pick(ops));
    call.transb = number(TransB, input.pick(ops));
    g.layout = call.layout == 101 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = real_op(call.transa);
    g.transb = real_op(call.transb);
    g.type_ab = functions[call.function].ab;
    g.type_c = g.type_d = functions[call.function].c;
    g.m = number(M, input.byte() % 24);
    g.n = number(N, input.byte() % 24);
    g.k = number(K, input.byte() % 24);
    g.batch_count = 1;
    g.alpha = input.pick(alphas);
    g.beta = input.pick(betas);
    g.lda = draw_ld(input, odd == Lda, call.p.extent_a());
    g.ldb = draw_ld(input, odd == Ldb, call.p.extent_b());
    g.ldd = g.ldc = draw_ld(input, odd == Ldc, call.p.extent_d());
    draw_memory(input, call.p, odd);
    return call;
}

void judge(Call& call)
{
    const Product& p = call.p;
    const hgemm_args_t& g = p.g;
    const auto wrong_if = [&](bool condition, int position) {
        if (condition)
            call.wrong.push_back(position);
    };
    const auto shorter = [](int64_t ld, const Extent& e) { return ld < std::max<int64_t>(1, e.length); };
    wrong_if(call.layout != 101 && call.layout != 102, Layout);
    wrong_if(call.transa < 111 || call.transa > 114, TransA);
    wrong_if(call.transb < 111 || call.transb > 114, TransB);
    wrong_if(g.m < 0, M);
    wrong_if(g.n < 0, N);
    wrong_if(g.k < 0, K);
    wrong_if(shorter(g.lda, p.extent_a()), Lda);
    wrong_if(shorter(g.ldb, p.extent_b()), Ldb);
    wrong_if(shorter(g.ldd, p.extent_d()), Ldc);
    const auto bad = [](const void* pointer, size_t width) {
        return !pointer || reinterpret_cast<uintptr_t>(pointer) % width != 0;
    };
    wrong_if(p.reads_ab() && bad(g.a, 2), A);
    wrong_if(p.reads_ab() && bad(g.b, 2), B);
    wrong_if(!p.is_empty() && bad(g.d, test::bytes_of(g.type_d)), C);
}

void make_call(const Call& call)
{
    const hgemm_args_t& g = call.p.g;
    const auto layout = static_cast<hgemm_layout_t>(call.layout);
    const auto ta = static_cast<hgemm_op_t>(call.transa), tb = static_cast<hgemm_op_t>(call.transb);
    const auto narrow = [](int64_t value) { return static_cast<int>(value); };
    const auto* a = static_cast<const uint16_t*>(g.a);
    const auto* b = static_cast<const uint16_t*>(g.b);
    const auto with_bits = [&](auto function) {
        function(layout, ta, tb, narrow(g.m), narrow(g.n), narrow(g.k),
                 static_cast<uint16_t>(test::encode(g.type_ab, double{g.alpha})), a, narrow(g.lda), b,
                 narrow(g.ldb), static_cast<uint16_t>(test::encode(g.type_ab, double{g.beta})),
                 static_cast<uint16_t*>(g.d), narrow(g.ldd));
    };
    const auto with_floats = [&](auto function) {
        function(layout, ta, tb, narrow(g.m), narrow(g.n), narrow(g.k), g.alpha, a, narrow(g.lda), b,
                 narrow(g.ldb), g.beta, static_cast<float*>(g.d), narrow(g.ldd));
    };
    switch (call.function) {
    case 0: return with_bits(cblas_hgemm);
    case 1: return with_bits(cblas_bgemm);
    case 2: return with_floats(cblas_shgemm);
    case 3: return with_floats(cblas_gemm_f16f16f32);
    case 4: return with_floats(cblas_sbgemm);
    default: return with_floats(cblas_gemm_bf16bf16f32);
    }
}

void check_refusal(const Call& call)
{
    const char* const name = functions[call.function].name;
    if (hgemm_cblas_status() != HGEMM_STATUS_INVALID_ARGUMENT || failure.calls != 1)
        wrong("%s is %s, the handler was called %d times, and argument %d is wrong", name,
              hgemm_status_string(hgemm_cblas_status()), failure.calls, call.wrong.front());
    if (std::ranges::find(call.wrong, failure.argument) == call.wrong.end())
        wrong("%s: argument %d is right: %s", name, failure.argument, failure.message.c_str());
    if (failure.function != name || !failure.message.starts_with(failure.function + ": ") ||
        !is_one_line(failure.message))
        wrong("%s: handler got \"%s\", \"%s\"", name, failure.function.c_str(), failure.message.c_str());
}

void multiply(Input& input)
{
    Call call = draw(input);
    Product& p = call.p;
    note("%s layout=%d ops=%d,%d: %s", functions[call.function].name, call.layout, call.transa, call.transb,
         p.describe().c_str());
    judge(call);
    if (call.wrong.empty() && !p.has_memory)
        return;
    const bool right = call.wrong.empty();
    const std::vector<double> c = right ? c_before(p) : std::vector<double>();
    failure = {};
    {
        const CallerEnvironment environment(input);
        make_call(call);
        environment.check();
    }
    if (!right) {
        check_refusal(call);
        return check_untouched(p);
    }
    if (hgemm_cblas_status() != HGEMM_STATUS_SUCCESS || failure.calls != 0)
        wrong("a right call failed: %s", failure.message.c_str());
    check_results(p, c);
}

}  // namespace
}  // namespace hg::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***)
{
    setenv("HGEMM_CBLAS", "host", 1);
    hgemm_cblas_set_handler(hg::fuzz::keep_failure);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    hg::fuzz::begin();
    hg::fuzz::Input input(data, size);
    for (int calls = 0; calls < 8 && !input.empty(); ++calls)
        hg::fuzz::multiply(input);
    return 0;
}
