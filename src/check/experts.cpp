#include "src/check/experts.hpp"

#include "src/check/gate.hpp"
#include "src/check/request.hpp"
#include "src/plan/problem.hpp"

#include <cinttypes>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t most_choices = int64_t{1} << 30, most_experts = int64_t{1} << 16,
                  most_groups = int64_t{1} << 30;

// Of hgemm_route_args_t and hgemm_rows_args_t.
template <typename Args>
Status check_choices(const Args& x)
{
    if (x.tokens < 0)
        return fail_argument(2, "args->tokens", "is %" PRId64 ", must be at least 0", x.tokens);
    if (x.choices < 1 || x.choices > most_choices)
        return fail_argument(2, "args->choices", "is %" PRId64 ", must be 1 to 2^30", x.choices);
    if (x.tokens > most_choices / x.choices)
        return fail_argument(2, "args->tokens", "is %" PRId64 ", must be at most 2^30 / choices = %" PRId64,
                             x.tokens, most_choices / x.choices);
    return ok;
}

Status check_numbers(const char* name, const int32_t* numbers, Pointers pointers)
{
    return check_pointer(2, name, numbers, sizeof(int32_t), pointers);
}

// The one of the two forms that is set.
Status check_chosen(const hgemm_route_args_t& x, Pointers pointers)
{
    if (x.chosen && x.chosen_i32)
        return fail_argument(2, "args->chosen_i32", "is %p, must be NULL beside chosen",
                             static_cast<const void*>(x.chosen_i32));
    if (x.chosen_i32)
        return check_numbers("args->chosen_i32", x.chosen_i32, pointers);
    return check_pointer(2, "args->chosen", x.chosen, sizeof(int64_t), pointers);
}

Status check_values(const hgemm_route_args_t& x)
{
    for (int64_t t = 0; t < x.tokens; ++t)
        for (int64_t c = 0; c < x.choices; ++c) {
            const int64_t place = t * x.ld + c, expert = x.chosen ? x.chosen[place] : x.chosen_i32[place];
            if (expert < -1 || expert >= x.experts)
                return fail_argument(2, x.chosen ? "args->chosen" : "args->chosen_i32",
                                     "has %" PRId64 " for choice %" PRId64 " of token %" PRId64
                                     ", must be -1 to %" PRId64,
                                     expert, c, t, x.experts - 1);
        }
    return ok;
}

Status check_types(const hgemm_rows_args_t& x, Rows how)
{
    Status status = check_type(2, "args->type_a", x.type_a);
    if (status == ok)
        status = check_type(2, "args->type_d", x.type_d);
    if (status == ok && how == Rows::Dot)
        status = check_type(2, "args->type_b", x.type_b);
    return status == ok && x.weights ? check_type(2, "args->type_weights", x.type_weights) : status;
}

Status check_lds(const hgemm_rows_args_t& x, Rows how)
{
    const Stored of_tokens = {x.columns, x.tokens, "columns"},
                 of_choices = {x.columns, x.tokens * x.choices, "columns"},
                 weights = {x.choices, x.tokens, "choices"};
    Status status =
        x.weights ? check_leading(2, "args->ldw", x.ldw, weights, element_bytes(x.type_weights)) : ok;
    if (status == ok)
        status = check_leading(2, "args->lda", x.lda, how == Rows::Combine ? of_choices : of_tokens,
                               element_bytes(x.type_a));
    if (status == ok && how == Rows::Dot)
        status = check_leading(2, "args->ldb", x.ldb, of_choices, element_bytes(x.type_b));
    const Stored& d = how == Rows::Gather ? of_choices : how == Rows::Combine ? of_tokens : weights;
    return status == ok ? check_leading(2, "args->ldd", x.ldd, d, element_bytes(x.type_d)) : status;
}

// A and B of nothing but empty rows are not read.
Status check_row_pointers(const hgemm_rows_args_t& x, Rows how, Pointers pointers)
{
    Status status = check_numbers("args->row_of_choice", x.row_of_choice, pointers);
    if (status == ok && x.weights)
        status = check_pointer(2, "args->weights", x.weights, element_bytes(x.type_weights), pointers);
    if (status == ok && x.columns > 0)
        status = check_pointer(2, "args->a", x.a, element_bytes(x.type_a), pointers);
    if (status == ok && how == Rows::Dot && x.columns > 0)
        status = check_pointer(2, "args->b", x.b, element_bytes(x.type_b), pointers);
    return status == ok ? check_pointer(2, "args->d", x.d, element_bytes(x.type_d), pointers) : status;
}

