// The C API of grouped GEMMs. Groups described on the host, and all groups on the host backend, run one
// after the other. Sizes in device memory are read by one kernel for all groups.
#include "src/api/grouped.hpp"

#include "src/api/general_form.hpp"
#include "src/api/group.hpp"
#include "src/base/decimal.hpp"
#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"
#include "src/check/group_sizes.hpp"
#include "src/check/request.hpp"
#include "src/run/composite.hpp"
#include "src/run/execute.hpp"
#include "src/run/lending.hpp"

#include <cinttypes>

namespace hg {
namespace {

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

Status check_output_stride(const hgemm_grouped_args_t& g, const char* name, int64_t stride)
{
    if (g.group_count > 1 && g.m > 0 && g.n > 0 && stride == 0)
        return fail_argument(2, name, "is 0, must separate the outputs of %" PRId64 " groups",
                             g.group_count);
    return check_stride(name, stride, g.group_count, bytes_of_d(g));
}

Status check_strides(const hgemm_grouped_args_t& g)
{
    Status status = is_of_k(g) ? ok : check_stride("args->stride_b", g.stride_b, g.group_count, 2);
    if (status == ok && g.bias)
        status = check_stride("args->stride_bias", g.stride_bias, g.group_count,
                              bytes_of(static_cast<Type>(g.bias_type)));
    if (status != ok || (!is_masked(g) && !is_of_k(g)))
        return status;
    if (is_masked(g))
        status = check_stride("args->stride_a", g.stride_a, g.group_count, 2);
    if (status == ok)
        status = check_output_stride(g, "args->stride_d", g.stride_d);
    return status == ok && g.aux ? check_output_stride(g, "args->stride_aux", g.stride_aux) : status;
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
        status =
            check_leading(2, "args->lda", g.lda,
                          g.transa == HGEMM_NO_TRANS ? Stored{g.k, g.m, "k"} : Stored{g.m, g.k, "m"}, 2);
    if (status == ok && is_of_k(g))
        status =
            check_leading(2, "args->ldb", g.ldb,
                          g.transb == HGEMM_NO_TRANS ? Stored{g.n, g.k, "n"} : Stored{g.k, g.n, "k"}, 2);
    if (status == ok)
        status = check_leading(2, "args->ldd", g.ldd,
                               g.gate.block != 0 ? Stored{g.n / 2, g.m, "n / 2"} : Stored{g.n, g.m, "n"},
                               bytes_of_d(g));
    if (status == ok && g.aux)
        status = check_leading(2, "args->ldaux", g.ldaux, {g.n, g.m, "n"}, bytes_of_d(g));
    return status == ok ? check_strides(g) : status;
}

// Checked by itself, since the checks of a group would report D, which is also its C, as `c`.
Status check_output(const hgemm_grouped_args_t& g, const GroupSizes& sizes)
{
    for (int64_t i = 0; i < g.group_count; ++i)
        if ((is_of_k(g) ? g.m : sizes.rows(i).count) > 0 && g.n > 0)
            return check_pointer(2, "args->d", g.d, bytes_of_d(g), Pointers::OnHost);
    return ok;
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
            const hgemm_args_t args = args_of(g, i, sizes->rows(i));
            status = step(handle, &args);
        }
    }
    return status;
}

// A refused call writes nothing, so every problem is checked before the first one runs.
Status run_all(Handle& handle, const hgemm_grouped_args_t& g, const GroupSizes* sizes)
{
    const Status status = for_each_problem(handle, g, sizes, prepare_product);
    return status == ok ? for_each_problem(handle, g, sizes, run_product) : status;
}

Status check_count(const hgemm_grouped_args_t& g)
{
    return check_not_negative("args->group_count", g.group_count);
}

// What a product's own checks do not see.
Status check_gates(const hgemm_grouped_args_t& g)
{
    if (g.gate.block == 0 && g.activation != HGEMM_ACTIVATION_NONE)
        return fail_argument(2, "args->activation", "is %d, must be 0 without args->gate.block",
                             static_cast<int>(g.activation));
    if (g.gate.block == 0 && g.aux)
        return fail_argument(2, "args->aux", "is %p, must be NULL without args->gate.block", g.aux);
    if (g.gate.block != 0 && is_of_k(g))
        return fail_argument(2, "args->gate.block", "is %" PRId64 ", must be 0 for groups of k",
                             g.gate.block);
    if (g.gate.block != 0 && g.beta != 0.0f)
        return fail_argument(2, "args->beta", "is %s, must be 0 with args->gate.block",
                             general(g.beta).text());
    return ok;
}

Status check_bias(const hgemm_grouped_args_t& g)
{
    if (g.bias && is_of_k(g))
        return fail_argument(2, "args->bias", "is %p, must be NULL for groups of k", g.bias);
    return g.bias ? check_type(2, "args->bias_type", g.bias_type) : ok;
}

