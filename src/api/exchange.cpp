// The C API of flags and of sums over several GPUs.
#include "src/check/exchange.hpp"
#include "src/api/general_form.hpp"
#include "src/driver/driver.hpp"
#include "src/plan/exchange.hpp"
#include "src/run/exchange.hpp"
#include "src/run/handle.hpp"

#include <cstdint>
#include <span>

namespace hg {
namespace {

template <typename Pointer>
std::span<Pointer const> span_of(Pointer const* array, int64_t count)
{
    return {array, static_cast<size_t>(count)};
}

Exchange to_exchange(const Handle& handle, const hgemm_exchange_args_t& x)
{
    Exchange e;
    e.raise = span_of(x.raise, x.raise_count);
    e.wait = span_of(x.wait, x.wait_count);
    e.limit_us = x.limit_us;
    e.error = x.error;
    e.raise_after = span_of(x.raise_after, x.raise_after_count);
    if (x.d_count == 0 || x.rows == 0 || x.columns == 0)
        return e;
    e.rows = x.rows;
    e.columns = x.columns;
    e.parts = span_of(x.parts, x.part_count);
    e.ld_part = x.ld_part;
    e.type_part = static_cast<Type>(x.type_part);
    e.pairwise = handle.options.mode == Mode::Tree;
    e.bias = x.bias;
    e.type_bias = static_cast<Type>(x.bias_type);
    e.d = span_of(x.d, x.d_count);
    e.ldd = x.ldd;
    e.type_d = static_cast<Type>(x.type_d);
    return e;
}

bool does_nothing(const Exchange& e)
{
    return e.raise.empty() && e.wait.empty() && e.rows == 0 && e.raise_after.empty();
}

// The text names what has set the word: see Exchange::error_code.
Status status_of_error(uint32_t error)
{
    if (error == 0)
        return ok;
    if (error == Exchange::code_of_exchange)
        return fail(HGEMM_STATUS_TIMED_OUT, "a flag was not raised in time");
    return fail(HGEMM_STATUS_TIMED_OUT, "the flag of block %u was not raised in time",
                error - Exchange::code_of_block(0));
}

Status read_error(const Handle& handle, const uint32_t* error)
{
    uint32_t value = 0;
    if (!handle.context)
        return status_of_error(*error);
    const driver::Scope scope(handle.context);
    bool capturing = false;
    Status status = scope.status();
    if (status == ok)
        status = driver::is_capturing(handle.stream, capturing);
    if (status == ok && capturing)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "the handle's stream is being captured, and has to be waited for");
    if (status == ok)
        status = driver::copy_out(&value, error, sizeof value, handle.stream);
    if (status == ok)
        status = driver::wait_for(handle.stream);
    return status == ok ? status_of_error(value) : status;
}

}  // namespace
}  // namespace hg

using namespace hg;

extern "C" void hgemm_exchange_args_init(hgemm_exchange_args_t* args, size_t size)
{
    hgemm_exchange_args_t defaults{};
    defaults.type_part = defaults.type_d = defaults.bias_type = HGEMM_F32;
    fill_struct(args, size, defaults);
}

extern "C" hgemm_status_t hgemm_exchange(hgemm_handle_t handle, const hgemm_exchange_args_t* args)
{
    return with_handle("hgemm_exchange", handle, [&](Handle& h) {
        hgemm_exchange_args_t x;
        Status status = copy_struct(args, "hgemm_exchange_args", x);
        if (status == ok)
            status = check_exchange(x, h.options.mode == Mode::Tree, pointers_of(h));
        if (status != ok)
            return status;
        const Exchange exchange = to_exchange(h, x);
        return does_nothing(exchange) ? ok : run_exchange(h, exchange);
    });
}

extern "C" hgemm_status_t hgemm_read_error(hgemm_handle_t handle, const uint32_t* error)
{
    return with_handle("hgemm_read_error", handle, [&](Handle& h) {
        const Status status = check_error_word("error", 2, error, pointers_of(h));
        return status == ok ? read_error(h, error) : status;
    });
}
