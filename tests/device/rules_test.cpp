// What a handle promises beside right results, on every GPU backend.
#include "../exchange_rules.hpp"
#include "../experts_rules.hpp"
#include "../gate_rules.hpp"
#include "../k_groups.hpp"
#include "../library_rules.hpp"
#include "../tree_rules.hpp"
#include "../triangle_rules.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hg::test {
namespace {

class DeviceRules : public testing::TestWithParam<const char*> {};

TEST_P(DeviceRules, gemv)
{
    NEEDS_BACKEND(GetParam());
    check_gemv(*make(GetParam()));
}

TEST_P(DeviceRules, workspace)
{
    NEEDS_BACKEND(GetParam());
    check_workspace(*make(GetParam()));
}

TEST_P(DeviceRules, sm_count)
{
    NEEDS_BACKEND(GetParam());
    check_sm_count(*make(GetParam()));
}

TEST_P(DeviceRules, far_offsets)
{
    NEEDS_BACKEND(GetParam());
    NEEDS_MEMORY(16);
    check_far_offsets(*make(GetParam()));
}

TEST_P(DeviceRules, threads)
{
    NEEDS_BACKEND(GetParam());
    check_threads([] { return make(GetParam()); });
}

TEST_P(DeviceRules, grouped_host)
{
    NEEDS_BACKEND(GetParam());
    EXPECT_TRUE(check_grouped(*make(GetParam()), HGEMM_GROUPED_HOST));
}

TEST_P(DeviceRules, grouped_contiguous)
{
    NEEDS_BACKEND(GetParam());
    EXPECT_TRUE(check_grouped(*make(GetParam()), HGEMM_GROUPED_CONTIGUOUS));
}

TEST_P(DeviceRules, grouped_masked)
{
    NEEDS_BACKEND(GetParam());
    EXPECT_TRUE(check_grouped(*make(GetParam()), HGEMM_GROUPED_MASKED));
}

TEST_P(DeviceRules, grouped_aux)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_aux_of_groups(*library);
    check_aux_refusals(*library);
}

TEST_P(DeviceRules, grouped_k)
{
    NEEDS_BACKEND(GetParam());
    check_k_groups(*make(GetParam()));
}

TEST_P(DeviceRules, tree)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_tree_bits(*library);
    check_tree_results(*library);
    check_tree_arrays(*library);
    check_long_k(*library);
    check_tree_refusals(*library);
}

TEST_P(DeviceRules, exchange)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_exchange_sums(*library);
    check_exchange_flags(*library);
    check_exchange_refusals(*library);
}

TEST_P(DeviceRules, blocks)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_blocks(*library);
    check_late_blocks(*library);
}

TEST_P(DeviceRules, experts_routes)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_routes(*library);
    check_route_workspaces(*library);
}

TEST_P(DeviceRules, experts_rows)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_gathered_rows(*library);
    check_combined_rows(*library);
}

TEST_P(DeviceRules, experts_dots)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_dot_rows(*library);
    check_dot_bits(*library);
}

TEST_P(DeviceRules, experts_clear)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_cleared_rows(*library);
    check_clear_refusals(*library);
}

TEST_P(DeviceRules, experts_calls)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_expert_layers(*library);
    check_expert_refusals(*library);
}

TEST_P(DeviceRules, triangle)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_triangles(*library);
    check_triangle_bits(*library);
    check_triangle_workspaces(*library);
    check_triangle_refusals(*library);
}

TEST_P(DeviceRules, gate_results)
{
    NEEDS_BACKEND(GetParam());
    check_gates(*make(GetParam()));
}

TEST_P(DeviceRules, gate_values)
{
    NEEDS_BACKEND(GetParam());
    check_gate_values(*make(GetParam()));
}

TEST_P(DeviceRules, gate_bits)
{
    NEEDS_BACKEND(GetParam());
    check_gate_bits(*make(GetParam()));
}

TEST_P(DeviceRules, gate_aux)
{
    NEEDS_BACKEND(GetParam());
    check_gate_aux(*make(GetParam()));
}

TEST_P(DeviceRules, gate_gradients)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_gate_gradients(*library);
    check_gate_gradient_values(*library);
    check_gate_gradient_bits(*library);
    check_gate_gradient_refusals(*library);
}

TEST_P(DeviceRules, gate_calls)
{
    NEEDS_BACKEND(GetParam());
    const auto library = make(GetParam());
    check_gate_workspaces(*library);
    check_gate_repeats(*library);
    check_gate_refusals(*library);
}

INSTANTIATE_TEST_SUITE_P(, DeviceRules, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
