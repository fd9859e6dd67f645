// The tensor map of an output: as many columns as are written, in lines of the leading dimension.
#include "arch/common/host/tma.hpp"
#include "devices.hpp"

#include <gtest/gtest.h>

namespace hg {
namespace {

TEST(MatrixMap, HasTheColumnsThatAreWritten)
{
    Problem p = linear_layer(48, 64, 32);
    p.d.ld = 72;
    p.gate.block = 32;
    const driver::TensorMapRequest d = request_of(p.d, Facts(p).output.columns, p, 64, 16);
    EXPECT_EQ(d.size[0], 32u);
    EXPECT_EQ(d.size[1], 48u);
    EXPECT_EQ(d.stride_bytes[0], 2u * 72);
    p.gate.block = 0;
    EXPECT_EQ(request_of(p.d, Facts(p).output.columns, p, 64, 16).size[0], 64u);
}

}  // namespace
}  // namespace hg
