// Symmetric results by kernels that compute one half of D.
#include "../conformance.hpp"
#include "../triangle_rules.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hg::test {
namespace {

// As large kernels need them, each type with all of the other forms.
GemmCase case_of(unsigned form, int64_t n, int64_t k)
{
    GemmCase g = triangle_case(form, n, k);
    g.type_ab = g.type_c = g.type_d = halves[form / 4 % 2];
    g.aligned = true;
    return g;
}

std::vector<GemmCase> cases()
{
    const std::vector<int64_t> sizes = thinning() > 1
                                           ? std::vector<int64_t>{8, 136, 328}
                                           : std::vector<int64_t>{8, 64, 72, 128, 136, 256, 328, 1112};
    std::vector<GemmCase> cases;
    for (const int64_t n : sizes)
        for (unsigned form = 0; form < 4; ++form) {
            GemmCase g =
                case_of(static_cast<unsigned>(cases.size()), n, 136 * static_cast<int64_t>(form) + 56);
            cases.push_back(g);
            g.beta = -1;
            g.alpha = 0.5f;
            g.device_scalars = form & 1;
            if (form > 0) {
                g.batch = Batch::Strided;
                g.batch_count = form;
            }
            cases.push_back(g);
            g.in_place = false;
            g.type_c = HGEMM_F32;
            g.c.gap = 8;
            g.d.gap = 16;
            cases.push_back(g);
        }
    return cases;
}

bool is_served(Library& library, const GemmCase& g)
{
    const Trial trial(g, library.memory());
    return library.explain(trial.args()).find("kernel=sm90_triangle") != std::string::npos;
}

}  // namespace

TEST(DeviceKernels, triangle)
{
    NEEDS_BACKEND("sm90");
    for (const char* way : {"/stream_k=0", "/stream_k=1"}) {
        Library library(Cuda::get(), "", std::string("sm90_triangle_128x128") + way);
        ASSERT_TRUE(library.created()) << library.story();
        Suite suite(library);
        const bool streams = std::string_view(way) == "/stream_k=1";
        int served = 0;
        for (const GemmCase& g : cases())
            if (is_served(library, g)) {
                suite.check(g);
                if (streams)
                    suite.check(g);  // words in memory are 0 again
                ++served;
            }
        if (!streams) {
            EXPECT_EQ(served, static_cast<int>(cases().size()));
        }
        EXPECT_GT(served, 20) << way;
        for (const std::string& failure : suite.failures())
            ADD_FAILURE() << way << ": " << failure;
    }
}

}  // namespace hg::test
