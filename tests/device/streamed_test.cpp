// Stream-K with C. The cluster that completes a tile loads partial sums and C at the same time. A kernel
// that let a part of C be overwritten before every thread had read it was wrong in a third of its launches
// of this size.
#include "../trial.hpp"
#include "gpu.hpp"
#include "src/tools/support/kernel_names.hpp"

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
    g.m = 768;
    g.n = g.k = 2560;
    g.beta = 1;
    g.aligned = true;
    return g;
}

std::vector<double> results(Library& library, Trial& trial, hgemm_type_t type)
{
    trial.fill_c(Trial::data_c(with_c(type)));  // where the result before was
    trial.upload();
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    trial.download();
    return trial.results(trial.args().m);
}

}  // namespace

// The sums are exact, so that they have the same bits as those of whole tiles.
TEST(DeviceKernels, streamed_sums_and_c)
{
    NEEDS_GPU();
    constexpr int launches = 10;
    Library whole(Cuda::get(), "", "/stream_k=0");
    int streamed = 0;
    for (const hgemm_type_t type : {HGEMM_F32, HGEMM_BF16}) {
        Trial trial(with_c(type), whole.memory());
        const std::vector<double> right = results(whole, trial, type);
        for (const std::string& name : kernel_names()) {
            Library library(Cuda::get(), "", name + "/stream_k=1");
            if (!library.created() ||
                library.explain(trial.args()).find(" stream_k=1 ") == std::string::npos)
                continue;
            SCOPED_TRACE(name);
            ++streamed;
            for (int i = 0; i < launches; ++i)
                EXPECT_TRUE(results(library, trial, type) == right) << "launch " << i;
        }
    }
    if (names_all_kernels()) {
        EXPECT_EQ(streamed > 0, Cuda::get()->cc() == 90);
    }
}

}  // namespace hg::test
