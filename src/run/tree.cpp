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
Status find_needs(hg::Handle& handle, const Problem& problem, const Tree& tree, Needs& needs)
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

// Half of the workspace is for sums, the rest for the products. If that is too little for these, sums get
// what they leave, and then the smallest block.
Status plan_all(hg::Handle& handle, const Problem& problem, Tree& tree, Needs& needs)
{
    if (find_adder(handle) == handle.backend_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has the tree mode");
    const size_t bytes = handle.workspace().bytes;
    size_t room = bytes / 2;
    Status status = ok;
    for (int attempt = 0; status == ok && attempt < 3; ++attempt) {
        needs = {};
        status = plan_tree(problem, room, tree);
        if (status == ok)
            status = find_needs(handle, problem, tree, needs);
        room = attempt == 0 && needs.bytes < bytes ? bytes - needs.bytes : 0;
        needs.bytes += tree.sums_bytes;
        if (needs.bytes <= bytes)
            break;
    }
    return status;
}

Status prepare_planned(hg::Handle& handle, const Problem& problem, Tree& tree)
{
    Needs needs;
    const Status status = plan_all(handle, problem, tree, needs);
    return status == ok ? provide(handle, needs, "in tree mode") : status;
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

Status check_tree(hg::Handle& handle, const Problem& problem, size_t& bytes)
{
    Tree tree;
    Needs needs;
    const Status status = plan_all(handle, problem, tree, needs);
    bytes = needs.bytes;
    return status;
}

Status prepare_tree(hg::Handle& handle, const Problem& problem)
{
    Tree tree;
    return prepare_planned(handle, problem, tree);
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
    Status status = prepare_planned(handle, problem, tree);
    if (status == ok && handle.log.wants(LogLevel::Plan)) {
        char asked[256], planned[640];
        problem.print(asked, sizeof asked);
        status = explain_tree(handle, problem, planned, sizeof planned);
        const std::string key =
            handle.context ? " key=" + tuning_key(first_product(problem, tree), Mode::BatchInvariant) : "";
        handle.log.line("plan %s: %s%s", asked, planned, key.c_str());
    }
    if (status != ok)
        return status;
    return for_each_part(problem, tree, Parts::All,
                         [&](const TreePart& part) { return run_leaves(handle, problem, tree, part); });
}

}  // namespace

bool is_tree(const hg::Handle& handle, const Problem& problem)
{
    return handle.options.mode == Mode::Tree && (problem.groups.of_k || count_leaves(problem.k) > 1);
}

const Composite tree_composite = {check_tree, prepare_tree, run_tree, explain_tree};

}  // namespace hg
