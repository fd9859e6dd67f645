// Which way of a tree is expected to be the fastest on an H200: no GPU is needed.
#include "devices.hpp"
#include "src/plan/tree.hpp"
#include "src/run/tree.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hg {
namespace {

constexpr size_t ample_workspace = size_t{192} << 20;

// A handle in tree mode, of which nothing runs.
std::unique_ptr<Handle> tree_handle(size_t workspace = ample_workspace, int branches = 0)
{
    auto handle = std::make_unique<Handle>();
    handle->device = with_memory(h200, 4'800'000'000'000);
    handle->all_sm_count = handle->device.sm_count;
    handle->options.mode = Mode::Tree;
    handle->options.branches = branches;
    handle->cache = std::make_unique<PlanCache>();
    EXPECT_EQ(find_backends(handle->device, handle->options, handle->backends, handle->backend_count), ok);
    handle->own.bytes = workspace;
    handle->own.counter_words = counter_words(handle->device, handle->served_by(), workspace);
    return handle;
}

std::string explained_tree(Handle& handle, const Problem& problem)
{
    char text[1024] = "";
    EXPECT_EQ(tree_composite.explain(handle, problem, text, sizeof text), ok) << error_text();
    return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The number of branches whose sums go through the workspace. Asked twice, since it is kept.
int64_t branches_of(Handle& handle, const Problem& problem)
{
    const std::string text = explained_tree(handle, problem);
    EXPECT_EQ(explained_tree(handle, problem), text);
    Problem whole{};
    const bool is_kernel = tree_composite.is_one_kernel(handle, problem, whole);
    EXPECT_EQ(has(text, "added up by"), !is_kernel) << text;
    const size_t at = text.find(" in ");
    EXPECT_EQ(has(text, "kernel=sm90_tree"), is_kernel || at != text.npos) << text;
    return is_kernel ? 1 : at == text.npos ? count_leaves(problem.k) : std::stoll(text.substr(at + 4));
}

TEST(TreeChoice, BranchesOfADeepKBesideASmallD)
{
    NEEDS_CUDA_BUILD();
    const auto handle = tree_handle();
    for (const int64_t m : {256, 512}) {
        const Problem problem = linear_layer(m, 262144 / m, 16384);
        const int64_t branches = branches_of(*handle, problem);
        EXPECT_GT(branches, 1) << explained_tree(*handle, problem);
        EXPECT_LT(branches, 32) << explained_tree(*handle, problem);
        Needs needs;
        EXPECT_EQ(tree_composite.check(*handle, problem, needs), ok);
        EXPECT_GE(needs.bytes, static_cast<size_t>(4 * branches * 262144));
        EXPECT_LE(needs.bytes, ample_workspace);
    }
    for (const int64_t m : {1, 4096})
        EXPECT_EQ(branches_of(*handle, linear_layer(m, 4096, 4096)), 1) << m;
    for (const int64_t k : {16384, 32768})
        EXPECT_EQ(branches_of(*handle, linear_layer(1024, 1024, k)), 2) << k;
    EXPECT_EQ(branches_of(*handle, linear_layer(1024, 1024, 8192)), 1);
    // Where the model expects too much of one kernel.
    for (const int64_t m : {192, 256})
        EXPECT_EQ(branches_of(*handle, linear_layer(m, 4096, 14336)), 1) << m;
}

TEST(TreeChoice, BranchesHaveRoomForTheirSums)
{
    NEEDS_CUDA_BUILD();
    const Problem problem = linear_layer(512, 512, 16384);
    constexpr size_t sums = size_t{4} * 512 * 512;  // of a branch
    for (const size_t room : {size_t{0}, sums, 3 * sums, 4 * sums, 9 * sums, 64 * sums}) {
        const auto handle = tree_handle(room);
        const int64_t branches = branches_of(*handle, problem);
        if (branches > 1) {
            EXPECT_LE(2 * static_cast<size_t>(branches) * sums, room);
        }
        Needs needs;
        EXPECT_EQ(tree_composite.check(*handle, problem, needs), ok);
        EXPECT_LE(needs.bytes, room);
    }
}

TEST(TreeChoice, BranchesThatAreAskedFor)
{
    NEEDS_CUDA_BUILD();
    Problem problem = linear_layer(512, 512, 16384);
    for (const int branches : {1, 2, 4, 8, 16, 32})
        EXPECT_EQ(branches_of(*tree_handle(ample_workspace, branches), problem), branches);
    Needs needs;
    const auto refused = [&](int branches) {
        const Status status = tree_composite.check(*tree_handle(ample_workspace, branches), problem, needs);
        return status == HGEMM_STATUS_NOT_SUPPORTED && has(error_text(), "/branches=");
    };
    EXPECT_TRUE(refused(3) && refused(64));
    problem.a.row_stride += 1;  // TMA cannot read that
    EXPECT_TRUE(refused(1) && refused(8));
    EXPECT_EQ(branches_of(*tree_handle(), problem), 32);
}

// Several problems, and pointer arrays, are served by one kernel or leaf by leaf.
TEST(TreeChoice, BranchesAreOfOneProblem)
{
    NEEDS_CUDA_BUILD();
    Problem problem = linear_layer(64, 64, 16384);
    problem.batch = 2;
    problem.a.batch_stride = problem.b.batch_stride = 64 * 16384;
    problem.d.batch_stride = 64 * 64;
    EXPECT_FALSE(has(explained_tree(*tree_handle(), problem), "branches"));
    Problem arrays = linear_layer(64, 64, 16384);
    arrays.a.array = &arrays.a.ptr;
    arrays.b.array = &arrays.b.ptr;
    arrays.d.array = &arrays.d.ptr;
    EXPECT_FALSE(has(explained_tree(*tree_handle(), arrays), "branches"));
}

}  // namespace
}  // namespace hg
