// cublasLtMatmul as it is served: epilogues, orders, batches, scalars.
#include "lt_fixture.hpp"

#include "src/tools/support/reference.hpp"

#include <algorithm>
#include <tuple>

namespace hg::test {
namespace {

using namespace shim;

TEST_F(LtShim, serves_a_product_into_another_matrix)
{
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return o_.expected(0, i, j); }), 0);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(served(), 1u);
}

TEST_F(LtShim, serves_all_epilogues)
{
    std::vector<uint16_t> bias(static_cast<size_t>(o_.size.m));
    for (size_t i = 0; i < bias.size(); ++i)
        bias[i] = static_cast<uint16_t>(encode(HGEMM_F16, static_cast<double>(i % 7) - 3));
    Block block(device_, bias.size() * 2);
    block.copy_in(bias.data());
    set(desc_bias_pointer, block.get());
    for (const uint32_t epilogue :
         {epilogue_default, epilogue_bias, epilogue_relu, epilogue_relu | epilogue_bias, epilogue_gelu,
          epilogue_gelu | epilogue_bias}) {
        set(desc_epilogue, epilogue);
        EXPECT_EQ(multiply(), 0);
        const auto activation = epilogue & epilogue_relu   ? HGEMM_ACTIVATION_RELU
                                : epilogue & epilogue_gelu ? HGEMM_ACTIVATION_GELU_TANH
                                                           : HGEMM_ACTIVATION_NONE;
        const auto value = [&](int64_t i, int64_t j) {
            const double added =
                epilogue & epilogue_bias ? decode(HGEMM_F16, bias[static_cast<size_t>(i)]) : 0;
            return activate(activation, o_.expected(0, i, j) + added);
        };
        EXPECT_EQ(o_.wrong(d_matrix_, value), 0) << epilogue;
    }
    EXPECT_EQ(calls(), "");
}

// The same memory, described as the transposes in row order.
TEST_F(LtShim, serves_row_order)
{
    const auto as_rows = [](void* layout, int64_t rows, int64_t columns) {
        set_layout(layout, layout_order, order_row);
        set_layout(layout, layout_rows, static_cast<uint64_t>(columns));
        set_layout(layout, layout_cols, static_cast<uint64_t>(rows));
    };
    as_rows(a_, o_.size.m, o_.size.k);
    as_rows(b_, o_.size.k, o_.size.n);
    set(desc_transa, op_t);
    set(desc_transb, op_t);
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return o_.expected(0, i, j); }), 0);

    // All in row order: transpose(B) * transpose(A) = transpose(D).
    as_rows(c_, o_.size.m, o_.size.n);
    as_rows(d_, o_.size.m, o_.size.n);
    set(desc_transa, op_n);
    set(desc_transb, op_n);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o_.alpha, o_.b.ptr(), b_, o_.a.ptr(), a_, &o_.beta,
                             o_.c.ptr(), c_, d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr),
              0);
    EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return o_.expected(0, i, j); }), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(LtShim, serves_all_types)
{
    for (const auto& [in, out] : {std::pair{r_16f, r_32f}, {r_16bf, r_16bf}, {r_16bf, r_32f}}) {
        const Operands o(device_, {}, op_n, op_n, in, out);
        void* layouts[3];
        const std::tuple<const DeviceMatrix*, int, int64_t, int64_t> matrices[] = {
            {&o.a, in, o.size.m, o.size.k},
            {&o.b, in, o.size.k, o.size.n},
            {&o.c, out, o.size.m, o.size.n}};
        for (size_t i = 0; i < 3; ++i) {
            const auto& [matrix, type, rows, columns] = matrices[i];
            cublasLtMatrixLayoutCreate(&layouts[i], type, static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(columns), matrix->ld());
        }
        EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o.alpha, o.a.ptr(), layouts[0], o.b.ptr(), layouts[1],
                                 &o.beta, o.c.ptr(), layouts[2], o.c.ptr(), layouts[2], nullptr, nullptr, 0,
                                 nullptr),
                  0);
        EXPECT_EQ(o.wrong(), 0) << in << " " << out;
        for (void* layout : layouts)
            cublasLtMatrixLayoutDestroy(layout);
    }
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(served(), 3u);
}