Status check_clear_sizes(const hgemm_grouped_args_t& g)
{
    if (g.grouping != HGEMM_GROUPED_CONTIGUOUS && g.grouping != HGEMM_GROUPED_MASKED)
        return fail_argument(2, "args->grouping", "is %d, must be 1 (contiguous) or 2 (masked)",
                             static_cast<int>(g.grouping));
    if (g.group_count < 0 || g.group_count > most_groups)
        return fail_argument(2, "args->group_count", "is %" PRId64 ", must be 0 to 2^30", g.group_count);
    if (g.m < 0 || g.m > most_groups)
        return fail_argument(2, "args->m", "is %" PRId64 ", must be 0 to 2^30", g.m);
    if (g.n < 0)
        return fail_argument(2, "args->n", "is %" PRId64 ", must be at least 0", g.n);
    hgemm_gate_t gate{};
    gate.block = g.gate.block;
    return check_gate(2, gate, HGEMM_ACTIVATION_NONE, {g.n, g.m, "n"});
}

Status check_clear_d(const hgemm_grouped_args_t& g, Pointers pointers)
{
    const bool is_gated = g.gate.block != 0;
    const Stored d = {is_gated ? g.n / 2 : g.n, g.m, is_gated ? "n / 2" : "n"};
    const bool masked = g.grouping == HGEMM_GROUPED_MASKED, is_empty = g.m == 0 || d.inner == 0;
    Status status = check_type(2, "args->type_d", g.type_d);
    if (status == ok)
        status = check_leading(2, "args->ldd", g.ldd, d, element_bytes(g.type_d));
    if (status == ok && masked && g.group_count > 1 && !is_empty && g.stride_d == 0)
        return fail_argument(2, "args->stride_d", "is 0, must separate the outputs of %" PRId64 " groups",
                             g.group_count);
    if (status == ok && masked && is_too_far(g.stride_d, g.group_count, element_bytes(g.type_d)))
        return fail_argument(2, "args->stride_d",
                             "is %" PRId64 ", too large: %" PRId64 " groups must stay within 2^62 bytes",
                             g.stride_d, g.group_count);
    if (status != ok || is_empty || (masked && g.group_count == 0))
        return status;
    return check_pointer(2, "args->d", g.d, element_bytes(g.type_d), pointers);
}

}  // namespace

Status check_route(const hgemm_route_args_t& x, Pointers pointers)
{
    Status status = check_choices(x);
    if (status == ok && (x.experts < 1 || x.experts > most_experts))
        return fail_argument(2, "args->experts", "is %" PRId64 ", must be 1 to 2^16", x.experts);
    if (status == ok && x.tokens > 0)
        status = check_chosen(x, pointers);
    if (status == ok)
        status = check_leading(2, "args->ld", x.ld, {x.choices, x.tokens, "choices"}, sizeof(int64_t));
    if (status == ok)
        status = check_numbers("args->ends", x.ends, pointers);
    if (status != ok || x.tokens == 0)
        return status;
    status = check_numbers("args->row_of_choice", x.row_of_choice, pointers);
    if (status == ok && x.choice_of_row)
        status = check_numbers("args->choice_of_row", x.choice_of_row, pointers);
    return status == ok && pointers == Pointers::OnHost ? check_values(x) : status;
}

Status check_clear(const hgemm_grouped_args_t& g, Pointers pointers, GroupSizes& sizes)
{
    sizes = {};
    sizes.groups.by = g.grouping == HGEMM_GROUPED_MASKED ? GroupsBy::Counts : GroupsBy::Ends;
    Status status = check_clear_sizes(g);
    if (status == ok)
        status = check_clear_d(g, pointers);
    if (status != ok || g.group_count == 0)
        return status;
    status = GroupSizes::find(g, sizes);
    if (status == ok)
        status = check_pointer(2, sizes.name, sizes.groups.sizes, sizes.element_bytes(), pointers);
    return status == ok && pointers == Pointers::OnHost ? sizes.check(g) : status;
}

bool is_empty(const hgemm_rows_args_t& x, Rows how)
{
    return x.tokens == 0 || (x.columns == 0 && how != Rows::Dot);
}

Status check_rows(const hgemm_rows_args_t& x, Rows how, Pointers pointers)
{
    Status status = check_choices(x);
    if (status == ok && (x.columns < 0 || x.columns > most_columns))
        return fail_argument(2, "args->columns", "is %" PRId64 ", must be 0 to 2^30", x.columns);
    if (status == ok && how == Rows::Dot && x.weights)
        return fail_argument(2, "args->weights", "is %p, must be NULL: a dot product has none", x.weights);
    if (status == ok)
        status = check_types(x, how);
    if (status == ok)
        status = check_lds(x, how);
    return status == ok && !is_empty(x, how) ? check_row_pointers(x, how, pointers) : status;
}

}  // namespace hg
