// The conformance suite on each kernel of the host backend, through the public functions.
#include "../conformance.hpp"
#include "../exchange_rules.hpp"
#include "../experts_rules.hpp"
#include "../gate_rules.hpp"
#include "../k_groups.hpp"
#include "../library_rules.hpp"
#include "../tree_rules.hpp"
#include "../triangle_rules.hpp"
#include "src/tools/support/kernel_names.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace hg::test {
namespace {

std::unique_ptr<Library> make() { return std::make_unique<Library>(nullptr); }

struct Run {
    std::string kernel;
    Family family;
};

std::vector<Run> runs()
{
    std::vector<Run> all;
    for (const std::string& kernel : kernel_names())
        if (kernel.starts_with("host_"))
            for (const Family& family : families())
                all.push_back({kernel, family});
    return all;
}

class HostConformance : public testing::TestWithParam<Run> {};

TEST_P(HostConformance, holds)
{
    Library library(nullptr, "", GetParam().kernel);
    ASSERT_TRUE(library.created()) << library.story();
    Suite suite(library, thinning());
    GetParam().family.run(suite);
    std::printf("%s\n", suite.summary().c_str());
    EXPECT_TRUE(suite.cases() > 0 || thinning() > 1);
    for (const std::string& failure : suite.failures())
        ADD_FAILURE() << failure;
    if (suite.cases() > 0 && suite.cases() == suite.not_applicable())
        GTEST_SKIP() << GetParam().kernel << " serves none of the cases on this processor";
}

INSTANTIATE_TEST_SUITE_P(, HostConformance, testing::ValuesIn(runs()),
                         [](const auto& info) { return info.param.kernel + "_" + info.param.family.name; });

TEST(HostRules, gemv) { check_gemv(*make()); }
TEST(HostRules, workspace) { check_workspace(*make()); }
TEST(HostRules, sm_count) { check_sm_count(*make()); }
TEST(HostRules, far_offsets) { check_far_offsets(*make()); }
TEST(HostRules, threads) { check_threads(make); }
TEST(HostRules, exchange_sums) { check_exchange_sums(*make()); }
TEST(HostRules, exchange_flags) { check_exchange_flags(*make()); }
TEST(HostRules, exchange_refusals) { check_exchange_refusals(*make()); }
TEST(HostRules, blocks) { check_blocks(*make()); }
TEST(HostRules, late_blocks) { check_late_blocks(*make()); }
TEST(HostRules, exchange_threads) { check_exchange_threads(make); }
TEST(HostRules, experts_routes) { check_routes(*make()); }
TEST(HostRules, experts_workspaces) { check_route_workspaces(*make()); }
TEST(HostRules, experts_gather) { check_gathered_rows(*make()); }
TEST(HostRules, experts_combine) { check_combined_rows(*make()); }
TEST(HostRules, experts_dots) { check_dot_rows(*make()); }
TEST(HostRules, experts_dot_bits) { check_dot_bits(*make()); }
TEST(HostRules, experts_clear) { check_cleared_rows(*make()); }
TEST(HostRules, experts_clear_refusals) { check_clear_refusals(*make()); }
TEST(HostRules, experts_layers) { check_expert_layers(*make()); }
TEST(HostRules, experts_refusals) { check_expert_refusals(*make()); }
TEST(HostRules, tree_bits) { check_tree_bits(*make()); }
TEST(HostRules, tree_results) { check_tree_results(*make()); }
TEST(HostRules, tree_arrays) { check_tree_arrays(*make()); }
TEST(HostRules, tree_refusals) { check_tree_refusals(*make()); }
TEST(HostRules, triangle_results) { check_triangles(*make()); }
TEST(HostRules, triangle_bits) { check_triangle_bits(*make()); }
TEST(HostRules, triangle_symmetry)
{
    for (const char* const kernel : {"host_packed", "host_blocked"}) {
        Library library(nullptr, "host", kernel);
        if (library.created())
            check_triangle_symmetry(library);
    }
}
TEST(HostRules, triangle_workspaces) { check_triangle_workspaces(*make()); }
TEST(HostRules, triangle_refusals) { check_triangle_refusals(*make()); }
TEST(HostRules, gate_results) { check_gates(*make()); }
TEST(HostRules, gate_values) { check_gate_values(*make()); }
TEST(HostRules, gate_bits) { check_gate_bits(*make()); }
TEST(HostRules, gate_aux) { check_gate_aux(*make()); }
TEST(HostRules, gate_workspaces) { check_gate_workspaces(*make()); }
TEST(HostRules, gate_repeats) { check_gate_repeats(*make()); }
TEST(HostRules, gate_refusals) { check_gate_refusals(*make()); }
TEST(HostRules, gate_gradients) { check_gate_gradients(*make()); }
TEST(HostRules, gate_gradient_values) { check_gate_gradient_values(*make()); }
TEST(HostRules, gate_gradient_bits) { check_gate_gradient_bits(*make()); }
TEST(HostRules, gate_gradient_refusals) { check_gate_gradient_refusals(*make()); }
TEST(HostRules, grouped_contiguous) { EXPECT_TRUE(check_grouped(*make(), HGEMM_GROUPED_CONTIGUOUS)); }
TEST(HostRules, grouped_masked) { EXPECT_TRUE(check_grouped(*make(), HGEMM_GROUPED_MASKED)); }
TEST(HostRules, grouped_aux) { check_aux_of_groups(*make()); }
TEST(HostRules, grouped_aux_refusals) { check_aux_refusals(*make()); }
TEST(HostRules, grouped_k) { check_k_groups(*make()); }
TEST(HostRules, grouped_host) { EXPECT_TRUE(check_grouped(*make(), HGEMM_GROUPED_HOST)); }

}  // namespace
}  // namespace hg::test
