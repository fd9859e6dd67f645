#include "src/run/tree.hpp"

#include "src/plan/backend.hpp"
#include "src/plan/tree.hpp"
#include "src/run/composite.hpp"
#include "src/run/execute.hpp"
#include "src/run/reserved.hpp"
#include "src/tuning/key.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>

namespace hg {
namespace {

int find_adder(const hg::Handle& handle) { return find_backend(handle, &Backend::sum_leaves); }

// Where sums count as lying before there is a workspace: plans depend on their alignment alone.
float* any_place() { return reinterpret_cast<float*>(uintptr_t{256}); }

// For what is told of all products.
Problem first_product(const Problem& problem, const Tree& tree)
{
    const TreePart first{0, tree.problems, 0, tree.rows, 0, tree.columns};
    return product_of_leaves(problem, tree, first, 0, tree.sums_of(first, any_place()));
}

// What all products need beside the sums. Those of a part differ in no size or alignment.
Status needs_of_products(hg::Handle& handle, const Problem& problem, const Tree& tree, Needs& needs)
{
    const Reserved reserved(handle, tree.sums_bytes);
    return for_each_part(problem, tree, Parts::OfEachShape, [&](const TreePart& part) {
        Needs of_part;
        const Status status = needs_of(
            handle, product_of_leaves(problem, tree, part, 0, tree.sums_of(part, any_place())), of_part);
        needs.include(of_part);
        return status;
    });
}

int64_t leaves_of(const hg::Handle& handle, const Problem& problem)
{
    return handle.options.mode == Mode::Tree ? count_leaves(problem.k) : default_leaves(problem.k);
}

// The smallest block is the least that sums can have.
Status plan_all(hg::Handle& handle, const Problem& problem, Tree& tree, Needs& needs)
{
    if (find_adder(handle) == handle.backend_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has the tree mode");
    return plan_in_workspace(handle, needs, [&](size_t room, Needs& of_products, size_t& kept) {
        const Status status = plan_tree(problem, leaves_of(handle, problem), room, tree);
        kept = tree.sums_bytes;
        return status == ok ? needs_of_products(handle, problem, tree, of_products) : status;
    });
}

// Products of all leaves of a part, then their sum.
Status run_leaves(hg::Handle& handle, const Problem& problem, const Tree& tree, const TreePart& part)
{
    auto* const sums = static_cast<float*>(handle.workspace().ptr);
    const Reserved reserved(handle, tree.sums_bytes);
    Status status = ok;
    for (int64_t i = 0; status == ok && i < tree.products_of_part(); ++i)
        status = run_part(handle, product_of_leaves(problem, tree, part, i, tree.sums_of(part, sums)));
    const int adder = find_adder(handle);
    return status == ok
               ? handle.backends[adder]->sum_leaves(handle, handle.states[adder], output_of(problem, part),
                                                    tree.sums_of(part, sums))
               : status;
}

Status check_tree(hg::Handle& handle, const Problem& problem, Needs& needs)
{
    Tree tree;
    return plan_all(handle, problem, tree, needs);
}

Status explain_tree(hg::Handle& handle, const Problem& problem, char* text, size_t length)
{
    Tree tree;
    Needs needs;
    Status status = plan_all(handle, problem, tree, needs);
    if (status != ok)
        return status;
    const Reserved reserved(handle, tree.sums_bytes);
    Plan decided;
    status = decide(handle, first_product(problem, tree), decided);
    char product[512];
    decided.print(product, sizeof product);
    std::snprintf(
        text, length,
        "tree of %" PRId64 " leaves of k=%" PRId64 " workspace=%zu, added up by %s after products "
        "of %s for %" PRId64 " x %" PRId64 " of %" PRId64 " problems, each %s",
        tree.leaves, tree.leaf_k, needs.bytes, handle.backends[find_adder(handle)]->name,
        tree.by_leaf ? "one leaf" : "all leaves", tree.rows, tree.columns, tree.problems, product);
    return status;
}

Status run_tree(hg::Handle& handle, const Problem& problem)
{
    Tree tree;
    Needs needs;
    Status status = plan_all(handle, problem, tree, needs);
    if (status == ok)
        status = provide(handle, tree_composite, needs);
    if (status != ok)
        return status;
    log_composite(handle, tree_composite, problem,
                  handle.context
                      ? " key=" + tuning_key(first_product(problem, tree), handle.planning_options().mode)
                      : "");
    return for_each_part(problem, tree, Parts::All,
                         [&](const TreePart& part) { return run_leaves(handle, problem, tree, part); });
}

// Not where a kernel was forced or tuned, or the workspace is small.
bool may_cut_k(const hg::Handle& handle, const Problem& problem)
{
    const auto sums_bytes =
        static_cast<size_t>(most_default_leaves * problem.m * (problem.n + 8)) * sizeof(float);
    return handle.backends[0]->cuts_deep_k && !handle.options.is_forced() && !refusal_of_tree(problem) &&
           2 * sums_bytes <= handle.workspace().bytes &&
           !(handle.tuning && !handle.tuning->find(tuning_key(problem, Mode::Default)).empty());
}

}  // namespace

bool is_tree(const hg::Handle& handle, const Problem& problem)
{
    switch (handle.options.mode) {
    case Mode::Tree: return problem.groups.of_k || count_leaves(problem.k) > 1;
    case Mode::Default: return gains_by_leaves(problem) && may_cut_k(handle, problem);
    default: return false;
    }
}

const Composite tree_composite = {
    .what = "in tree mode", .check = check_tree, .run = run_tree, .explain = explain_tree};

}  // namespace hg
