#include "src/run/tree.hpp"

#include "src/plan/backend.hpp"
#include "src/plan/dispatch.hpp"
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

// What all products need beside the sums, and how long they take. Those of a part differ in no size or
// alignment.
Status needs_of_products(hg::Handle& handle, const Problem& problem, const Tree& tree, Needs& needs)
{
    const Reserved reserved(handle, tree.sums_bytes);
    int64_t elements = 0;  // of D, in the parts that are asked about
    const Status status = for_each_part(problem, tree, Parts::OfEachShape, [&](const TreePart& part) {
        Needs of_part;
        const Status planned = needs_of(
            handle, product_of_leaves(problem, tree, part, 0, tree.sums_of(part, any_place())), of_part);
        needs.include(of_part);
        elements += part.problems * part.rows * part.columns;
        return planned;
    });
    const double all = static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                       static_cast<double>(problem.n);
    needs.predicted_us *=
        static_cast<double>(tree.products_of_part()) * all / static_cast<double>(elements);
    return status;
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

// The problem as a kernel is asked for it.
Problem with_leaves(const hg::Handle& handle, const Problem& problem)
{
    Problem whole = problem;
    whole.leaves = leaves_of(handle, problem);
    return whole;
}

// Products write the sums of leaves, and another kernel reads them: together three times as long as memory
// would take to read them once (H200, 22 products of 64 to 8192 rows).
bool is_faster(const hg::Handle& handle, const Problem& problem, const Plan& kernel, const Tree& tree,
               const Needs& of_parts)
{
    constexpr double us_of_launch = 2, reads = 3;
    const double sums = static_cast<double>(tree.leaves * problem.batch * bytes_of(Type::F32)) *
                        static_cast<double>(problem.m) * static_cast<double>(problem.n);
    const auto bandwidth = static_cast<double>(handle.device.memory_bandwidth);
    if (of_parts.bytes > handle.workspace().bytes)
        return true;
    return of_parts.predicted_us > 0 && bandwidth > 0 &&
           kernel.predicted_us < of_parts.predicted_us + 1e6 * reads * sums / bandwidth + us_of_launch;
}

// Leaves plan.backend null where no kernel serves the whole problem, or products of the leaves and their
// sum are faster.
Status search_tree_kernel(hg::Handle& handle, const Problem& problem, const Problem& whole, Plan& plan)
{
    Plan found{};
    Status status = check_tree_problem(problem);
    if (status != ok ||
        !try_plan(whole, handle.device, handle.planning_options(), handle.served_by(), found) ||
        found.workspace > handle.workspace().bytes)
        return status;
    Tree tree;
    Needs of_parts;
    const bool forced = found.why == Why::Forced;
    if (!forced)
        status = plan_all(handle, problem, tree, of_parts);
    if (forced || (status == ok && is_faster(handle, problem, found, tree, of_parts)))
        plan = found;
    return status;
}

// The same, which is found once. In the default mode there is no such kernel.
Status find_tree_kernel(hg::Handle& handle, const Problem& problem, Plan& plan)
{
    plan = {};
    if (handle.options.mode != Mode::Tree)
        return ok;
    const Problem whole = with_leaves(handle, problem);
    if (const Plan* const known = handle.cache->find_plan(whole, handle.workspace())) {
        plan = *known;
        return ok;
    }
    const Status status = search_tree_kernel(handle, problem, whole, plan);
    if (status == ok)
        handle.cache->keep_plan(whole, handle.workspace(), plan);
    return status;
}

// By one kernel, or by products of the leaves and their sum.
struct TreeWay {
    Plan kernel{};  // backend: null if it is not by a kernel
    Tree tree{};    // only where there is none
    Needs needs;
};

Status find_tree_way(hg::Handle& handle, const Problem& problem, TreeWay& way)
{
    const Status status = find_tree_kernel(handle, problem, way.kernel);
    if (status != ok || !way.kernel.backend)
        return status == ok ? plan_all(handle, problem, way.tree, way.needs) : status;
    way.needs = {way.kernel.workspace, way.kernel.counts, way.kernel.predicted_us};
    return ok;
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
    TreeWay way;
    const Status status = find_tree_way(handle, problem, way);
    needs = way.needs;
    return status;
}

Status explain_parts(hg::Handle& handle, const Problem& problem, const TreeWay& way, char* text,
                     size_t length)
{
    const Tree& tree = way.tree;
    const Reserved reserved(handle, tree.sums_bytes);
    Plan decided;
    const Status status = decide(handle, first_product(problem, tree), decided);
    char product[512];
    decided.print(product, sizeof product);
    std::snprintf(
        text, length,
        "tree of %" PRId64 " leaves of k=%" PRId64 " workspace=%zu, added up by %s after products "
        "of %s for %" PRId64 " x %" PRId64 " of %" PRId64 " problems, each %s",
        tree.leaves, tree.leaf_k, way.needs.bytes, handle.backends[find_adder(handle)]->name,
        tree.by_leaf ? "one leaf" : "all leaves", tree.rows, tree.columns, tree.problems, product);
    return status;
}

Status explain_tree(hg::Handle& handle, const Problem& problem, char* text, size_t length)
{
    TreeWay way;
    const Status status = find_tree_way(handle, problem, way);
    if (status != ok || !way.kernel.backend)
        return status == ok ? explain_parts(handle, problem, way, text, length) : status;
    const int64_t leaves = leaves_of(handle, problem);
    char plan[512];
    way.kernel.print(plan, sizeof plan);
    std::snprintf(text, length, "tree of %" PRId64 " leaves of k=%" PRId64 ", %s", leaves,
                  problem.k / leaves, plan);
    return ok;
}

std::string key_of_leaves(const hg::Handle& handle, const Problem& problem, const TreeWay& way)
{
    const bool has_key = handle.log.wants(LogLevel::Plan) && handle.context && !way.kernel.backend;
    return has_key ? " key=" + tuning_key(first_product(problem, way.tree), handle.planning_options().mode)
                   : "";
}

Status run_tree(hg::Handle& handle, const Problem& problem)
{
    TreeWay way;
    Status status = find_tree_way(handle, problem, way);
    if (status == ok)
        status = provide(handle, tree_composite, way.needs);
    if (status != ok)
        return status;
    log_composite(handle, tree_composite, problem, key_of_leaves(handle, problem, way));
    if (way.kernel.backend)
        return run_plan(handle, with_leaves(handle, problem), way.kernel);
    return for_each_part(problem, way.tree, Parts::All,
                         [&](const TreePart& part) { return run_leaves(handle, problem, way.tree, part); });
}

bool is_one_kernel(hg::Handle& handle, const Problem& problem, Problem& whole)
{
    Plan kernel;
    if (find_tree_kernel(handle, problem, kernel) != ok || !kernel.backend)
        return false;
    whole = with_leaves(handle, problem);
    return true;
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

const Composite tree_composite = {.what = "in tree mode",
                                  .check = check_tree,
                                  .run = run_tree,
                                  .explain = explain_tree,
                                  .is_one_kernel = is_one_kernel};

}  // namespace hg
