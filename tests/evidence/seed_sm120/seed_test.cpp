// The article's kernels give right results.
#include "src/tools/bench/device.hpp"
#include "tests/evidence/seed_sm120/launch.hpp"

#include <gtest/gtest.h>

namespace {

using namespace hg::bench;

// One tile; eleven columns of tiles, of which eight are walked together; the fewest and some more k's.
const Product products[] = {
    {128, 128, 128, HGEMM_F16, "tt"},
    {256, 1408, 192, HGEMM_BF16, "tt"},
    {256, 256, 448, HGEMM_F16, "tt"},
};

TEST(Seed, kernels_are_right)
{
    DeviceOptions options;
    options.baselines = false;
    options.max_sets = 1;
    BenchDevice device("this", options);
    size_t checked = 0;
    for (const OtherKernel& kernel : hg::seed::open_kernels())
        for (const Product& product : products) {
            SCOPED_TRACE(kernel.name + " " + product.shape());
            ASSERT_TRUE(kernel.serves(product));
            const Operands operands = device.operands(product)[0];
            const Verdict verdict =
                device.check(device.expect(product, operands), operands, 1, [&](const Operands& o) {
                    kernel.multiply(product, o, device.timer().stream());
                });
            EXPECT_LE(verdict.error, 1);
            EXPECT_TRUE(verdict.guards_intact);
            ++checked;
        }
    EXPECT_EQ(checked, 12u);
}

TEST(Seed, other_products_are_refused)
{
    for (const OtherKernel& kernel : hg::seed::open_kernels()) {
        EXPECT_FALSE(kernel.serves({128, 128, 128, HGEMM_F16, "tn"}));
        EXPECT_FALSE(kernel.serves({128, 192, 128, HGEMM_F16, "tt"}));
        EXPECT_FALSE(kernel.serves({128, 128, 120, HGEMM_F16, "tt"}));
    }
}

}  // namespace
