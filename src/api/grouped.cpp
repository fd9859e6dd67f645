// The C API of grouped GEMMs. Groups described on the host, and all groups on the host backend, run one
// after the other. Sizes in device memory are read by one kernel for all groups.
#include "src/api/grouped.hpp"

#include "src/api/general_form.hpp"
#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"
#include "src/check/group_sizes.hpp"
#include "src/check/request.hpp"
#include "src/run/execute.hpp"
#include "src/run/lending.hpp"
#include "src/run/tree.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace hg {
namespace {

bool is_masked(const hgemm_grouped_args_t& g) { return g.grouping == HGEMM_GROUPED_MASKED; }

int64_t bytes_of_d(const hgemm_grouped_args_t& g) { return bytes_of(static_cast<Type>(g.type_d)); }

Status check_not_negative(const char* name, int64_t size)
{
    return size >= 0 ? ok : fail_argument(2, name, "is %" PRId64 ", must be at least 0", size);
}

Status check_stride(const char* name, int64_t stride, int64_t count, int64_t element_bytes)
{
    if (is_too_far(stride, count, element_bytes))
        return fail_argument(2, name,
                             "is %" PRId64 ", too large: %" PRId64 " groups must stay within 2^62 bytes",
                             stride, count);
    return ok;
}

Status check_strides(const hgemm_grouped_args_t& g)
{
    Status status = check_stride("args->stride_b", g.stride_b, g.group_count, 2);
    if (status != ok || !is_masked(g))
        return status;
    status = check_stride("args->stride_a", g.stride_a, g.group_count, 2);
    if (status == ok && g.group_count > 1 && g.m > 0 && g.n > 0 && g.stride_d == 0)
        return fail_argument(2, "args->stride_d", "is 0, must separate the outputs of %" PRId64 " groups",
                             g.group_count);
    return status == ok ? check_stride("args->stride_d", g.stride_d, g.group_count, bytes_of_d(g)) : status;
}

// Checks the arguments that all groups share. The checks of each group do not see how far apart groups
// begin.
Status check_shared(const hgemm_grouped_args_t& g)
{
    Status status = check_not_negative("args->m", g.m);
    if (status == ok)
        status = check_not_negative("args->n", g.n);
    if (status == ok)
        status = check_not_negative("args->k", g.k);
    if (status == ok)
        status = check_leading(2, "args->lda", g.lda, {g.k, g.m, "k"}, 2);
    if (status == ok)
        status = check_leading(2, "args->ldd", g.ldd, {g.n, g.m, "n"}, bytes_of_d(g));
    return status == ok ? check_strides(g) : status;
}

using Rows = GroupSizes::Rows;

// Checked by itself, since the checks of a group would report D, which is also its C, as `c`.
Status check_output(const hgemm_grouped_args_t& g, const GroupSizes& sizes)
{
    for (int64_t i = 0; i < g.group_count; ++i)
        if (sizes.rows(i).count > 0 && g.n > 0)
            return check_pointer(2, "args->d", g.d, bytes_of_d(g), Pointers::OnHost);
    return ok;
}

// So many bytes further. Of a group that is empty, or not read, it may be no address at all.
template <typename T>
T* displaced(T* first, int64_t bytes)
{
    return first ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(first) + static_cast<uintptr_t>(bytes))
                 : nullptr;
}

// Some rows of a group as the arguments of a GEMM.
hgemm_args_t args_of_rows(const hgemm_grouped_args_t& g, int64_t group, Rows rows)
{
    const bool masked = is_masked(g);
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;
    args.transb = g.transb;
    args.type_ab = g.type_ab;
    args.type_c = args.type_d = g.type_d;
    args.m = rows.count;
    args.n = g.n;
    args.k = g.k;
    args.alpha = g.alpha;
    args.beta = g.beta;
    args.a = displaced(g.a, 2 * ((masked ? group * g.stride_a : 0) + rows.first * g.lda));
    args.lda = g.lda;
    args.b = displaced(g.b, 2 * group * g.stride_b);
    args.ldb = g.ldb;
    args.d = displaced(g.d, bytes_of_d(g) * ((masked ? group * g.stride_d : 0) + rows.first * g.ldd));
    args.ldd = args.ldc = g.ldd;
    args.c = args.d;
    return args;
}

// The caller's hgemm_args_t may be longer than ours: its size is the distance between entries.
const hgemm_args_t* problem_at(const hgemm_grouped_args_t& g, int64_t index)
{
    const auto* first = reinterpret_cast<const char*>(g.problems);
    return reinterpret_cast<const hgemm_args_t*>(first + static_cast<size_t>(index) * g.problems->size);
}

