// The C wall of grouped products. Groups described on the host run one behind the other; groups whose
// sizes lie in device memory need a kernel that reads them, which only the host backend has so far.
#include "general_form.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace hg {
namespace {

Status check_group_sizes(const hgemm_grouped_args_t& g)
{
    if (g.grouping == HGEMM_GROUPED_MASKED) {
        for (int64_t i = 0; i < g.group_count; ++i)
            if (g.counts[i] < 0 || g.counts[i] > g.m)
                return fail_argument(2, "args->counts",
                                     "has %" PRId64 " for group %" PRId64
                                     ", must be from 0 to m = %" PRId64,
                                     g.counts[i], i, g.m);
        return ok;
    }
    for (int64_t i = 0; i < g.group_count; ++i)
        if (g.offsets[i] < 0 || g.offsets[i] > g.offsets[i + 1] || g.offsets[i + 1] > g.m)
            return fail_argument(2, "args->offsets",
                                 "has %" PRId64 " and %" PRId64 " for group %" PRId64
                                 ", must not decrease and stay from 0 to m = %" PRId64,
                                 g.offsets[i], g.offsets[i + 1], i, g.m);
    return ok;
}

// Rows [first, first + rows) of the group's storage, as a product of its own.
hgemm_args_t group_args(const hgemm_grouped_args_t& g, int64_t group)
{
    const bool masked = g.grouping == HGEMM_GROUPED_MASKED;
    const int64_t first = masked ? 0 : g.offsets[group];
    const int64_t bytes_d = bytes_of(static_cast<Type>(g.type_d));
    const auto* a = static_cast<const char*>(g.a);
    auto* d = static_cast<char*>(g.d);
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;
    args.transb = g.transb;
    args.type_ab = g.type_ab;
    args.type_c = args.type_d = g.type_d;
    args.m = masked ? g.counts[group] : g.offsets[group + 1] - first;
    args.n = g.n;
    args.k = g.k;
    args.alpha = g.alpha;
    args.beta = g.beta;
    args.a = a ? a + 2 * ((masked ? group * g.stride_a : 0) + first * g.lda) : nullptr;
    args.lda = g.lda;
    args.b = g.b ? static_cast<const char*>(g.b) + 2 * group * g.stride_b : nullptr;
    args.ldb = g.ldb;
    args.d = d ? d + bytes_d * ((masked ? group * g.stride_d : 0) + first * g.ldd) : nullptr;
    args.ldd = args.ldc = g.ldd;
    args.c = args.d;
    return args;
}

// Every product is checked before the first one runs.
Status run_all(Handle& handle, int64_t count, auto product)
{
    hgemm_args_t checked;
    for (int64_t i = 0; i < count; ++i) {
        const hgemm_args_t args = product(i);
        if (Status status = check_args(&args, Pointers::Checked, checked); status != ok)
            return status;
    }
    for (int64_t i = 0; i < count; ++i) {
        const hgemm_args_t args = product(i);
        Status status = check_args(&args, Pointers::Checked, checked);
        if (status == ok && !repeat(handle, checked, status))
            status = run_checked(handle, checked);
        if (status != ok)
            return status;
    }
    return ok;
}

Status copy_grouped(const hgemm_grouped_args_t* args, hgemm_grouped_args_t& g)
{
    if (!args)
        return fail_argument(2, "args", "is NULL, must point to an hgemm_grouped_args_t");
    if (args->size < sizeof g)
        return fail_argument(2, "args->size", "is %zu, must be at least %zu: use hgemm_grouped_args_init",
                             args->size, sizeof g);
    std::memcpy(&g, args, sizeof g);
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

Status run_grouped(Handle& handle, const hgemm_grouped_args_t& g)
{
    if (g.group_count == 0)
        return ok;
    if (g.grouping == HGEMM_GROUPED_HOST) {
        if (!g.problems)
            return fail_argument(2, "args->problems", "is NULL, must point to %" PRId64 " hgemm_args_t",
                                 g.group_count);
        return run_all(handle, g.group_count, [&](int64_t i) { return g.problems[i]; });
    }
    const bool masked = g.grouping == HGEMM_GROUPED_MASKED;
    if (g.m < 0)
        return fail_argument(2, "args->m", "is %" PRId64 ", must be at least 0", g.m);
    if (!(masked ? g.counts : g.offsets))
        return fail_argument(2, masked ? "args->counts" : "args->offsets",
                             "is NULL, must hold the groups' rows");
    if (handle.context)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "backend %s has no kernel for groups whose sizes lie on the device; HGEMM_GROUPED_HOST "
                    "is served",
                    handle.candidates[0]->name);
    if (Status status = check_group_sizes(g); status != ok)
        return status;
    return run_all(handle, g.group_count, [&](int64_t i) { return group_args(g, i); });
}

}  // namespace
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
