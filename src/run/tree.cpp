#include "src/run/tree.hpp"

#include "src/base/status.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/dispatch.hpp"
#include "src/plan/tree.hpp"
#include "src/run/composite.hpp"
#include "src/run/execute.hpp"
#include "src/run/reserved.hpp"
#include "src/tuning/key.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdint>
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
    return product_of_branches(problem, tree, first, 0, tree.sums_of(first, any_place()));
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
            handle, product_of_branches(problem, tree, part, 0, tree.sums_of(part, any_place())), of_part);
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
Status plan_all(hg::Handle& handle, const Problem& problem, int64_t branches, Tree& tree, Needs& needs)
{
    if (find_adder(handle) == handle.backend_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has the tree mode");
    return plan_in_workspace(handle, needs, [&](size_t room, Needs& of_products, size_t& kept) {
        const Status status = plan_tree(problem, leaves_of(handle, problem), branches, room, tree);
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

// Products write the sums of branches, and another kernel reads them: together three times as long as
// memory would take to read them once (H200, leaves of 22 products of 64 to 8192 rows).
double us_of_sums(const hg::Handle& handle, const Problem& problem, int64_t branches)
{
    constexpr double us_of_launch = 2, reads = 3;
    const double bytes = static_cast<double>(branches * problem.batch * bytes_of(Type::F32)) *
                         static_cast<double>(problem.m) * static_cast<double>(problem.n);
    const auto bandwidth = static_cast<double>(handle.device.memory_bandwidth);
    return us_of_launch + (bandwidth > 0 ? 1e6 * reads * bytes / bandwidth : 0);
}

// How many branches have sums in the workspace, and the time that this takes.
struct Branching {
    int64_t branches;  // 0: there is no such way
    double us;
    bool forced;
};

// By kernels that add up the leaves of a branch, or of the whole, where the sums of all of D have room.
Branching by_kernels(hg::Handle& handle, const Problem& problem, int64_t branches)
{
    Tree tree{};
    const bool whole = branches == 1;
    if (!whole && (plan_tree(problem, leaves_of(handle, problem), branches, handle.workspace().bytes / 2,
                             tree) != ok ||
                   tree.rows < problem.m || tree.columns < problem.n))
        return {};
    const Reserved reserved(handle, tree.sums_bytes);
    Plan plan{};
    if (!try_plan(whole ? with_leaves(handle, problem) : first_product(problem, tree), handle.device,
                  handle.planning_options(), handle.served_by(), plan) ||
        plan.workspace > handle.workspace().bytes)
        return {};
    return {branches, plan.predicted_us + (whole ? 0 : us_of_sums(handle, problem, branches)),
            plan.why == Why::Forced};
}

// Branches of several leaves are of one problem: several have more tiles, and pointer arrays take a launch
// for each branch.
bool may_have_branches(const hg::Handle& handle, const Problem& p)
{
    return p.batch == 1 && !p.has_arrays() && find_adder(handle) < handle.backend_count;
}

// As many as give each SM a tile of 128 x 128, else 1. If that are fewer than eight, one kernel has tiles
// of 128 x 64 for all SMs, each with all leaves, if there are no more than 16. That is as fast, though the
// model expects 1.4 times as long (H200, 256 x 4096 x 14336). With more leaves two branches take 72 us in
// place of 88 (1024 x 1024 x 16384), and 130 in place of 226 (32768).
int64_t most_branches(const hg::Handle& handle, const Problem& p)
{
    constexpr int64_t tile = 128, leaves_of_tile = 16;
    const int64_t rows = (p.m + tile - 1) / tile, columns = (p.n + tile - 1) / tile,
                  sms = handle.sm_count(), least = leaves_of(handle, p) > leaves_of_tile ? 2 : 8;
    if (!may_have_branches(handle, p) || std::max(rows, columns) > sms || least * rows * columns > sms)
        return 1;
    const auto for_all = static_cast<uint64_t>(sms / (rows * columns));
    return std::min(static_cast<int64_t>(std::bit_floor(for_all)), leaves_of(handle, p) / 2);
}

// The fastest way by kernels that add up leaves: by one for the whole, by most_branches(), or by fewer as
// long as these are faster.
Branching best_by_kernels(hg::Handle& handle, const Problem& problem)
{
    const int64_t leaves = leaves_of(handle, problem), asked = handle.options.branches;
    if (asked > 1)
        return may_have_branches(handle, problem) && asked < leaves && leaves % asked == 0
                   ? by_kernels(handle, problem, asked)
                   : Branching{};
    Branching best = by_kernels(handle, problem, 1);
    if (asked == 1 || best.forced)
        return best;
    for (int64_t branches = most_branches(handle, problem); branches > 1; branches /= 2) {
        const Branching next = by_kernels(handle, problem, branches);
        if (next.branches > 0 && best.branches > 0 && next.us >= best.us)
            break;
        if (next.branches > 0)
            best = next;
    }
    return best;
}

// Are products of the leaves and their sum faster than that?
bool are_leaves_faster(hg::Handle& handle, const Problem& problem, const Branching& best)
{
    const KeptError kept;
    const int64_t leaves = leaves_of(handle, problem);
    const double us = us_of_sums(handle, problem, leaves);
    Tree tree;
    Needs needs;
    return !best.forced && us < best.us && plan_all(handle, problem, leaves, tree, needs) == ok &&
           needs.bytes <= handle.workspace().bytes && needs.predicted_us + us < best.us;
}

Status search_branches(hg::Handle& handle, const Problem& problem, int64_t& branches)
{
    if (const Status status = check_tree_problem(problem); status != ok)
        return status;
    const Branching best = best_by_kernels(handle, problem);
    const int64_t leaves = leaves_of(handle, problem), asked = handle.options.branches;
    branches = best.branches;
    if (asked > 0 && asked != leaves)
        return branches > 0
                   ? ok
                   : fail(HGEMM_STATUS_NOT_SUPPORTED, "no kernel serves this problem with /branches=%d",
                          handle.options.branches);
    if (best.branches == 0 || are_leaves_faster(handle, problem, best))
        branches = leaves;
    return ok;
}

// The same, which is found once. In the default mode no kernel adds up leaves.
Status find_branches(hg::Handle& handle, const Problem& problem, int64_t& branches)
{
    branches = leaves_of(handle, problem);
    if (handle.options.mode != Mode::Tree)
        return ok;
    if (const Plan* const known = handle.cache->find_plan(problem, handle.workspace())) {
        branches = known->tree_branches;
        return ok;
    }
    const Status status = search_branches(handle, problem, branches);
    Plan found{};
    found.tree_branches = branches;
    if (status == ok)
        handle.cache->keep_plan(problem, handle.workspace(), found);
    return status;
}

// By one kernel, or by products of branches and their sum.
struct TreeWay {
    Plan kernel{};  // backend: null if it is not by a kernel
    Tree tree{};    // only where there is none
    Needs needs;
};

Status find_tree_way(hg::Handle& handle, const Problem& problem, TreeWay& way)
{
    int64_t branches = 0;
    Status status = find_branches(handle, problem, branches);
    if (status == ok && branches > 1)
        return plan_all(handle, problem, branches, way.tree, way.needs);
    if (status == ok)
        status = decide(handle, with_leaves(handle, problem), way.kernel);
    way.needs = {way.kernel.workspace, way.kernel.counts, way.kernel.predicted_us};
    return status;
}

// Products of all branches of a part, then their sum.
Status run_branches(hg::Handle& handle, const Problem& problem, const Tree& tree, const TreePart& part)
{
    auto* const sums = static_cast<float*>(handle.workspace().ptr);
    const Reserved reserved(handle, tree.sums_bytes);
    Status status = ok;
    for (int64_t i = 0; status == ok && i < tree.products_of_part(); ++i)
        status = run_part(handle, product_of_branches(problem, tree, part, i, tree.sums_of(part, sums)));
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
    if (const Status status = decide(handle, first_product(problem, tree), decided); status != ok)
        return status;
    char product[512], in_branches[48] = "";
    decided.print(product, sizeof product);
    const bool of_leaves = tree.branch_leaves() == 1;
    constexpr const char* nouns[2][2] = {{"branches", "branch"}, {"leaves", "leaf"}};
    if (!of_leaves)
        std::snprintf(in_branches, sizeof in_branches, " in %" PRId64 " branches", tree.branches);
    std::snprintf(text, length,
                  "tree of %" PRId64 " leaves of k=%" PRId64 "%s workspace=%zu, added up by %s after "
                  "products of %s %s for %" PRId64 " x %" PRId64 " of %" PRId64 " problems, each %s",
                  tree.leaves, problem.k / tree.leaves, in_branches, way.needs.bytes,
                  handle.backends[find_adder(handle)]->name, tree.by_branch ? "one" : "all",
                  nouns[of_leaves][tree.by_branch], tree.rows, tree.columns, tree.problems, product);
    return ok;
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

// What products of leaves are tuned by.
std::string key_of_leaves(const hg::Handle& handle, const Problem& problem, const TreeWay& way)
{
    const bool has_key = handle.log.wants(LogLevel::Plan) && handle.context && !way.kernel.backend &&
                         way.tree.branch_leaves() == 1;
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
    return for_each_part(problem, way.tree, Parts::All, [&](const TreePart& part) {
        return run_branches(handle, problem, way.tree, part);
    });
}

bool is_one_kernel(hg::Handle& handle, const Problem& problem, Problem& whole)
{
    int64_t branches = 0;
    whole = with_leaves(handle, problem);
    return find_branches(handle, problem, branches) == ok && branches == 1;
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
    if (problem.leaves > 0)
        return false;  // it is a part of one
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