// As XLA calls it.
TEST_F(LtShim, serves_products_without_c)
{
    const float zero = 0;
    for (void* layout : {c_, static_cast<void*>(nullptr)}) {
        EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &zero, nullptr,
                                 layout, d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr),
                  0);
        EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return o_.alpha * o_.sum(0, i, j); }), 0);
    }
    EXPECT_EQ(calls(), "");
}

TEST_F(LtShim, reads_scalars_from_the_device)
{
    const float values[] = {o_.alpha, o_.beta};
    Block scalars(device_, sizeof values);
    scalars.copy_in(values);
    set(desc_pointer_mode, pointers_device);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, scalars.get<float>(), o_.a.ptr(), a_, o_.b.ptr(), b_,
                             scalars.get<float>() + 1, o_.c.ptr(), c_, d_matrix_.ptr(), d_, nullptr,
                             nullptr, 0, nullptr),
              0);
    EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return o_.expected(0, i, j); }), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(LtShim, uses_the_callers_workspace_at_any_alignment)
{
    const Block workspace(device_, 1 << 20);
    EXPECT_EQ(multiply(nullptr, &workspace), 0);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &o_.beta,
                             o_.c.ptr(), c_, d_matrix_.ptr(), d_, nullptr, workspace.get<char>() + 8, 4096,
                             nullptr),
              0);
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &o_.beta,
                             o_.c.ptr(), c_, d_matrix_.ptr(), d_, nullptr, workspace.get<char>() + 8, 16,
                             nullptr),
              0);
    EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return o_.expected(0, i, j); }), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(LtShim, serves_handles_of_cublaslt)
{
    void* lt = nullptr;
    cublasLtCreate(&lt);
    EXPECT_EQ(cublasLtMatmul(lt, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &o_.beta, o_.c.ptr(), c_,
                             d_matrix_.ptr(), d_, nullptr, nullptr, 0, nullptr),
              0);
    EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return o_.expected(0, i, j); }), 0);
    EXPECT_EQ(cublasLtDestroy(lt), 0);
    EXPECT_EQ(calls(), "cublasLtDestroy ");
}

TEST_F(LtShim, serves_strided_batches)
{
    const Operands o(device_, {24, 17, 40, 3});
    const std::pair<void*, const DeviceMatrix*> batches[] = {{a_, &o.a}, {b_, &o.b}, {c_, &o.c}};
    for (const auto& [layout, matrix] : batches) {
        set_layout(layout, layout_batch_count, 3);
        set_layout(layout, layout_batch_stride, matrix->stride());
    }
    EXPECT_EQ(cublasLtMatmul(handle_, desc_, &o.alpha, o.a.ptr(), a_, o.b.ptr(), b_, &o.beta, o.c.ptr(), c_,
                             o.c.ptr(), c_, nullptr, nullptr, 0, nullptr),
              0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(LtShim, serves_pointer_arrays)
{
    const Operands o(device_, {24, 17, 40, 3});
    for (void* layout : {a_, b_, c_}) {
        set_layout(layout, layout_batch_count, 3);
        set_layout(layout, layout_batch_mode, batch_pointer_array);
    }
    const Block a = o.a.pointers(device_), b = o.b.pointers(device_), c = o.c.pointers(device_);
    const auto multiply = [&] {
        return cublasLtMatmul(handle_, desc_, &o.alpha, a.get(), a_, b.get(), b_, &o.beta, c.get(), c_,
                              c.get(), c_, nullptr, nullptr, 0, nullptr);
    };
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "");
    // cuBLASLt has no epilogue for them.
    set(desc_epilogue, epilogue_relu);
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
}

TEST_F(LtShim, verify_compares)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    fake_set_error(0.5);
    EXPECT_EQ(multiply(), 0);
    EXPECT_EQ(o_.wrong(d_matrix_, [&](int64_t i, int64_t j) { return 0.5 * o_.expected(0, i, j); }), 0);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
    EXPECT_NE(
        summary().find("cublasLtMatmul nn 24x17x40 f16 to f16: 1 compared, largest difference 1.00e+00"),
        std::string::npos)
        << summary();
}

TEST_F(Shim, cuts_the_summary_to_the_room_there_is)
{
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    const std::string full = summary();
    char text[16];
    EXPECT_EQ(hgemm_shim_summary(text, sizeof text), full.size());
    EXPECT_EQ(text, full.substr(0, sizeof text - 1));
    EXPECT_EQ(hgemm_shim_summary(nullptr, 0), full.size());
}

}  // namespace
}  // namespace hg::test
