// HGEMM_SHIM_MODE=batch-invariant and tree: the bits of a row do not depend on how many other rows there are.
#include "shim_fixture.hpp"

#include <cstring>

namespace hg::test {
namespace {

using namespace shim;

constexpr int outputs = 64, inputs = 2048, most_tokens = 96;

Block random_halves(Memory& memory, size_t count, uint64_t seed)
{
    std::vector<uint16_t> values(count);
    for (size_t i = 0; i < count; ++i)
        values[i] = static_cast<uint16_t>(encode(HGEMM_F16, normal(seed, i)));
    Block block(memory, count * sizeof values[0]);
    block.copy_in(values.data());
    return block;
}

// A layer as a row-major program calls it: Y (tokens x outputs) = X (tokens x inputs) * transpose(W), of
// which cuBLAS computes the transpose. Its N is the number of tokens.
class Layer : public Shim {
protected:
    void SetUp() override
    {
        Shim::SetUp();
        x_ = random_halves(*memory_, size_t{inputs} * most_tokens, 1);
        w_ = random_halves(*memory_, size_t{inputs} * outputs, 2);
        bias_ = random_halves(*memory_, size_t{outputs} * 2, 3);  // read as fp32
        y_ = Block(*memory_, size_t{outputs} * most_tokens * sizeof(float));
    }
    void TearDown() override
    {
        EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "default"), 0);
        Shim::TearDown();
    }

    using Bits = std::vector<uint32_t>;
    Bits result(int tokens) const
    {
        Cuda::get()->wait();
        Bits all(size_t{outputs} * most_tokens);
        y_.copy_out(all.data());
        all.resize(static_cast<size_t>(outputs * tokens));
        return all;
    }

    Bits product(int tokens) const
    {
        EXPECT_EQ(cublasGemmEx(handle_, op_t, op_n, outputs, tokens, inputs, &one_, w_.get(), r_16f, inputs,
                               x_.get(), r_16f, inputs, &zero_, y_.get(), r_32f, outputs, compute_32f, 99),
                  0);
        return result(tokens);
    }

    // The transpose: here cuBLAS's M is the number of tokens.
    Bits transposed_product(int tokens) const
    {
        EXPECT_EQ(cublasGemmEx(handle_, op_t, op_n, tokens, outputs, inputs, &one_, x_.get(), r_16f, inputs,
                               w_.get(), r_16f, inputs, &zero_, y_.get(), r_32f, most_tokens, compute_32f,
                               99),
                  0);
        const Bits columns = result(most_tokens);
        Bits rows(static_cast<size_t>(outputs * tokens));
        for (size_t i = 0; i < rows.size(); ++i)
            rows[i] = columns[i % outputs * most_tokens + i / outputs];
        return rows;
    }

