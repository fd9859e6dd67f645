// HGEMM_SHIM_SYRK: a matrix times its own transpose is computed by half, and nothing else is.
#include "shim_fixture.hpp"

#include "hgemm.h"

#include <string>
#include <vector>

namespace hg::test {
namespace {

using namespace shim;

constexpr int rows = 72, columns = 40, ld = rows + 3;

// What libhgemm planned since it was last asked.
std::string plans;

class Symmetric : public Shim {
protected:
    void SetUp() override
    {
        ASSERT_EQ(hgemm_set_logger(
                      HGEMM_LOG_PLAN, [](void*, const char* line) { plans += std::string(line) + "\n"; },
                      nullptr),
                  HGEMM_STATUS_SUCCESS);
        Shim::SetUp();
        ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_SYRK", "on"), 0);
        std::vector<uint16_t> values(size_t{2} * ld * ld);
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<uint16_t>(encode(HGEMM_F16, normal(5, i)));
        x_ = Block(*memory_, values.size() * sizeof values[0]);
        x_.copy_in(values.data());
        d_ = Block(*memory_, size_t{2} * ld * ld * sizeof(float));
    }
    void TearDown() override
    {
        EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_SYRK", "off"), 0);
        EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "default"), 0);
        hgemm_set_logger(HGEMM_LOG_OFF, nullptr, nullptr);
        Shim::TearDown();
    }

    struct Call {
        int transa = op_n, transb = op_t, n = rows;
        int64_t offset_b = 0, ldb = ld;
        float beta = 0;
    };
    // The result, and in `plans` how it was computed.
    std::vector<float> product(const Call& c)
    {
        const float alpha = 0.5f;
        std::vector<float> d(size_t{ld} * rows, 3);
        memory_->copy_in(d_.get<float>(), d.data(), d.size() * sizeof d[0]);
        plans.clear();
        EXPECT_EQ(cublasGemmEx(handle_, c.transa, c.transb, rows, c.n, columns, &alpha, x_.get(), r_16f, ld,
                               x_.get<uint16_t>() + c.offset_b, r_16f, static_cast<int>(c.ldb), &c.beta,
                               d_.get(), r_32f, ld, compute_32f, 99),
                  0);
        Cuda::get()->wait();
        memory_->copy_out(d.data(), d_.get<float>(), d.size() * sizeof d[0]);
        return d;
    }
    static bool is_halved() { return plans.find(" triangle") != std::string::npos; }

    Block x_, d_;
};

TEST_F(Symmetric, products_with_the_own_transpose_have_the_same_bits)
{
    for (const char* const mode : {"batch-invariant", "tree"})
        for (const Call& call : {Call{}, Call{.transa = op_t, .transb = op_n}}) {
            ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", mode), 0);
            const std::vector<float> halved = product(call);
            EXPECT_TRUE(is_halved()) << plans;
            ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_SYRK", "off"), 0);
            EXPECT_EQ(product(call), halved);
            EXPECT_FALSE(is_halved()) << plans;
            ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_SYRK", "1"), 0);
        }
    EXPECT_EQ(calls(), "");
}

TEST_F(Symmetric, other_products_are_computed_whole)
{
    const Call others[] = {{.transa = op_t, .transb = op_t},
                           {.transa = op_n, .transb = op_t, .n = rows - 1},
                           {.offset_b = 1},
                           {.ldb = ld + 1},
                           {.beta = 1}};
    for (const Call& call : others) {
        product(call);
        EXPECT_FALSE(is_halved()) << plans;
    }
    EXPECT_EQ(passed_on(), 0u);
}

TEST_F(Symmetric, batches_are_halved_if_their_matrices_are_the_same)
{
    const float one = 1, zero = 0;
    for (const bool same : {true, false}) {
        plans.clear();
        EXPECT_EQ(cublasGemmStridedBatchedEx(handle_, op_n, op_t, 8, 8, columns, &one, x_.get(), r_16f, 8,
                                             8 * columns, x_.get(), r_16f, 8, same ? 8 * columns : 0, &zero,
                                             d_.get(), r_32f, 8, 64, 2, compute_32f, 99),
                  0);
        EXPECT_EQ(is_halved(), same) << plans;
    }
}

}  // namespace
}  // namespace hg::test
