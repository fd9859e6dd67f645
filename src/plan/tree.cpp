#include "src/plan/tree.hpp"

#include "src/plan/sums.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t min_elements = sums_vector * sums_vector;

// Less than all: whole tiles, or at least whole vectors.
int64_t round_down(int64_t size)
{
    constexpr int64_t tile = 128;
    return size >= tile ? size / tile * tile : size / sums_vector * sums_vector;
}

int64_t round_to_vectors(int64_t size) { return round_up(size, sums_vector); }

// The largest block of up to so many elements, as square as possible: then the fewest elements of A and B
// are read again for other blocks.
void find_block(const Problem& p, int64_t elements, Tree& tree)
{
    const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(elements)));
    const int64_t ld = round_to_vectors(p.n);
    tree.rows = p.m;
    tree.columns = p.n;
    if (ld <= side)
        tree.rows = std::min(p.m, round_down(elements / ld));
    else if (p.m > side)
        tree.rows = round_down(side);
    if (tree.rows > elements / ld)
        tree.columns = round_down(elements / tree.rows);
    tree.ld = round_to_vectors(tree.columns);
}

}  // namespace

const char* refusal_of_tree(const Problem& p)
{
    if (p.is_grouped())
        return "groups whose sizes are in device memory";
    if (p.is_gated())
        return "gates";
    return nullptr;
}

Status check_tree_problem(const Problem& p)
{
    if (const char* const why_not = refusal_of_tree(p))
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "tree mode does not serve %s with k = %" PRId64, why_not,
                    p.k);
    return p.k <= max_tree_k
               ? ok
               : fail(HGEMM_STATUS_NOT_SUPPORTED,
                      "tree mode does not serve k = %" PRId64 ", at most %" PRId64, p.k, max_tree_k);
}

Status plan_tree(const Problem& p, int64_t leaves, int64_t branches, size_t room, Tree& tree)
{
    if (const Status status = check_tree_problem(p); status != ok)
        return status;
    tree.leaves = leaves;
    tree.branches = branches;
    tree.branch_k = p.k / branches;
    const int64_t bytes = branches * int64_t{sizeof(float)};  // of an element of D
    const auto elements = std::clamp<int64_t>(static_cast<int64_t>(room) / bytes, min_elements, max_sums);
    find_block(p, elements, tree);
    const int64_t problem = tree.rows * tree.ld, problems = elements / problem;
    // Launches of either way: products and sums. The second way has whole problems in a part.
    // A pointer array has no stride from branch to branch.
    const bool whole = tree.rows == p.m && tree.columns == p.n;
    tree.by_branch = p.has_arrays() || (whole && p.batch > 1 && problems > 1 &&
                                        (p.batch + problems - 1) / problems * (branches + 1) < p.batch * 2);
    tree.problems = tree.by_branch && whole ? std::min(problems, p.batch) : 1;
    tree.sums_bytes = static_cast<size_t>(round_up(tree.problems * problem * bytes, sums_alignment));
    return ok;
}

Problem product_of_branches(const Problem& p, const Tree& tree, const TreePart& part, int64_t index,
                            const LeafSums& sums)
{
    Problem product{};
    product.m = part.rows;
    product.n = part.columns;
    product.k = tree.branch_k;
    product.leaves = tree.branch_leaves();
    product.type_ab = p.type_ab;
    product.alpha = p.alpha;
    product.alpha_device = p.alpha_device;
    const int64_t k = index * tree.branch_k;
    product.a = p.a.from(part.problem, part.row, k);
    product.b = p.b.from(part.problem, part.column, k);
    float* const to = sums.ptr + index * sums.leaf_stride;
    if (tree.by_branch) {
        product.batch = part.problems;
        product.d = {to, nullptr, sums.ld, sums.problem_stride, Type::F32, 0};
    } else {
        product.batch = tree.branches;
        product.a.batch_stride = tree.branch_k * p.a.k_stride;
        product.b.batch_stride = tree.branch_k * p.b.k_stride;
        product.d = {to, nullptr, sums.ld, sums.leaf_stride, Type::F32, 0};
    }
    return product;
}

Problem output_of(const Problem& p, const TreePart& part)
{
    Problem output = p;
    output.batch = part.problems;
    output.m = part.rows;
    output.n = part.columns;
    output.a = output.b = {};
    output.alpha = 1.0f;
    output.alpha_device = nullptr;
    output.c = p.c.from(part.problem, part.row, part.column);
    output.d = p.d.from(part.problem, part.row, part.column);
    output.aux = p.aux.from(part.problem, part.row, part.column);
    output.bias = p.bias.from(part.problem, part.row, part.column);
    return output;
}

}  // namespace hg
