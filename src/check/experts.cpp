#include "src/check/experts.hpp"

#include "src/check/request.hpp"
#include "src/plan/problem.hpp"

#include <cinttypes>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t most_choices = int64_t{1} << 30, most_experts = int64_t{1} << 16,
                  most_columns = int64_t{1} << 30;

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

Status check_types(const hgemm_rows_args_t& x)
{
    Status status = check_type(2, "args->type_a", x.type_a);
    if (status == ok)
        status = check_type(2, "args->type_d", x.type_d);
    return status == ok && x.weights ? check_type(2, "args->type_weights", x.type_weights) : status;
}

int64_t bytes_of(hgemm_type_t type) { return hg::bytes_of(static_cast<Type>(type)); }

Status check_lds(const hgemm_rows_args_t& x, bool gathers)
{
    const int64_t rows = x.tokens * x.choices;
    Status status = x.weights ? check_leading(2, "args->ldw", x.ldw, {x.choices, x.tokens, "choices"},
                                              bytes_of(x.type_weights))
                              : ok;
    if (status == ok)
        status = check_leading(2, "args->lda", x.lda, {x.columns, gathers ? x.tokens : rows, "columns"},
                               bytes_of(x.type_a));
    return status == ok
               ? check_leading(2, "args->ldd", x.ldd, {x.columns, gathers ? rows : x.tokens, "columns"},
                               bytes_of(x.type_d))
               : status;
}

Status check_row_pointers(const hgemm_rows_args_t& x, Pointers pointers)
{
    Status status = check_numbers("args->row_of_choice", x.row_of_choice, pointers);
    if (status == ok && x.weights)
        status = check_pointer(2, "args->weights", x.weights, bytes_of(x.type_weights), pointers);
    if (status == ok)
        status = check_pointer(2, "args->a", x.a, bytes_of(x.type_a), pointers);
    return status == ok ? check_pointer(2, "args->d", x.d, bytes_of(x.type_d), pointers) : status;
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

Status check_rows(const hgemm_rows_args_t& x, Rows how, Pointers pointers)
{
    const bool gathers = how == Rows::Gather;
    Status status = check_choices(x);
    if (status == ok && (x.columns < 0 || x.columns > most_columns))
        return fail_argument(2, "args->columns", "is %" PRId64 ", must be 0 to 2^30", x.columns);
    if (status == ok)
        status = check_types(x);
    if (status == ok)
        status = check_lds(x, gathers);
    const bool is_empty = x.tokens == 0 || x.columns == 0;
    return status == ok && !is_empty ? check_row_pointers(x, pointers) : status;
}

}  // namespace hg