    // By the algorithm that the heuristic proposes for a preference without reduction schemes.
    Bits product_by_lt(int tokens, uint32_t epilogue) const
    {
        void *desc, *layouts[3], *preference;
        const uint32_t no_reduction = 0;
        const int transa = op_t;
        const void* const bias = bias_.get();
        cublasLtMatmulDescCreate(&desc, compute_32f, r_32f);
        cublasLtMatmulDescSetAttribute(desc, desc_transa, &transa, sizeof transa);
        cublasLtMatmulDescSetAttribute(desc, desc_epilogue, &epilogue, sizeof epilogue);
        cublasLtMatmulDescSetAttribute(desc, desc_bias_pointer, &bias, sizeof bias);
        cublasLtMatrixLayoutCreate(&layouts[0], r_16f, inputs, outputs, inputs);
        cublasLtMatrixLayoutCreate(&layouts[1], r_16f, inputs, static_cast<uint64_t>(tokens), inputs);
        cublasLtMatrixLayoutCreate(&layouts[2], r_32f, outputs, static_cast<uint64_t>(tokens), outputs);
        cublasLtMatmulPreferenceCreate(&preference);
        cublasLtMatmulPreferenceSetAttribute(preference, preference_reduction_mask, &no_reduction,
                                             sizeof no_reduction);
        LtHeuristicResult found{};
        int count = 0;
        EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, desc, layouts[0], layouts[1], layouts[2],
                                                 layouts[2], preference, 1, &found, &count),
                  0);
        EXPECT_EQ(cublasLtMatmul(handle_, desc, &one_, w_.get(), layouts[0], x_.get(), layouts[1], &zero_,
                                 y_.get(), layouts[2], y_.get(), layouts[2], &found.algorithm, nullptr, 0,
                                 nullptr),
                  0);
        for (void* layout : layouts)
            cublasLtMatrixLayoutDestroy(layout);
        cublasLtMatmulPreferenceDestroy(preference);
        cublasLtMatmulDescDestroy(desc);
        return result(tokens);
    }

    // The first tokens as the first of a batch of products with one token each.
    Bits product_by_batch(int tokens) const
    {
        EXPECT_EQ(cublasGemmStridedBatchedEx(handle_, op_t, op_n, outputs, 1, inputs, &one_, w_.get(),
                                             r_16f, inputs, 0, x_.get(), r_16f, inputs, inputs, &zero_,
                                             y_.get(), r_32f, outputs, outputs, tokens, compute_32f, 99),
                  0);
        return result(tokens);
    }

    // Elements whose bits change when there are fewer tokens.
    template <typename Product>
    static int64_t changed(Product product)
    {
        const Bits all = product(most_tokens);
        int64_t count = 0;
        for (const int tokens : {2, 6, 8, 10, 16, 34, 64}) {
            const Bits some = product(tokens);
            for (size_t i = 0; i < some.size(); ++i)
                count += some[i] != all[i];
        }
        return count;
    }

    const float one_ = 1, zero_ = 0;
    Block x_, w_, bias_, y_;
};

TEST_F(Layer, bits_depend_on_the_batch_in_default_mode)
{
    EXPECT_GT(changed([&](int tokens) { return product(tokens); }), 0);
    EXPECT_GT(changed([&](int tokens) { return transposed_product(tokens); }), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(Layer, bits_do_not_depend_on_the_batch_in_the_other_modes)
{
    for (const char* const mode : {"batch-invariant", "tree"}) {
        ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", mode), 0);
        EXPECT_EQ(changed([&](int tokens) { return product(tokens); }), 0) << mode;
        EXPECT_EQ(changed([&](int tokens) { return transposed_product(tokens); }), 0) << mode;
        for (const uint32_t epilogue : {epilogue_default, epilogue_bias | epilogue_gelu})
            EXPECT_EQ(changed([&](int tokens) { return product_by_lt(tokens, epilogue); }), 0) << epilogue;
        EXPECT_EQ(changed([&](int tokens) { return product_by_batch(tokens); }), 0) << mode;
        const Bits rows = product(64);
        EXPECT_EQ(transposed_product(64), rows) << mode;
        EXPECT_EQ(product_by_batch(64), rows) << mode;
        EXPECT_EQ(product_by_lt(64, epilogue_default), rows) << mode;
        EXPECT_EQ(product(1), Bits(rows.begin(), rows.begin() + outputs)) << mode;
    }
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(passed_on(), 0u);
}

// K of 2,048 is halved twice in one of them.
TEST_F(Layer, the_modes_add_in_other_orders)
{
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "batch-invariant"), 0);
    const Bits unsplit = product(64);
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "tree"), 0);
    EXPECT_NE(product(64), unsplit);
}

TEST_F(Layer, the_mode_changes_while_the_program_runs)
{
    const Bits first = product(2);
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "batch-invariant"), 0);
    EXPECT_STREQ(hgemm_shim_get("HGEMM_SHIM_MODE"), "batch-invariant");
    EXPECT_NE(product(2), first);
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "default"), 0);
    EXPECT_EQ(product(2), first);
}

// Neither an algorithm that the program made nor one that splits no sum stands in the way of the mode.
TEST_F(Layer, batch_invariant_mode_goes_before_algorithms)
{
    product_by_lt(8, epilogue_default);
    EXPECT_EQ(calls(), "cublasLtMatmul ");
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "batch-invariant"), 0);
    product_by_lt(8, epilogue_default);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(served(), 1u);
}

}  // namespace
}  // namespace hg::test
