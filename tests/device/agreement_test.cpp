// Every kernel adds in the same order with the same instruction's arithmetic: on one device they agree
// bit for bit, which is what lets a batch-invariant handle use several.
#include "../conformance.hpp"
#include "../trial.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

namespace hg::test {
namespace {

std::vector<GemmCase> agreement_cases()
{
    const bool is_slow = thinning() > 1;
    constexpr int slow_step = 7;  // of 24 cases, on a slow device: each type, transpose and kind of data
    int seen = 0;
    std::vector<GemmCase> cases;
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (const hgemm_op_t transa : {HGEMM_NO_TRANS, HGEMM_TRANS})
            for (const hgemm_op_t transb : {HGEMM_NO_TRANS, HGEMM_TRANS})
                for (const Data data : {Data::Normal, Data::Wide, Data::Cancelling}) {
                    GemmCase g;
                    g.type_ab = type;
                    g.type_c = g.type_d = HGEMM_F32;
                    g.transa = transa;
                    g.transb = transb;
                    // Past the edge of a tile, and past several steps of k.
                    g.m = is_slow ? 136 : 264;
                    g.n = is_slow ? 104 : 136;
                    g.k = is_slow ? 328 : 1000;
                    g.data = data;
                    if (!is_slow || seen++ % slow_step == 0)
                        cases.push_back(g);
                }
    return cases;
}

TEST(DeviceKernels, agree_bit_for_bit)
{
    NEEDS_GPU();
    int kernels = 0;
    std::vector<std::vector<double>> first;
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name);
        if (!library.created() || shares_k_among_warps(name))
            continue;
        SCOPED_TRACE(name);
        ASSERT_TRUE(library.set_batch_invariant(true)) << library.story();  // no sum over slices of k
        ++kernels;
        size_t index = 0, served = 0;
        for (const GemmCase& g : agreement_cases()) {
            if (index == first.size())
                first.emplace_back();
            Trial trial(g, library.memory());
            trial.upload();
            const hgemm_status_t status = library.run(trial.args());
            if (status == HGEMM_STATUS_NOT_SUPPORTED) {  // some kernels are for some majors alone
                ++index;
                continue;
            }
            ASSERT_EQ(status, HGEMM_STATUS_SUCCESS) << library.story();
            ++served;
            trial.download();
            const std::vector<double> results = trial.results(g.m);
            if (first[index].empty())
                first[index] = results;
            EXPECT_TRUE(results == first[index]) << g.print();
            ++index;
        }
        EXPECT_GE(served, index / 3);
    }
    EXPECT_GE(kernels, 2);
}

}  // namespace
}  // namespace hg::test