Status check_problem_sizes(const hgemm_grouped_args_t& g)
{
    for (int64_t i = 0; i < g.group_count; ++i) {
        const AtProblem at(i);
        const size_t size = problem_at(g, i)->size;
        if (size != g.problems->size)
            return fail_argument(2, "args->size", "is %zu, must be %zu as in args->problems[0]", size,
                                 g.problems->size);
        if (Status status = check_size(problem_at(g, i), "hgemm_args"); status != ok)
            return status;
    }
    return ok;
}

// Everything that could refuse the problem, before anything runs.
Status check_problem(Handle& handle, const hgemm_args_t* args)
{
    hgemm_args_t checked;
    Status status = check_args(args, pointers_of(handle), checked);
    if (status != ok || is_empty(checked))
        return status;
    if (is_tree(handle, to_problem(checked)))
        return prepare_tree(handle, to_problem(checked));
    Plan decided;
    status = decide(handle, to_problem(checked), decided);
    if (status == ok)
        status = check_workspace(handle, decided);
    return status == ok ? provide_workspace(handle, decided.workspace, decided.counts) : status;
}

Status run_problem(Handle& handle, const hgemm_args_t* args)
{
    hgemm_args_t checked;
    Status status = check_args(args, pointers_of(handle), checked);
    if (status == ok && !repeat(handle, checked, status))
        status = run_checked(handle, checked);
    return status;
}

// Calls `step` for each problem in order, up to the first that fails. `sizes`: of groups that are not
// described on the host.
Status for_each_problem(Handle& handle, const hgemm_grouped_args_t& g, const GroupSizes* sizes,
                        Status (*step)(Handle&, const hgemm_args_t*))
{
    Status status = ok;
    for (int64_t i = 0; status == ok && i < g.group_count; ++i) {
        if (!sizes) {
            const AtProblem at(i);
            status = step(handle, problem_at(g, i));
        } else {
            const hgemm_args_t args = args_of_rows(g, i, sizes->rows(i));
            status = step(handle, &args);
        }
    }
    return status;
}

// A refused call writes nothing, so every problem is checked before the first one runs.
Status run_all(Handle& handle, const hgemm_grouped_args_t& g, const GroupSizes* sizes)
{
    const Status status = for_each_problem(handle, g, sizes, check_problem);
    return status == ok ? for_each_problem(handle, g, sizes, run_problem) : status;
}

Status copy_grouped(const hgemm_grouped_args_t* args, hgemm_grouped_args_t& g)
{
    if (Status status = copy_struct(args, "hgemm_grouped_args", g); status != ok)
        return status;
    if (g.grouping < HGEMM_GROUPED_CONTIGUOUS || g.grouping > HGEMM_GROUPED_HOST)
        return fail_argument(2, "args->grouping", "is %d, must be 1 (contiguous), 2 (masked) or 3 (host)",
                             static_cast<int>(g.grouping));
    if (g.grouping != HGEMM_GROUPED_HOST && g.type_ab != HGEMM_F16 && g.type_ab != HGEMM_BF16)
        return fail_argument(2, "args->type_ab", "is %d, must be 1 (F16) or 2 (BF16)",
                             static_cast<int>(g.type_ab));
    if (g.grouping != HGEMM_GROUPED_HOST && (g.type_d < HGEMM_F16 || g.type_d > HGEMM_F32))
        return fail_argument(2, "args->type_d", "is %d, must be 1 (F16), 2 (BF16) or 3 (F32)",
                             static_cast<int>(g.type_d));
    if (g.group_count < 0)
        return fail_argument(2, "args->group_count", "is %" PRId64 ", must be at least 0", g.group_count);
    return ok;
}

bool reads_operands(const hgemm_grouped_args_t& g) { return g.k > 0 && g.alpha != 0.0f; }

// The host does not know the sizes of groups: it checks the rest, as one GEMM of all rows.
Status check_matrices(const hgemm_grouped_args_t& g)
{
    const Status status =
        g.m > 0 && g.n > 0 ? check_pointer(2, "args->d", g.d, bytes_of_d(g), Pointers::Checked) : ok;
    const hgemm_args_t args = args_of_rows(g, 0, {0, g.m});
    hgemm_args_t checked;
    return status == ok ? check_args(&args, Pointers::Checked, checked) : status;
}

Problem to_problem(const hgemm_grouped_args_t& g, const Groups& groups)
{
    const bool masked = is_masked(g), along_k = g.transb != HGEMM_NO_TRANS;
    Problem p{};
    p.m = g.m;
    p.n = g.n;
    p.k = g.k;
    p.batch = g.group_count;
    p.type_ab = static_cast<Type>(g.type_ab);
    p.alpha = g.alpha;
    p.beta = g.beta;
    if (reads_operands(g)) {
        p.a = {g.a, nullptr, g.lda, 1, masked ? g.stride_a : 0};
        p.b = {g.b, nullptr, along_k ? g.ldb : 1, along_k ? 1 : g.ldb, g.stride_b};
    } else {
        p.multiply_nothing();
    }
    p.d = {g.d, nullptr, g.ldd, masked ? g.stride_d : 0, static_cast<Type>(g.type_d)};
    if (g.beta != 0.0f)
        p.c = p.d;
    p.groups = groups;
    p.simplify();
    return p;
}

