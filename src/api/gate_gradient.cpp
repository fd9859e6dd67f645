// The C API of the gradients of gated results.
#include "src/api/general_form.hpp"
#include "src/check/canonical.hpp"
#include "src/check/gate.hpp"
#include "src/plan/gate.hpp"
#include "src/run/gate.hpp"
#include "src/run/handle.hpp"

namespace hg {
namespace {

GateGradient to_gradient(const hgemm_gate_gradient_args_t& x)
{
    return {x.rows,
            x.columns / 2,
            x.product,
            x.ld_product,
            x.of_d,
            x.ld_of_d,
            x.of_product,
            x.ld_of_product,
            static_cast<Type>(x.type_product),
            static_cast<Type>(x.type_of_d),
            static_cast<Type>(x.type_of_product),
            static_cast<Activation>(x.activation),
            to_gate(x.gate)};
}

}  // namespace
}  // namespace hg

using namespace hg;

extern "C" void hgemm_gate_gradient_args_init(hgemm_gate_gradient_args_t* args, size_t size)
{
    hgemm_gate_gradient_args_t defaults{};
    defaults.type_product = defaults.type_of_d = defaults.type_of_product = HGEMM_F16;
    fill_struct(args, size, defaults);
}

extern "C" hgemm_status_t hgemm_gate_gradient(hgemm_handle_t handle, const hgemm_gate_gradient_args_t* args)
{
    return with_handle("hgemm_gate_gradient", handle, [&](Handle& h) {
        hgemm_gate_gradient_args_t x;
        Status status = copy_struct(args, "hgemm_gate_gradient_args", x);
        if (status == ok)
            status = check_gate_gradient(x, pointers_of(h));
        if (status != ok || x.rows == 0 || x.columns == 0)
            return status;
        return run_gate_gradient(h, to_gradient(x));
    });
}
