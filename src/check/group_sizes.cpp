#include "src/check/group_sizes.hpp"

#include "arch/common/types.hpp"

#include <cinttypes>

namespace hg {

Status GroupSizes::find(const hgemm_grouped_args_t& g, GroupSizes& sizes)
{
    const bool masked = g.grouping == HGEMM_GROUPED_MASKED, of_k = g.grouping == HGEMM_GROUPED_K;
    const GroupSizes forms[] = {
        {"args->offsets", {g.offsets, GroupsBy::Offsets, false, false, 0}},
        {"args->ends", {g.ends, GroupsBy::Ends, false, false, 0}},
        {"args->ends_i32", {g.ends_i32, GroupsBy::Ends, true, false, 0}},
        {"args->offsets_i32", {g.offsets_i32, GroupsBy::Offsets, true, false, 0}},
        {"args->counts", {g.counts, GroupsBy::Counts, false, false, 0}},
        {"args->counts_i32", {g.counts_i32, GroupsBy::Counts, true, false, 0}},
    };
    sizes = {masked ? "args->counts" : "args->offsets", {}};
    for (const GroupSizes& form : forms) {
        if (!form.groups.sizes)
            continue;
        if (masked != (form.groups.by == GroupsBy::Counts))
            return fail_argument(2, form.name, "is not NULL, must be NULL for %s groups",
                                 masked ? "masked"
                                 : of_k ? "k"
                                        : "contiguous");
        if (sizes.groups.sizes)
            return fail_argument(2, form.name, "is not NULL, must be NULL beside %s", sizes.name);
        sizes = form;
    }
    sizes.groups.of_k = of_k;
    if (sizes.groups.sizes)
        return ok;
    return fail_argument(2, sizes.name, "is NULL, must hold the groups' %s, or %s must",
                         of_k ? "k" : "rows", masked ? "counts_i32" : "ends, ends_i32 or offsets_i32");
}

int64_t GroupSizes::at(int64_t i) const
{
    return groups.narrow ? static_cast<const int32_t*>(groups.sizes)[i]
                         : static_cast<const int64_t*>(groups.sizes)[i];
}

int64_t GroupSizes::begin(int64_t group) const
{
    switch (groups.by) {
    case GroupsBy::Offsets: return at(group);
    case GroupsBy::Ends: return group == 0 ? 0 : at(group - 1);
    case GroupsBy::Counts: break;
    }
    return 0;
}

int64_t GroupSizes::end(int64_t group) const
{
    return groups.by == GroupsBy::Offsets ? at(group + 1) : at(group);
}

GroupSizes::Rows GroupSizes::rows(int64_t group) const { return {begin(group), end(group) - begin(group)}; }

Status GroupSizes::check(const hgemm_grouped_args_t& g) const
{
    const int64_t size = groups.of_k ? g.k : g.m;
    for (int64_t i = 0; i < g.group_count; ++i) {
        const int64_t first = begin(i), last = end(i);
        if (first >= 0 && first <= last && last <= size)
            continue;
        if (groups.masked())
            return fail_argument(2, name,
                                 "has %" PRId64 " for group %" PRId64 ", must be from 0 to m = %" PRId64,
                                 last, i, g.m);
        return fail_argument(2, name,
                             "has %" PRId64 " and %" PRId64 " for group %" PRId64
                             ", must not decrease and stay from 0 to %s = %" PRId64,
                             first, last, i, groups.of_k ? "k" : "m", size);
    }
    return ok;
}

}  // namespace hg