// `size` is the grouping, which no hgemm_args_t has as its size, so that such requests differ from others.
Request to_request(const hgemm_grouped_args_t& g, const Groups& groups)
{
    Request r{};
    r.size = g.grouping;
    r.transb = g.transb;
    r.type_ab = g.type_ab;
    r.type_d = g.type_d;
    r.batch_count = g.group_count;
    r.m = g.m;
    r.n = g.n;
    r.k = g.k;
    r.alpha = g.alpha;
    r.beta = g.beta;
    r.a = g.a;
    r.lda = g.lda;
    r.stride_a = g.stride_a;
    r.b = g.b;
    r.ldb = g.ldb;
    r.stride_b = g.stride_b;
    r.d = g.d;
    r.ldd = g.ldd;
    r.stride_d = g.stride_d;
    r.c = groups.sizes;
    r.ldc = static_cast<int64_t>(groups.by);
    r.stride_c = groups.narrow;
    return r;
}

// Everything but the common members, which copy_grouped() checks, of contiguous or masked groups.
Status check_groups(const Handle& handle, const hgemm_grouped_args_t& g, GroupSizes& sizes)
{
    Status status = check_shared(g);
    if (status == ok)
        status = GroupSizes::find(g, sizes);
    if (status == ok)
        status =
            check_pointer(2, sizes.name, sizes.groups.sizes, sizes.element_bytes(), pointers_of(handle));
    if (status != ok || handle.context)
        return status == ok ? check_matrices(g) : status;
    status = sizes.check(g);
    return status == ok ? check_output(g, sizes) : status;
}

Status run_described(Handle& handle, const hgemm_grouped_args_t& g)
{
    if (!g.problems)
        return fail_argument(2, "args->problems", "is NULL, must point to %" PRId64 " hgemm_args_t",
                             g.group_count);
    Status status = check_struct("args->problems", g.problems);
    if (status == ok)
        status = check_problem_sizes(g);
    return status == ok ? run_all(handle, g, nullptr) : status;
}

Status run_grouped(Handle& handle, const hgemm_grouped_args_t& g)
{
    if (g.group_count == 0)
        return ok;
    if (const Status status = find_place(handle); status != ok)
        return status;
    if (g.grouping == HGEMM_GROUPED_HOST)
        return run_described(handle, g);
    GroupSizes sizes;
    Status status = GroupSizes::find(g, sizes);
    if (handle.context && status == ok && repeat(handle, to_request(g, sizes.groups), status))
        return status;
    status = check_groups(handle, g, sizes);
    if (status != ok || (handle.context && (g.m == 0 || g.n == 0)))
        return status;
    return handle.context ? execute(handle, to_request(g, sizes.groups), to_problem(g, sizes.groups))
                          : run_all(handle, g, &sizes);
}

}  // namespace

Status to_grouped_problem(const Handle& handle, const hgemm_grouped_args_t* args,
                          std::optional<Problem>& problem)
{
    hgemm_grouped_args_t g;
    Status status = copy_grouped(args, g);
    if (status == ok && g.grouping == HGEMM_GROUPED_HOST)
        return fail_argument(
            2, "args->grouping",
            "is 3 (host), must be 1 (contiguous) or 2 (masked): hgemm_tune() serves each of "
            "args->problems");
    if (status != ok || g.group_count == 0)
        return status;
    GroupSizes sizes;
    status = check_groups(handle, g, sizes);
    if (status == ok && g.m > 0 && g.n > 0)
        problem = to_problem(g, sizes.groups);
    return status;
}

}  // namespace hg

using namespace hg;

extern "C" void hgemm_grouped_args_init(hgemm_grouped_args_t* args, size_t size)
{
    if (!args)
        return;
    std::memset(args, 0, size);
    hgemm_grouped_args_t defaults{};
    defaults.size = size;
    defaults.grouping = HGEMM_GROUPED_CONTIGUOUS;
    defaults.transb = HGEMM_TRANS;
    defaults.type_ab = defaults.type_d = HGEMM_F16;
    defaults.alpha = 1;
    std::memcpy(args, &defaults, std::min(size, sizeof defaults));
}

extern "C" hgemm_status_t hgemm_grouped_ex(hgemm_handle_t handle, const hgemm_grouped_args_t* args)
{
    return with_handle("hgemm_grouped_ex", handle, [&](Handle& h) {
        hgemm_grouped_args_t g;
        const Status status = copy_grouped(args, g);
        return status == ok ? run_grouped(h, g) : status;
    });
}
