// The plan of tree mode: leaves, branches, parts, and what a plan needs to see of them.
#include "hgemm.h"
#include "src/plan/tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hg {
namespace {

TEST(Tree, HalvesK)
{
    const std::pair<int64_t, int64_t> leaves[] = {{0, 1},
                                                  {1, 1},
                                                  {512, 1},
                                                  {1000, 1},
                                                  {1023, 1},
                                                  {1024, 2},
                                                  {1088, 1},
                                                  {1536, 2},
                                                  {2048, 4},
                                                  {4096, 8},
                                                  {5120, 8},
                                                  {7168, 8},
                                                  {11008, 4},
                                                  {14336, 16},
                                                  {28672, 32},
                                                  {65536, 128},
                                                  {65600, 1},
                                                  {65664, 2},
                                                  {max_tree_k, int64_t{1} << 17}};
    for (const auto& [k, count] : leaves)
        EXPECT_EQ(count_leaves(k), count) << k;
}

Problem problem_of(int64_t m, int64_t n, int64_t k, int64_t batch)
{
    Problem p{};
    p.m = m;
    p.n = n;
    p.k = k;
    p.batch = batch;
    p.type_ab = Type::F16;
    p.a = {reinterpret_cast<void*>(uintptr_t{0x1002}), nullptr, k + 1, 1, m * (k + 1) + 3, 0};
    p.b = {reinterpret_cast<void*>(uintptr_t{0x2000}), nullptr, k, 1, n * k, 0};
    p.d = {reinterpret_cast<void*>(uintptr_t{0x3000}), nullptr, n, m * n, Type::F16, 0};
    p.alpha = 1;
    return p;
}

// Size and alignment of a part's A and B, which lie at odd places.
using Shape = std::tuple<int64_t, int64_t, int64_t, uintptr_t, uintptr_t>;

std::set<Shape> shapes(const Problem& p, const Tree& tree, Parts parts, std::vector<int>* covered)
{
    std::set<Shape> found;
    const LeafSums sums{};
    const auto visit = [&](const TreePart& part) {
        const Problem leaves = product_of_branches(p, tree, part, 0, sums);
        found.emplace(part.problems, part.rows, part.columns,
                      reinterpret_cast<uintptr_t>(leaves.a.ptr) % 16,
                      reinterpret_cast<uintptr_t>(leaves.b.ptr) % 16);
        for (int64_t z = part.problem; covered && z < part.problem + part.problems; ++z)
            for (int64_t i = part.row; i < part.row + part.rows; ++i)
                for (int64_t j = part.column; j < part.column + part.columns; ++j)
                    ++covered->at(static_cast<size_t>((z * p.m + i) * p.n + j));
        return ok;
    };
    EXPECT_EQ(for_each_part(p, tree, parts, visit), ok);
    return found;
}

TEST(Tree, PartsCoverAllAndPlansSeeEachShape)
{
    int by_branch = 0, in_rows = 0, in_columns = 0;
    for (const int64_t m : {1, 5, 37, 300})
        for (const int64_t n : {1, 24, 203, 700})
            for (const int64_t batch : {1, 3, 50})
                for (const int64_t elements : {1, 64, 100, 1000, 9000, 300'000}) {
                    const Problem p = problem_of(m, n, 2048, batch);
                    Tree tree{};
                    const auto room = static_cast<size_t>(elements * 4 * 4);
                    ASSERT_EQ(plan_tree(p, count_leaves(p.k), count_leaves(p.k), room, tree), ok);
                    std::vector<int> covered(static_cast<size_t>(m * n * batch));
                    const std::set<Shape> all = shapes(p, tree, Parts::All, &covered);
                    EXPECT_EQ(shapes(p, tree, Parts::OfEachShape, nullptr), all)
                        << m << " " << n << " " << batch << " " << elements;
                    EXPECT_EQ(std::set<int>(covered.begin(), covered.end()), std::set<int>{1});
                    EXPECT_LE(tree.sums_bytes, std::max<size_t>(1024, room + 255));
                    by_branch += tree.by_branch;
                    in_rows += tree.rows < m;
                    in_columns += tree.columns < n;
                }
    EXPECT_GT(by_branch, 0);
    EXPECT_GT(in_rows, 0);
    EXPECT_GT(in_columns, 0);
}

TEST(Tree, LeavesInTheDefaultMode)
{
    const auto gains = [](int64_t m, int64_t n, int64_t k) {
        return gains_by_leaves(problem_of(m, n, k, 1));
    };
    EXPECT_TRUE(gains(16, 16, 32768) && gains(128, 64, 32768) && gains(256, 256, 262144));
    EXPECT_FALSE(gains(16, 16, 16384) || gains(128, 128, 32768) || gains(257, 1, 65536));
    EXPECT_FALSE(gains(16, 16, 500000)) << "halved five times, but not into multiples of 64";
    EXPECT_FALSE(gains_by_leaves(problem_of(16, 16, 32768, 2)));
    Problem array = problem_of(16, 16, 32768, 1);
    array.d.array = &array.d.ptr;
    EXPECT_FALSE(gains_by_leaves(array));
    EXPECT_EQ(default_leaves(32768), 32);
    EXPECT_EQ(default_leaves(65536), 32);
    EXPECT_EQ(default_leaves(131072), 64);
    EXPECT_EQ(default_leaves(32 * 5000 * 64), 64);
}

TEST(Tree, RefusesWhatItDoesNotServe)
{
    const auto refused = [](const Problem& p, const char* text) {
        Tree tree{};
        EXPECT_EQ(plan_tree(p, count_leaves(p.k), count_leaves(p.k), size_t{1} << 30, tree),
                  HGEMM_STATUS_NOT_SUPPORTED);
        EXPECT_NE(std::string(error_text()).find(text), std::string::npos) << error_text();
    };
    refused(problem_of(1, 1, 2 * max_tree_k, 1), "k = 134217728, at most 67108864");
}

TEST(Tree, PointerArraysRunLeafByLeaf)
{
    void* const pointers[4] = {};
    Problem p = problem_of(16, 24, 1024, 4);
    p.a.array = pointers;
    p.b.array = pointers;
    p.d.array = pointers;
    for (const size_t room : {size_t{1} << 20, size_t{2048}}) {
        Tree tree{};
        ASSERT_EQ(plan_tree(p, 2, 2, room, tree), ok) << error_text();
        EXPECT_TRUE(tree.by_branch);
        EXPECT_EQ(tree.problems, room > 2048 ? 4 : 1);
        const TreePart part{2, 1, 8, 8, 16, 8};
        const Problem leaf = product_of_branches(
            p, tree, part, 1, tree.sums_of(part, reinterpret_cast<float*>(uintptr_t{256})));
        EXPECT_EQ(leaf.a.array, pointers + 2);
        EXPECT_EQ(leaf.a.offset, 8 * p.a.row_stride + 512);
        EXPECT_EQ(leaf.b.array, pointers + 2);
        EXPECT_EQ(leaf.b.offset, 16 * p.b.row_stride + 512);
        const Problem output = output_of(p, part);
        EXPECT_EQ(output.d.array, pointers + 2);
        EXPECT_EQ(output.d.offset, 8 * p.d.ld + 16);
    }
}

TEST(Tree, BranchesAreTreesOfTheirOwn)
{
    const Problem p = problem_of(16, 24, 8192, 1);
    for (const int64_t branches : {2, 4, 16}) {
        Tree tree{};
        ASSERT_EQ(plan_tree(p, 16, branches, size_t{1} << 20, tree), ok) << error_text();
        const TreePart part{0, 1, 0, 16, 0, 24};
        const LeafSums sums = tree.sums_of(part, reinterpret_cast<float*>(uintptr_t{256}));
        const Problem product = product_of_branches(p, tree, part, 0, sums);
        EXPECT_EQ(product.k, 8192 / branches);
        EXPECT_EQ(product.batch, branches);
        EXPECT_EQ(product.leaves, 16 / branches);
        EXPECT_EQ(product.a.batch_stride, product.k);
        EXPECT_EQ(product.d.batch_stride, 16 * 24);
        EXPECT_EQ(product.d.type, Type::F32);
        EXPECT_EQ(sums.leaves, branches);
        EXPECT_EQ(tree.sums_bytes, static_cast<size_t>(branches * 16 * 24 * 4));
    }
}

// Of problems of any size a plan looks at few parts.
TEST(Tree, PlansAreQuick)
{
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    ASSERT_EQ(hgemm_set_mode(handle, HGEMM_MODE_TREE), HGEMM_STATUS_SUCCESS);
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;
    args.m = int64_t{1} << 31;
    args.n = int64_t{1} << 16;
    args.k = 4096;
    args.lda = args.k;
    args.ldb = args.ldd = args.n;
    args.batch_count = 1000;
    args.stride_d = args.m * args.n;
    size_t bytes = 0;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(hgemm_workspace_size(handle, &args, &bytes), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    EXPECT_GT(bytes, 0u);
    hgemm_destroy(handle);
}

}  // namespace
}  // namespace hg
