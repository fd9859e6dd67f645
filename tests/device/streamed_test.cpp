// Stream-K with C. The cluster that completes a tile loads partial sums and C at the same time: a kernel
// that let a part of C be overwritten before every thread has read it did so here, in one launch of ten to
// three.
#include "../trial.hpp"
#include "gpu.hpp"

#include "../kernel_names.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hg::test {
namespace {

GemmCase with_c(hgemm_type_t type)
{
    GemmCase g;
    g.layout = HGEMM_ROW_MAJOR;
    g.transb = HGEMM_TRANS;
    g.type_ab = HGEMM_BF16;
    g.type_c = g.type_d = type;
    g.m = 512;
    g.n = 4096;
    g.k = 4096;
    g.beta = 1;
    g.aligned = true;
    return g;
}

std::vector<double> results(Library& library, Trial& trial, const GemmCase& g)
{
    trial.upload();
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    trial.download();
    std::vector<double> values;
    for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j)
            values.push_back(trial.result(0, i, j));
    return values;
}

}  // namespace

// The sums are exact, so that they have the same bits as those of whole tiles.
TEST(DeviceKernels, streamed_sums_and_c)
{
    NEEDS_GPU();
    constexpr int launches = 10;
    int streamed = 0;
    for (const hgemm_type_t type : {HGEMM_F32, HGEMM_BF16}) {
        const GemmCase g = with_c(type);
        std::vector<double> whole;
        for (const std::string& name : kernel_names()) {
            Library library(Cuda::get(), "", name + "/stream_k=1");
            Trial trial(g, library.memory());
            if (!library.created() ||
                library.explain(trial.args()).find(" stream_k=1 ") == std::string::npos)
                continue;
            SCOPED_TRACE(name);
            ++streamed;
            if (whole.empty()) {
                Library other(Cuda::get(), "", "/stream_k=0");
                whole = results(other, trial, g);
            }
            for (int i = 0; i < launches; ++i)
                EXPECT_TRUE(results(library, trial, g) == whole) << "launch " << i;
        }
    }
    if (names_all_kernels()) {
        EXPECT_EQ(streamed > 0, Cuda::get()->cc() == 90);
    }
}

}  // namespace hg::test
