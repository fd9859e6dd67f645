// That every device has code in the library's images: a few products by each backend that it has.
#include "../conformance.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

namespace hg::test {
namespace {

// In whole vectors, element by element, as few rows, as a batch with an epilogue.
std::vector<GemmCase> four_products()
{
    GemmCase vectors;
    vectors.type_ab = vectors.type_c = vectors.type_d = HGEMM_BF16;
    vectors.transa = HGEMM_TRANS;
    vectors.m = 136;
    vectors.n = 72;
    vectors.k = 104;
    vectors.aligned = true;
    GemmCase elements = vectors;
    elements.aligned = false;
    elements.type_ab = HGEMM_F16;
    elements.a.gap = elements.b.shift = 1;
    GemmCase few_rows = vectors;
    few_rows.n = 1;
    few_rows.beta = 1;
    GemmCase batch = vectors;
    batch.batch = Batch::Strided;
    batch.batch_count = 3;
    batch.bias = HGEMM_BIAS_M;
    batch.activation = HGEMM_ACTIVATION_GELU_TANH;
    return {vectors, elements, few_rows, batch};
}

class DeviceImages : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override { NEEDS_BACKEND(GetParam()); }
};

TEST_P(DeviceImages, serve_four_products)
{
    const auto library = make(GetParam());
    Suite suite(*library);
    for (const GemmCase& g : four_products())
        suite.check(g);
    for (const std::string& failure : suite.failures())
        ADD_FAILURE() << failure;
    EXPECT_EQ(suite.cases(), four_products().size());
}

INSTANTIATE_TEST_SUITE_P(, DeviceImages, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
