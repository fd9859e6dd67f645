// Small results whose K is cut into more slices than a cluster has CTAs: all slices of a tile add up in
// global memory.
#include "../conformance.hpp"
#include "gpu.hpp"
#include "src/tools/support/kernel_names.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace hg::test {
namespace {

constexpr int max_slices = 60;

// The last slice of 60 has a K tile that is not whole.
std::vector<GemmCase> cases_of(int split)
{
    struct Shape {
        int64_t m, n;
    };
    const bool is_slow = thinning() > 1;
    const std::vector<Shape> shapes = is_slow ? std::vector<Shape>{{40, 24}}
                                              : std::vector<Shape>{{64, 64}, {40, 24}, {104, 200}, {1, 72}};
    std::vector<GemmCase> cases;
    for (const Shape& shape : shapes) {
        const size_t form = cases.size() + static_cast<size_t>(split);
        GemmCase g;
        g.layout = form & 1 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
        g.transa = form & 4 ? HGEMM_TRANS : HGEMM_NO_TRANS;
        g.transb = form & 8 ? HGEMM_TRANS : HGEMM_NO_TRANS;
        g.type_ab = g.type_c = g.type_d = halves[form % 2];
        g.m = shape.m;
        g.n = shape.n;
        g.k = 64 * max_slices - 24;
        g.beta = form & 1 ? 1 : 0;
        g.aligned = true;
        g.data = Data::Normal;
        g.seed = form;
        cases.push_back(g);
    }
    return cases;
}

bool has_slices(Library& library, const GemmCase& g, int split)
{
    const Trial trial(g, library.memory());
    return library.explain(trial.args()).find(" split=" + std::to_string(split) + " ") != std::string::npos;
}

}  // namespace

TEST(DeviceKernels, many_slices)
{
    NEEDS_GPU();
    int kernels = 0;
    for (const std::string& name : kernel_names()) {
        if (name.find("splitk_global") == std::string::npos)
            continue;  // a handle for each of the others would take a minute
        int served = 0;
        for (const int split : {20, 40, max_slices})
            for (const char* swap_ab : {"/swap_ab=0", "/swap_ab=1"}) {
                Library library(Cuda::get(), "", name + "/split=" + std::to_string(split) + swap_ab);
                if (!library.created())
                    continue;
                Suite suite(library);
                for (const GemmCase& g : cases_of(split))
                    if (has_slices(library, g, split)) {
                        suite.check(g);
                        suite.check(g);  // words in memory are 0 again
                        ++served;
                    }
                for (const std::string& failure : suite.failures())
                    ADD_FAILURE() << name << "/split=" << split << swap_ab << ": " << failure;
            }
        if (served > 0)
            std::printf("%-32s %d products\n", name.c_str(), served);
        kernels += served > 0;
    }
    if (names_all_kernels()) {
        EXPECT_EQ(kernels > 0, Cuda::get()->cc() == 90);
    }
}

}  // namespace hg::test
