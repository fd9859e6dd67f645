#include "serve.hpp"

#include "describe.hpp"
#include "quietly.hpp"
#include "settings.hpp"
#include "verify.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hg::shim {
namespace {

thread_local int depth = 0;

Reason check_version(const Real& cublas)
{
    if (cublas.major == 0)
        return Reason::Missing;
    return cublas.is_known() ? Reason::None : Reason::Version;
}

// What every call begins with.
Reason check_state(Library library, const Settings& settings)
{
    if (is_nested())
        return Reason::Nested;
    if (settings.serving == Serving::Off)
        return Reason::Off;
    return check_version(real(library));
}

// How the handle of a call of libcublas is set.
Reason read_handle(void* handle, const Settings& settings, Place& place, int& pointer_mode)
{
    if (const Reason reason = check_state(Library::Blas, settings); reason != Reason::None)
        return reason;
    const Real& cublas = real(Library::Blas);
    if (cublas.cublasGetPointerMode_v2(handle, &pointer_mode) != status_success ||
        cublas.cublasGetStream_v2(handle, &place.stream) != status_success)
        return Reason::Arguments;
    cublas.cublasGetSmCountTarget(handle, &place.sm_count);
    place.mode = settings.mode;
    return Reason::None;
}

bool is_pedantic(void* handle)
{
    int math = 0;
    return real(Library::Blas).cublasGetMathMode(handle, &math) != status_success ||
           (math & 15) == math_pedantic;
}

Reason prepare(void* handle, const GemmCall& call, const Settings& settings, Place& place,
               hgemm_args_t& args)
{
    int pointer_mode = 0;
    const Reason reason = read_handle(handle, settings, place, pointer_mode);
    if (reason != Reason::None)
        return reason;
    if (call.follows_math_mode && is_pedantic(handle))
        return Reason::Compute;
    return route(call, pointer_mode, args);
}

Reason prepare(void* handle, const GroupedCall& call, const Settings& settings, Place& place,
               std::vector<hgemm_args_t>& products)
{
    int pointer_mode = 0;
    Reason reason = read_handle(handle, settings, place, pointer_mode);
    if (reason == Reason::None)
        reason = route(call, pointer_mode, products);
    // Arrays of pointers keep TMA away, and nobody asked for what cuBLAS does not promise.
    const bool asked =
        settings.is_batch_invariant() || settings.strict || settings.serving == Serving::Verify;
    return reason == Reason::None && !asked ? Reason::Untimed : reason;
}

// cuBLAS refuses other workspaces, which libhgemm would accept.
bool is_aligned(const Workspace& w) { return reinterpret_cast<uintptr_t>(w.ptr) % sizeof(double) == 0; }

Reason prepare(void* handle, const LtPlace& lt, LtCall& call, const Settings& settings, Place& place,
               hgemm_args_t& args)
{
    if (const Reason reason = check_state(Library::Lt, settings); reason != Reason::None)
        return reason;
    if (!handle || !lt.desc || !lt.layouts.a || !lt.layouts.b || !lt.layouts.d || is_empty(lt.algorithm))
        return Reason::Arguments;
    read_descriptors(real(Library::Lt), lt.desc, lt.layouts, call);
    if (!is_aligned(lt.workspace))
        return Reason::Arguments;
    if (!lt.layouts.c && !ignores_c(call))
        return Reason::Doubtful;
    place = {lt.stream, call.sm_count, settings.mode, true, lt.workspace};
    // An algorithm is a choice of tiles and of how sums are split. In the other modes the user has
    // chosen: what libhgemm splits depends on K alone.
    const Reason reason = settings.is_batch_invariant() ? Reason::None : check(lt.algorithm);
    return reason == Reason::None ? route(call, args) : reason;
}

// Each reason to refuse is logged once, even if nobody asked for a log.
template <typename Call>
void note(Product product, const Call& call, const Outcome& outcome)
{
    const bool first = count(product, outcome);
    if (!logs(LogLevel::Calls) && !(first && outcome.refused))
        return;
    const char* verdict = outcome.reason == Reason::None      ? ""
                          : outcome.reason == Reason::Halfway ? "failed: "
                          : outcome.refused                   ? "refused (HGEMM_SHIM_STRICT): "
                                                              : "passed on: ";
    quietly([&] {
        const bool by_hgemm = outcome.reason == Reason::Refused || outcome.reason == Reason::Halfway;
        const std::string why = outcome.refused && by_hgemm ? std::string(": ") + hgemm_last_error() : "";
        log_line("%s %s: %s%s%s", name_of(product), describe(call).c_str(), verdict,
                 text_of(outcome.reason), why.c_str());
    });
}

template <typename Call>
int finish(Product product, void* handle, const Call& call, const Settings& settings, Reason reason,
           const Place& place, std::span<hgemm_args_t> products, const RealCall& real_call)
{
    if (reason == Reason::None && settings.syrk)
        for (hgemm_args_t& args : products)
            use_symmetry(args);
    std::optional<int> compared;  // the real library's status; D is its result
    if (reason == Reason::None && settings.serving == Serving::Verify)
        compared = verify(product, handle, place, products, real_call, reason);
    else if (reason == Reason::None)
        reason = quietly(Reason::NoHandle, [&] { return multiply(handle, place, products); });
    const bool half = is_half(call), failed = reason == Reason::Halfway;
    const bool refused = failed || (half && settings.strict && !passes_in_strict_mode(reason));
    const bool from_cublas =
        compared || reason == Reason::Off || (!refused && !passes_in_strict_mode(reason));
    note(product, call, {reason, refused, half && settings.is_batch_invariant() && from_cublas});
    if (compared)
        return *compared;
    if (reason == Reason::None)
        return status_success;
    if (failed)
        return status_execution_failed;
    return refused ? status_not_supported : real_call();
}

}  // namespace

bool is_nested() { return depth > 0; }

int RealCall::operator()() const
{
    ++depth;
    const int status = invoke_(call_);
    --depth;
    return status;
}

int serve(Product product, void* handle, const GemmCall& call, const RealCall& real_call)
{
    const Settings settings = current_settings();
    Place place;
    hgemm_args_t args;
    const Reason reason =
        quietly(Reason::NoHandle, [&] { return prepare(handle, call, settings, place, args); });
    return finish(product, handle, call, settings, reason, place, {&args, 1}, real_call);
}

int serve(Product product, void* handle, const GroupedCall& call, const RealCall& real_call)
{
    const Settings settings = current_settings();
    Place place;
    std::vector<hgemm_args_t> products;
    const Reason reason =
        quietly(Reason::NoHandle, [&] { return prepare(handle, call, settings, place, products); });
    return finish(product, handle, call, settings, reason, place, products, real_call);
}

int serve(void* handle, const LtPlace& lt, LtCall& call, const RealCall& real_call)
{
    const Settings settings = current_settings();
    Place place;
    hgemm_args_t args;
    const Reason reason =
        quietly(Reason::NoHandle, [&] { return prepare(handle, lt, call, settings, place, args); });
    return finish(Product::cublasLtMatmul, handle, call, settings, reason, place, {&args, 1}, real_call);
}

}  // namespace hg::shim
