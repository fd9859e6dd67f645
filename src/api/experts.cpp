// The C API of mixtures of experts.
#include "src/check/experts.hpp"
#include "src/api/general_form.hpp"
#include "src/plan/experts.hpp"
#include "src/run/experts.hpp"
#include "src/run/handle.hpp"

namespace hg {
namespace {

Route to_route(const hgemm_route_args_t& x)
{
    const bool narrow = x.chosen_i32 != nullptr;
    return {
        x.tokens,       x.choices, x.experts, narrow ? static_cast<const void*>(x.chosen_i32) : x.chosen,
        narrow,         x.ld,      x.ends,    x.row_of_choice,
        x.choice_of_row};
}

RowMove to_move(const hgemm_rows_args_t& x, Rows how)
{
    return {how,
            x.tokens,
            x.choices,
            x.columns,
            x.row_of_choice,
            x.weights,
            x.ldw,
            x.a,
            x.lda,
            x.d,
            x.ldd,
            static_cast<Type>(x.type_a),
            static_cast<Type>(x.type_d),
            static_cast<Type>(x.type_weights),
            x.b,
            x.ldb,
            static_cast<Type>(x.type_b)};
}

Status move_rows(const char* function, hgemm_handle_t handle, const hgemm_rows_args_t* args, Rows how)
{
    return with_handle(function, handle, [&](Handle& h) {
        hgemm_rows_args_t x;
        Status status = copy_struct(args, "hgemm_rows_args", x);
        if (status == ok)
            status = check_rows(x, how, pointers_of(h));
        if (status != ok || is_empty(x, how))
            return status;
        return run_rows(h, to_move(x, how));
    });
}

RowClear to_clear(const hgemm_grouped_args_t& g, const GroupSizes& sizes)
{
    const bool masked = g.grouping == HGEMM_GROUPED_MASKED;
    return {sizes.groups,
            g.group_count,
            g.m,
            g.gate.block != 0 ? g.n / 2 : g.n,
            {g.d, nullptr, g.ldd, masked ? g.stride_d : 0, static_cast<Type>(g.type_d), 0}};
}

}  // namespace
}  // namespace hg

using namespace hg;

extern "C" void hgemm_route_args_init(hgemm_route_args_t* args, size_t size)
{
    fill_struct<hgemm_route_args_t>(args, size);
}

extern "C" hgemm_status_t hgemm_route(hgemm_handle_t handle, const hgemm_route_args_t* args)
{
    return with_handle("hgemm_route", handle, [&](Handle& h) {
        hgemm_route_args_t x;
        Status status = copy_struct(args, "hgemm_route_args", x);
        if (status == ok)
            status = check_route(x, pointers_of(h));
        return status == ok ? run_route(h, to_route(x)) : status;
    });
}

extern "C" void hgemm_rows_args_init(hgemm_rows_args_t* args, size_t size)
{
    hgemm_rows_args_t defaults{};
    defaults.type_a = defaults.type_b = defaults.type_d = defaults.type_weights = HGEMM_F16;
    fill_struct(args, size, defaults);
}

extern "C" hgemm_status_t hgemm_gather_rows(hgemm_handle_t handle, const hgemm_rows_args_t* args)
{
    return move_rows("hgemm_gather_rows", handle, args, Rows::Gather);
}

extern "C" hgemm_status_t hgemm_combine_rows(hgemm_handle_t handle, const hgemm_rows_args_t* args)
{
    return move_rows("hgemm_combine_rows", handle, args, Rows::Combine);
}

extern "C" hgemm_status_t hgemm_dot_rows(hgemm_handle_t handle, const hgemm_rows_args_t* args)
{
    return move_rows("hgemm_dot_rows", handle, args, Rows::Dot);
}

extern "C" hgemm_status_t hgemm_clear_rows(hgemm_handle_t handle, const hgemm_grouped_args_t* args)
{
    return with_handle("hgemm_clear_rows", handle, [&](Handle& h) {
        hgemm_grouped_args_t g;
        GroupSizes sizes;
        Status status = copy_struct(args, "hgemm_grouped_args", g);
        if (status == ok)
            status = check_clear(g, pointers_of(h), sizes);
        if (status != ok)
            return status;
        const RowClear what = to_clear(g, sizes);
        return what.rows == 0 || what.columns == 0 || what.matrices() == 0 ? ok : run_clear(h, what);
    });
}
