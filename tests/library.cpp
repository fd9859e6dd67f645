#include "library.hpp"

#include "src/tools/support/environment.hpp"

#include <stdexcept>

namespace hg::test {
namespace {

// One element type's functions; fp16 and bf16 elements are both uint16_t to C.
struct GemmFunctions {
    decltype(&hgemm_nn) short_form[2][2];
    decltype(&hgemm) cblas;
    decltype(&hgemm_strided_batched) strided;
    decltype(&hgemm_batched) batched;
    decltype(&hgemv_n) gemv[2];
};

const GemmFunctions& functions_of(hgemm_type_t type)
{
    static constexpr GemmFunctions f16{{{hgemm_nn, hgemm_nt}, {hgemm_tn, hgemm_tt}},
                                       hgemm,
                                       hgemm_strided_batched,
                                       hgemm_batched,
                                       {hgemv_n, hgemv_t}};
    static constexpr GemmFunctions bf16{{{bgemm_nn, bgemm_nt}, {bgemm_tn, bgemm_tt}},
                                        bgemm,
                                        bgemm_strided_batched,
                                        bgemm_batched,
                                        {bgemv_n, bgemv_t}};
    return type == HGEMM_BF16 ? bf16 : f16;
}

bool is_array(const hgemm_args_t& g) { return g.d_array != nullptr; }

// Has the product nothing that only hgemm_gemm_ex can say?
bool is_plain(const hgemm_args_t& g)
{
    const bool one_c =
        is_array(g) ? g.c_array == g.d_array : g.c == g.d && g.ldc == g.ldd && g.stride_c == g.stride_d;
    return g.type_d == g.type_ab && (g.beta == 0 || (one_c && g.type_c == g.type_d)) && !g.alpha_device &&
           !g.beta_device && g.bias_mode == HGEMM_BIAS_NONE && g.activation == HGEMM_ACTIVATION_NONE &&
           !g.aux && g.uplo == HGEMM_UPLO_NONE && g.gate.block == 0;
}

bool has_short_form(const hgemm_args_t& g)
{
    return g.layout == HGEMM_COL_MAJOR && g.batch_count == 1 && !is_array(g) && g.transa <= HGEMM_TRANS &&
           g.transb <= HGEMM_TRANS;
}

Form pick_form(const hgemm_args_t& g, unsigned turn)
{
    if (turn == 0 || !is_plain(g))
        return Form::General;
    if (turn == 1 && has_short_form(g))
        return Form::Short;
    return is_array(g) ? Form::Batched : g.batch_count != 1 ? Form::Strided : Form::Cblas;
}

}  // namespace

hgemm_status_t call(Form form, hgemm_handle_t h, const hgemm_args_t& g)
{
    using In = const uint16_t*;
    using Out = uint16_t*;
    const GemmFunctions& f = functions_of(g.type_ab);
    const auto a = static_cast<In>(g.a), b = static_cast<In>(g.b);
    const auto d = static_cast<Out>(g.d);
    switch (form) {
    case Form::General: return hgemm_gemm_ex(h, &g);
    case Form::Short:
        return f.short_form[g.transa == HGEMM_TRANS][g.transb == HGEMM_TRANS](
            h, g.m, g.n, g.k, g.alpha, a, g.lda, b, g.ldb, g.beta, d, g.ldd);
    case Form::Cblas:
        return f.cblas(h, g.layout, g.transa, g.transb, g.m, g.n, g.k, g.alpha, a, g.lda, b, g.ldb, g.beta,
                       d, g.ldd);
    case Form::Strided:
        return f.strided(h, g.layout, g.transa, g.transb, g.m, g.n, g.k, g.alpha, a, g.lda, g.stride_a, b,
                         g.ldb, g.stride_b, g.beta, d, g.ldd, g.stride_d, g.batch_count);
    case Form::Batched:
        return f.batched(h, g.layout, g.transa, g.transb, g.m, g.n, g.k, g.alpha,
                         reinterpret_cast<const In*>(g.a_array), g.lda,
                         reinterpret_cast<const In*>(g.b_array), g.ldb, g.beta,
                         reinterpret_cast<const Out*>(g.d_array), g.ldd, g.batch_count);
    }
    return HGEMM_STATUS_INTERNAL;
}

std::string function_name(Form form, const hgemm_args_t& g)
{
    const std::string prefix = g.type_ab == HGEMM_BF16 ? "bgemm" : "hgemm";
    switch (form) {
    case Form::General: return "hgemm_gemm_ex";
    case Form::Short:
        return prefix + "_" + (g.transa == HGEMM_TRANS ? 't' : 'n') + (g.transb == HGEMM_TRANS ? 't' : 'n');
    case Form::Cblas: return prefix;
    case Form::Strided: return prefix + "_strided_batched";
    case Form::Batched: return prefix + "_batched";
    }
    return "";
}

hgemm_status_t call_syrk(Syrk form, hgemm_handle_t handle, const hgemm_args_t& g)
{
    const auto* const a = static_cast<const uint16_t*>(g.a);
    const auto* const b = static_cast<const uint16_t*>(g.b);
    auto* const c = static_cast<uint16_t*>(g.d);
    const bool half = g.type_ab == HGEMM_F16;
    switch (form) {
    case Syrk::One:
        return (half ? hsyrk : bsyrk)(handle, g.layout, g.uplo, g.transa, g.n, g.k, g.alpha, a, g.lda,
                                      g.beta, c, g.ldd);
    case Syrk::Two:
        return (half ? hsyrkx : bsyrkx)(handle, g.layout, g.uplo, g.transa, g.n, g.k, g.alpha, a, g.lda, b,
                                        g.ldb, g.beta, c, g.ldd);
    case Syrk::Strided:
        return (half ? hsyrk_strided_batched : bsyrk_strided_batched)(
            handle, g.layout, g.uplo, g.transa, g.n, g.k, g.alpha, a, g.lda, g.stride_a, g.beta, c, g.ldd,
            g.stride_d, g.batch_count);
    }
    return HGEMM_STATUS_INTERNAL;
}

hgemm_status_t call_gemv(hgemm_handle_t h, const GemvArgs& g)
{
    return functions_of(g.type).gemv[g.trans != HGEMM_NO_TRANS](
        h, g.m, g.n, g.alpha, static_cast<const uint16_t*>(g.a), g.lda, static_cast<const uint16_t*>(g.x),
        g.incx, g.beta, static_cast<uint16_t*>(g.y), g.incy);
}

Library::Library(Cuda* cuda, std::string backend, std::string kernel)
    : cuda_(cuda), kernel_(std::move(kernel))
{
    if (cuda)
        memory_ = std::make_unique<DeviceMemory>(*cuda);
    else
        memory_ = std::make_unique<HostMemory>();
    const Variable backend_variable("HGEMM_BACKEND", backend), kernel_variable("HGEMM_KERNEL", kernel_);
    if (hgemm_create_on(&handle_, cuda ? 0 : HGEMM_DEVICE_HOST) != HGEMM_STATUS_SUCCESS)
        story_ = hgemm_last_error();
}

Library::~Library() { hgemm_destroy(handle_); }

hgemm_status_t Library::start(const hgemm_args_t& g)
{
    const Form form = pick_form(g, turn_++ % 3);
    const hgemm_status_t status = call(form, handle_, g);
    story_ = status == HGEMM_STATUS_SUCCESS ? function_name(form, g) : hgemm_last_error();
    return status;
}

hgemm_status_t Library::gemv(const GemvArgs& g)
{
    const hgemm_status_t status = call_gemv(handle_, g);
    story_ = status == HGEMM_STATUS_SUCCESS ? "" : hgemm_last_error();
    return wait(status);
}

hgemm_status_t Library::wait(hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS || !cuda_)
        return status;
    try {
        cuda_->wait();
    } catch (const std::runtime_error& error) {
        story_ += std::string(": ") + error.what();
        return HGEMM_STATUS_DRIVER_ERROR;
    }
    return status;
}

hgemm_status_t Library::run(const hgemm_args_t& args) { return wait(start(args)); }

bool Library::set_batch_invariant(bool on)
{
    // The host's other kernels do not have the mode, but are promised not to fail at what needs none.
    if (on && !cuda_ && forced() && kernel_ != "host_packed")
        return false;
    return hgemm_set_mode(handle_, on ? HGEMM_MODE_BATCH_INVARIANT : HGEMM_MODE_DEFAULT) ==
           HGEMM_STATUS_SUCCESS;
}

std::string Library::explain(const hgemm_args_t& args) const
{
    char text[512] = "";
    return hgemm_explain(handle_, &args, text, sizeof text) == HGEMM_STATUS_SUCCESS ? text
                                                                                    : hgemm_last_error();
}

}  // namespace hg::test