Status copy_grouped(const hgemm_grouped_args_t* args, hgemm_grouped_args_t& g)
{
    if (Status status = copy_struct(args, "hgemm_grouped_args", g); status != ok)
        return status;
    if (g.grouping < HGEMM_GROUPED_CONTIGUOUS || g.grouping > HGEMM_GROUPED_K)
        return fail_argument(2, "args->grouping",
                             "is %d, must be 1 (contiguous), 2 (masked), 3 (host) or 4 (k)",
                             static_cast<int>(g.grouping));
    if (g.grouping == HGEMM_GROUPED_HOST)
        return check_count(g);
    if (g.flags != 0)
        return fail_argument(2, "args->flags", "is %" PRIu32 ", must be 0", g.flags);
    // Programs that were compiled before there was this member have 0.
    if (static_cast<int>(g.transa) == 0)
        g.transa = HGEMM_NO_TRANS;
    if (is_of_k(g) ? g.transa < HGEMM_NO_TRANS || g.transa > HGEMM_CONJ_TRANS : g.transa != HGEMM_NO_TRANS)
        return fail_argument(2, "args->transa", "is %d, must be %s", static_cast<int>(g.transa),
                             is_of_k(g) ? "111 (no), 112 (transposed) or 113 (conjugate)"
                                        : "111 (no) or 0 unless grouping is 4 (k)");
    if (g.type_ab != HGEMM_F16 && g.type_ab != HGEMM_BF16)
        return fail_argument(2, "args->type_ab", "is %d, must be 1 (F16) or 2 (BF16)",
                             static_cast<int>(g.type_ab));
    Status status = check_type(2, "args->type_d", g.type_d);
    if (status == ok)
        status = check_gates(g);
    if (status == ok)
        status = check_bias(g);
    return status == ok ? check_count(g) : status;
}

bool reads_operands(const hgemm_grouped_args_t& g) { return g.k > 0 && g.alpha != 0.0f; }

// The host does not know the sizes of groups: it checks the rest, as one GEMM of all rows, or of all K.
Status check_matrices(const hgemm_grouped_args_t& g)
{
    const Status status =
        g.m > 0 && g.n > 0 ? check_pointer(2, "args->d", g.d, bytes_of_d(g), Pointers::Checked) : ok;
    const hgemm_args_t args = args_of(g, 0, {0, is_of_k(g) ? g.k : g.m});
    hgemm_args_t checked;
    return status == ok ? check_args(&args, Pointers::Checked, checked) : status;
}

Problem to_problem(const hgemm_grouped_args_t& g, const Groups& groups)
{
    const bool masked = is_masked(g), of_k = is_of_k(g), along_k = g.transb != HGEMM_NO_TRANS;
    const bool a_along_k = g.transa == HGEMM_NO_TRANS;
    Problem p{};
    p.m = g.m;
    p.n = g.n;
    p.k = g.k;
    p.batch = g.group_count;
    p.type_ab = static_cast<Type>(g.type_ab);
    p.alpha = g.alpha;
    p.beta = g.beta;
    if (reads_operands(g)) {
        p.a = {g.a, nullptr, a_along_k ? g.lda : 1, a_along_k ? 1 : g.lda, masked ? g.stride_a : 0, 0};
        p.b = {g.b, nullptr, along_k ? g.ldb : 1, along_k ? 1 : g.ldb, of_k ? 0 : g.stride_b, 0};
    } else {
        p.multiply_nothing();
    }
    p.d = {g.d, nullptr, g.ldd, masked || of_k ? g.stride_d : 0, static_cast<Type>(g.type_d), 0};
    if (g.beta != 0.0f)
        p.c = p.d;
    p.groups = groups;
    if (g.bias)
        p.bias = {g.bias, g.stride_bias, static_cast<Type>(g.bias_type), BiasAlong::Columns};
    if (g.gate.block != 0) {
        p.gate = to_gate(g.gate);
        p.activation = static_cast<Activation>(g.activation);
        if (g.aux)
            p.aux = {g.aux, nullptr, g.ldaux, masked ? g.stride_aux : 0, static_cast<Type>(g.type_d), 0};
    }
    p.simplify();
    return p;
}

// `size` is the grouping, which no hgemm_args_t has as its size, so that such requests differ from others.
Request to_request(const hgemm_grouped_args_t& g, const Groups& groups)
{
    Request r{};
    r.size = g.grouping;
    r.transa = g.transa;
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
    r.bias_mode = g.bias ? HGEMM_BIAS_N : HGEMM_BIAS_NONE;
    r.bias_type = g.bias_type;
    r.bias = g.bias;
    r.stride_bias = g.stride_bias;
    r.activation = g.activation;
    r.aux = g.aux;
    r.ldaux = g.ldaux;
    r.stride_aux = g.stride_aux;
    r.gate = g.gate;
    return r;
}

// Everything but the common members, which copy_grouped() checks, of groups that are not described on the
// host.
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
    if (status == ok && is_of_k(g))
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "groups of k are not tuned");
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
    hgemm_grouped_args_t defaults{};
    defaults.grouping = HGEMM_GROUPED_CONTIGUOUS;
    defaults.transa = HGEMM_NO_TRANS;
    defaults.transb = HGEMM_TRANS;
    defaults.type_ab = defaults.type_d = defaults.bias_type = HGEMM_F16;
    defaults.alpha = 1;
    fill_struct(args, size, defaults);
}

extern "C" hgemm_status_t hgemm_grouped_ex(hgemm_handle_t handle, const hgemm_grouped_args_t* args)
{
    return with_handle("hgemm_grouped_ex", handle, [&](Handle& h) {
        hgemm_grouped_args_t g;
        const Status status = copy_grouped(args, g);
        return status == ok ? run_grouped(h, g) : status;
    });
}
