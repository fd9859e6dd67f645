// Tree: the order of sums that HGEMM_MODE_TREE promises, and the products of which such a product is made.
//
// K is cut into halves as long as both are multiples of 64 and at least 512: into `leaves` parts of equal
// size, a power of two. A branch is a leaf, or several that a kernel adds up. Products of the branches
// write fp32 sums to the workspace; Backend::sum_leaves adds them up pairwise, as if each were a leaf. If
// the workspace does not hold the sums of a whole problem, it is done in parts: blocks of rows and columns
// of D.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hg {

// The most K of a product whose K is halved: backends count leaves with so many bits.
constexpr int64_t max_tree_k = int64_t{1} << 26;

constexpr int64_t count_leaves(int64_t k)
{
    constexpr int64_t grain = 64, least = 512;
    int64_t leaves = 1;
    for (; k % (2 * grain) == 0 && k >= 2 * least; k /= 2)
        leaves *= 2;
    return leaves;
}

// In the default mode such a cut is faster where K is very long and D small, so that few CTAs would share
// it: K at least four times as long as D has elements, of which a side has 256 at most. With 32 leaves, or
// 64 of 2048 and more: tests/bench/results/h200_deep_d.csv. Not of pointer arrays, whose leaves are a
// launch each.
constexpr int64_t least_default_leaves = 32, most_default_leaves = 64;
constexpr bool gains_by_leaves(const Problem& p)
{
    constexpr int64_t least_k = 32768, most_rows = 256, k_of_an_element = 4;
    return p.batch == 1 && !p.has_arrays() && least_k <= p.k && p.k <= max_tree_k &&
           std::max(p.m, p.n) <= most_rows && p.k / k_of_an_element >= p.m * p.n &&
           count_leaves(p.k) >= least_default_leaves;
}
constexpr int64_t default_leaves(int64_t k)
{
    constexpr int64_t long_leaf = 2048;
    const bool many = k >= most_default_leaves * long_leaf && count_leaves(k) >= most_default_leaves;
    return many ? most_default_leaves : least_default_leaves;
}

// Where the fp32 sums lie: that of leaf l for element (i, j) of problem z is at ptr[l * leaf_stride +
// z * problem_stride + i * ld + j]. The leaves are those that are left to add up: branches of the tree.
struct LeafSums {
    float* ptr;
    int64_t leaves, leaf_stride, problem_stride, ld;
};

// A block of one problem's D, or several whole problems.
struct TreePart {
    int64_t problem, problems, row, rows, column, columns;
};

struct Tree {
    int64_t leaves;
    int64_t branches, branch_k;  // whose sums go through the workspace
    bool by_branch;  // a product has a branch of several problems; else all branches of one problem
    int64_t problems, rows, columns;  // of a part
    int64_t ld;                       // of the sums
    size_t sums_bytes;

    int64_t branch_leaves() const { return leaves / branches; }
    int64_t products_of_part() const { return by_branch ? branches : 1; }
    LeafSums sums_of(const TreePart& part, float* ptr) const
    {
        return {ptr, branches, part.problems * part.rows * ld, part.rows * ld, ld};
    }
};

// What of a problem trees do not serve; null: nothing.
const char* refusal_of_tree(const Problem& problem);
// The same as a status, and whether K is too large.
Status check_tree_problem(const Problem& problem);

// For a problem with more than one leaf. The sums of a part take `room` bytes at most, but a part has at
// least eight rows and columns. `leaves`: a power of two, count_leaves() or fewer; `branches`: another one,
// as many as leaves or fewer.
Status plan_tree(const Problem& problem, int64_t leaves, int64_t branches, size_t room, Tree& tree);

// All: for what runs. OfEachShape: some, beside which all others have the same size and alignment.
enum class Parts { All, OfEachShape };

// The parts begin at multiples of `step`: the first eight have all alignments to 16 bytes that there are,
// and the last one may be smaller.
constexpr int64_t next_part(int64_t at, int64_t step, int64_t end, Parts parts)
{
    constexpr int64_t alignments = 8;
    const int64_t last = (end - 1) / step * step;
    return parts == Parts::OfEachShape && at < last && at >= (alignments - 1) * step ? last : at + step;
}

// Calls visit(part), up to the first failure.
template <typename Visit>
Status for_each_part(const Problem& p, const Tree& tree, Parts parts, Visit visit)
{
    Status status = ok;
    for (int64_t z = 0; status == ok && z < p.batch; z = next_part(z, tree.problems, p.batch, parts))
        for (int64_t i = 0; status == ok && i < p.m; i = next_part(i, tree.rows, p.m, parts))
            for (int64_t j = 0; status == ok && j < p.n; j = next_part(j, tree.columns, p.n, parts))
                status = visit(TreePart{z, std::min(tree.problems, p.batch - z), i,
                                        std::min(tree.rows, p.m - i), j, std::min(tree.columns, p.n - j)});
    return status;
}

// Product number `index` of a part.
Problem product_of_branches(const Problem& problem, const Tree& tree, const TreePart& part, int64_t index,
                            const LeafSums& sums);
// What is left to do with a part's sums: beta * C, bias, activation.
Problem output_of(const Problem& problem, const TreePart& part);

}  // namespace hg
