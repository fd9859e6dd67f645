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
            static_cast<Type>(x.type_weights)};
}

Status move_rows(const char* function, hgemm_handle_t handle, const hgemm_rows_args_t* args, Rows how)
{
    return with_handle(function, handle, [&](Handle& h) {
        hgemm_rows_args_t x;
        Status status = copy_struct(args, "hgemm_rows_args", x);
        if (status == ok)
            status = check_rows(x, how, pointers_of(h));
        if (status != ok || x.tokens == 0 || x.columns == 0)
            return status;
        return run_rows(h, to_move(x, how));
    });
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
    defaults.type_a = defaults.type_d = defaults.type_weights = HGEMM_F16;
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
