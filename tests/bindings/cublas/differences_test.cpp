// Where cuBLAS is known to compute, or to record, something else (bindings/cublas/DIFFERENCES.md): what the
// shim does there.
#include "placed.hpp"

#include <algorithm>
#include <cstdlib>

namespace hg::test {
namespace {

using namespace shim;

// TMA drops the low bits of an address.
TEST_F(Shim, takes_arrays_of_pointers_at_any_element)
{
    constexpr int n = 64, batch = 8;
    for (const auto& [type, format] : {std::pair{r_16bf, HGEMM_BF16}, {r_16f, HGEMM_F16}}) {
        const auto small = [](size_t i) { return static_cast<double>(hash(7, i) % 5) - 2; };
        const Placed a(*memory_, format, n * n, batch, small), b(*memory_, format, n * n, batch, small),
            c(*memory_, format, n * n, batch, small);
        const float alpha = 1, beta = 1;
        const Block la = a.pointers(), lb = b.pointers(), lc = c.pointers();
        EXPECT_EQ(cublasGemmBatchedEx(handle_, 0, 0, n, n, n, &alpha, la.get<const void*>(), type, n,
                                      lb.get<const void*>(), type, n, &beta, lc.get<void*>(), type, n,
                                      batch, compute_32f, algo_default),
                  0);
        EXPECT_EQ(c.wrong([&](int z, int64_t at) {
            double sum = c.at(z, at);
            for (int64_t l = 0; l < n; ++l)
                sum += a.at(z, l * n + at % n) * b.at(z, at / n * n + l);
            return sum;
        }),
                  0);
        EXPECT_TRUE(c.nothing_else_written());
    }
    EXPECT_EQ(calls(), "");
}

// The product alone rounds to the even neighbour below it, to which C adds less than half a unit.
TEST_F(Shim, rounds_once_with_beta_1)
{
    struct Case {
        int type;
        hgemm_type_t format;
        double large;
    };
    for (const auto& [type, format, large] :
         {Case{r_16f, HGEMM_F16, 2048}, Case{r_16bf, HGEMM_BF16, 256}}) {
        constexpr int m = 24, n = 16, k = 32;
        const auto one_large = [large = large](size_t i) {
            return i / m == 0 ? large : i / m == 1 ? 1 : 0;
        };
        const auto one = [](size_t) { return 1; };
        const Placed a(*memory_, format, m * k, 1, one_large), b(*memory_, format, k * n, 1, one),
            c(*memory_, format, m * n, 1, one);
        const float alpha = 1, beta = 1;
        EXPECT_EQ(cublasGemmEx(handle_, 0, 0, m, n, k, &alpha, a.ptr(), type, m, b.ptr(), type, k, &beta,
                               c.ptr(), type, m, compute_32f, algo_default),
                  0);
        EXPECT_EQ(c.wrong([large = large](int, int64_t) { return large + 2; }), 0);
    }
    EXPECT_EQ(calls(), "");
}

// Sums of 131072 and -131072 in slices of their own.
TEST_F(Shim, keeps_slices_of_misaligned_operands_in_fp32)
{
    constexpr int m = 16, n = 40, k = 4096;
    setenv("HGEMM_KERNEL", "/split=2", 1);
    for (const int shift : {1, 0}) {
        const auto signs = [](size_t i) { return i % k < k / 2 ? 64 : -64; };
        const Placed a(
            *memory_, HGEMM_F16, m * k, 1, [](size_t) { return 1; }, shift),
            b(*memory_, HGEMM_F16, k * n, 1, signs), c(*memory_, HGEMM_F16, m * n, 1, signs);
        const float alpha = 1, beta = 0;
        EXPECT_EQ(cublasGemmEx(handle_, op_t, 0, m, n, k, &alpha, a.ptr(), r_16f, k, b.ptr(), r_16f, k,
                               &beta, c.ptr(), r_16f, m, compute_32f, algo_default),
                  0);
        EXPECT_EQ(c.wrong([](int, int64_t) { return 0; }), 0) << shift;
    }
    unsetenv("HGEMM_KERNEL");
    EXPECT_EQ(calls(), "");
}

TEST_F(Shim, adds_in_fp32_for_cublasHgemm)
{
    constexpr int m = 16, n = 16, k = 32768;
    const auto signs = [](size_t i) { return i % k < k / 2 ? 64 : -64; };
    const Placed a(*memory_, HGEMM_F16, m * k, 1, [](size_t) { return 1; }),
        b(*memory_, HGEMM_F16, k * n, 1, signs), c(*memory_, HGEMM_F16, m * n, 1, signs);
    const uint16_t one = 0x3c00, zero = 0;
    EXPECT_EQ(cublasHgemm(handle_, op_t, 0, m, n, k, &one, a.ptr(), k, b.ptr(), k, &zero, c.ptr(), m), 0);
    EXPECT_EQ(c.wrong([](int, int64_t) { return 0; }), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(Shim, reads_no_operand_if_alpha_is_0_on_the_device)
{
    const auto nothing = [](size_t) { return double{NAN}; };
    constexpr int n = 48;
    const Placed a(*memory_, HGEMM_BF16, n * n, 1, nothing), b(*memory_, HGEMM_BF16, n * n, 1, nothing),
        c(*memory_, HGEMM_BF16, n * n, 1, [](size_t i) { return static_cast<double>(i % 7); });
    const float values[] = {0, 1};
    Block scalars(*memory_, sizeof values);
    scalars.copy_in(values);
    cublasSetPointerMode_v2(handle_, pointers_device);
    const auto multiply = [&](const float* beta) {
        EXPECT_EQ(cublasGemmEx(handle_, 0, 0, n, n, n, scalars.get<float>(), a.ptr(), r_16bf, n, b.ptr(),
                               r_16bf, n, beta, c.ptr(), r_16bf, n, compute_32f, algo_default),
                  0);
    };
    multiply(scalars.get<float>() + 1);
    EXPECT_EQ(c.wrong([&](int, int64_t at) { return c.at(0, at); }), 0);
    multiply(scalars.get<float>());
    EXPECT_EQ(c.wrong([](int, int64_t) { return 0; }), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(Shim, makes_symmetric_products_of_a_matrix_and_its_transpose)
{
    for (const auto& [n, k] : {std::pair{96, 200}, {131, 77}, {40, 3000}}) {
        const Placed x(*memory_, HGEMM_F16, int64_t{n} * k, 1, [](size_t i) { return normal(3, i); }),
            d(*memory_, HGEMM_F32, int64_t{n} * n, 1, [](size_t) { return 0; });
        const float alpha = 1, beta = 0;
        EXPECT_EQ(cublasGemmEx(handle_, op_n, op_t, n, n, k, &alpha, x.ptr(), r_16f, n, x.ptr(), r_16f, n,
                               &beta, d.ptr(), r_32f, n, compute_32f, algo_default),
                  0);
        const std::vector<double> now = d.now();
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < i; ++j)
                ASSERT_EQ(now[static_cast<size_t>(i * n + j)], now[static_cast<size_t>(j * n + i)])
                    << n << " " << i << " " << j;
    }
    EXPECT_EQ(calls(), "");
}

// The bits of D with C added, whose columns are alike, and with a bias.
TEST_F(LtShim, adds_a_bias_and_a_matrix_alike)
{
    const auto value = [](size_t i) { return normal(5, i); };
    const int64_t m = o_.size.m, ld = o_.c.ld();
    const Placed bias(device_, HGEMM_F16, m, 1, value),
        c(device_, HGEMM_F16, ld * o_.size.n, 1,
          [=](size_t i) { return value(i % static_cast<size_t>(ld) % static_cast<size_t>(m)); });
    const Placed a(device_, HGEMM_F16, o_.a.stride(), 1, [](size_t i) { return normal(6, i); });
    const float one = 1, zero = 0;
    const auto run = [&](const float& beta) {
        EXPECT_EQ(cublasLtMatmul(handle_, desc_, &one, a.ptr(), a_, o_.b.ptr(), b_, &beta, c.ptr(), c_,
                                 d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr),
                  0);
        return d_matrix_.now();
    };
    const auto with_c = run(one);
    set(desc_epilogue, epilogue_bias);
    set<void*>(desc_bias_pointer, bias.ptr());
    EXPECT_EQ(run(zero), with_c);
    EXPECT_EQ(calls(), "");
}

TEST_F(LtShim, reads_no_operand_for_a_bias_alone)
{
    const Placed a(device_, HGEMM_F16, o_.a.stride(), 1, [](size_t) { return double{NAN}; }),
        bias(device_, HGEMM_F16, o_.size.m, 1, [](size_t i) { return static_cast<double>(i); });
    const float zero = 0;
    set(desc_epilogue, epilogue_bias);
    set<void*>(desc_bias_pointer, bias.ptr());
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &zero, a.ptr(), a_, o_.b.ptr(), b_, &zero, o_.c.ptr(), c_,
                             d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr),
              0);
    EXPECT_EQ(o_.wrong(d_matrix_, [](int64_t i, int64_t) { return static_cast<double>(i); }), 0);
    EXPECT_EQ(calls(), "");
}

// The call that the shim makes for it.
TEST_F(LtShim, chooses_the_same_for_a_bias_at_any_element)
{
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create_sized(&handle, HGEMM_DEVICE_CURRENT, 32 << 20), HGEMM_STATUS_SUCCESS);
    const Block memory(device_, 256);
    const auto explain = [&](int64_t size, int64_t shift) {
        hgemm_args_t args;
        hgemm_args_init(&args, sizeof args);
        args.m = args.n = args.k = args.lda = args.ldb = args.ldd = size;
        args.bias_mode = HGEMM_BIAS_M;
        args.bias = memory.get<uint16_t>() + shift;
        char text[1024] = "";
        EXPECT_EQ(hgemm_explain(handle, &args, text, sizeof text), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        return std::string(text);
    };
    for (const int64_t size : {64, 1024, 4096})
        EXPECT_EQ(explain(size, 1), explain(size, 0));
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

TEST_F(LtShim, keeps_the_tail_of_gelu)
{
    const double before[] = {-4, -5, -5.2, -INFINITY};
    const Placed c(device_, HGEMM_F16, o_.c.ld() * o_.size.n, 1, [&](size_t i) { return before[i % 4]; });
    const float zero = 0, one = 1;
    set(desc_epilogue, epilogue_gelu);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &zero, o_.a.ptr(), a_, o_.b.ptr(), b_, &one, c.ptr(), c_,
                             d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr),
              0);
    const std::vector<unsigned char> now = d_matrix_.now();
    for (int64_t i = 0; i < 4; ++i) {
        const double x = round_to(HGEMM_F16, before[i]), d = d_matrix_.at(now, 0, i, 0);
        EXPECT_TRUE(std::signbit(d)) << x;
        if (std::isinf(x)) {
            EXPECT_EQ(d, 0);
        } else {
            EXPECT_EQ(d, round_to(HGEMM_F16, activate(HGEMM_ACTIVATION_GELU_TANH, x))) << x;
            EXPECT_LT(d, 0) << x;
        }
    }
    EXPECT_EQ(calls(), "");
}

// Types of the nodes of a graph that holds what `work` puts on the stream.
std::vector<int> types_of_nodes(CUstream_st* stream, const std::function<void()>& work)
{
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const auto call = [&](const char* name, auto... arguments) {
        EXPECT_EQ(reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(driver, name))(arguments...), 0)
            << name;
    };
    void* graph = nullptr;
    size_t count = 0;
    call("cuStreamBeginCapture_v2", stream, 0);
    work();
    call("cuStreamEndCapture", stream, &graph);
    call("cuGraphGetNodes", graph, static_cast<void**>(nullptr), &count);
    std::vector<void*> nodes(count);
    std::vector<int> types(count);
    call("cuGraphGetNodes", graph, nodes.data(), &count);
    for (size_t i = 0; i < count; ++i)
        call("cuGraphNodeGetType", nodes[i], &types[i]);
    call("cuGraphDestroy", graph);
    return types;
}

// One for each product, unless it copies operands first.
TEST_F(Shim, puts_kernels_alone_into_a_graph)
{
    constexpr int kernel = 0;  // CU_GRAPH_NODE_TYPE_KERNEL
    CUstream_st* stream = Cuda::get()->create_stream();
    cublasSetStream_v2(handle_, stream);
    const auto record = [&](const Operands& o) {
        return types_of_nodes(stream, [&] {
            for (int i = 0; i < 3; ++i)
                EXPECT_EQ(o.gemm_ex(handle_), 0);
        });
    };
    // The matrices' leading dimensions are three more than their rows.
    for (const Sizes& aligned : {Sizes{29, 17, 37}, Sizes{29, 29, 4093}})
        EXPECT_EQ(record(Operands(*memory_, aligned)), std::vector<int>(3, kernel));
    const std::vector<int> odd = record(Operands(*memory_, {65, 33, 301}));
    EXPECT_GE(odd.size(), 3u);
    EXPECT_EQ(odd, std::vector<int>(odd.size(), kernel));
    EXPECT_EQ(calls(), "");
    cublasSetStream_v2(handle_, nullptr);
    Cuda::get()->destroy(stream);
}

}  // namespace
}  // namespace hg::test
