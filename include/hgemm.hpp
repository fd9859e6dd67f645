// libhgemm for C++20, header-only: a handle that frees itself, results instead of statuses, spans whose
// sizes are checked. Everything in hgemm.h works beside it; the namespace cannot be called hgemm because a
// function is. Nothing here throws but what std::string throws without memory.
#ifndef HGEMM_HPP
#define HGEMM_HPP

#include "hgemm.h"

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace libhgemm {

struct Error {
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    int argument = 0;  // 1-based position in the C function, 0 if no argument of it was wrong
    std::string message;
};

// A value or the error that came in its place, as std::expected of C++23. Either may be asked for only if
// it is there.
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Error error) : error_(std::move(error)) {}

    bool has_value() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    T& value() &
    {
        assert(has_value());
        return *value_;
    }
    const T& value() const&
    {
        assert(has_value());
        return *value_;
    }
    T&& value() &&
    {
        assert(has_value());
        return *std::move(value_);
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    const Error& error() const
    {
        assert(!has_value());
        return error_;
    }

private:
    std::optional<T> value_;
    Error error_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    const Error& error() const
    {
        assert(!has_value());
        return *error_;
    }

private:
    std::optional<Error> error_;
};

using Status = Result<void>;

// The error of the call that this thread has just made.
inline Error last_error(hgemm_status_t status)
{
    return {status, hgemm_last_error_argument(), hgemm_last_error()};
}

inline Status to_status(hgemm_status_t status)
{
    return status == HGEMM_STATUS_SUCCESS ? Status() : Status(last_error(status));
}

// The half-precision numbers as types of their own, with the memory layout of their bits (and of CUDA's
// __half and __nv_bfloat16).
struct Half {
    hgemm_half_t bits;
};
struct Bfloat16 {
    hgemm_bfloat16_t bits;
};
static_assert(sizeof(Half) == 2 && sizeof(Bfloat16) == 2);

template <typename T>
inline constexpr hgemm_type_t type_of = {};
template <>
inline constexpr hgemm_type_t type_of<Half> = HGEMM_F16;
template <>
inline constexpr hgemm_type_t type_of<Bfloat16> = HGEMM_BF16;
template <>
inline constexpr hgemm_type_t type_of<float> = HGEMM_F32;

template <typename T>
concept Element = std::same_as<T, Half> || std::same_as<T, Bfloat16> || std::same_as<T, float>;
template <typename T>
concept HalfElement = std::same_as<T, Half> || std::same_as<T, Bfloat16>;

namespace detail {

template <typename Struct>
Struct initialised(void (*init)(Struct*, size_t))
{
    Struct value;
    init(&value, sizeof value);
    return value;
}

}  // namespace detail

// The structs of the C API with their defaults.
inline hgemm_args_t make_args() { return detail::initialised(hgemm_args_init); }
inline hgemm_grouped_args_t make_grouped_args() { return detail::initialised(hgemm_grouped_args_init); }
inline hgemm_gate_gradient_args_t make_gate_gradient_args()
{
    return detail::initialised(hgemm_gate_gradient_args_init);
}
inline hgemm_route_args_t make_route_args() { return detail::initialised(hgemm_route_args_init); }
inline hgemm_rows_args_t make_rows_args() { return detail::initialised(hgemm_rows_args_init); }
inline hgemm_exchange_args_t make_exchange_args() { return detail::initialised(hgemm_exchange_args_init); }
inline hgemm_blocks_t make_blocks() { return detail::initialised(hgemm_blocks_init); }
inline hgemm_tune_options_t make_tune_options() { return detail::initialised(hgemm_tune_options_init); }

// A matrix in memory that the handle computes on: elements that lie in `data`, stored lines `ld` apart. The
// span says how much memory there is; it is never read through, so device memory is as good.
template <typename T>
struct Matrix {
    std::span<T> data;
    int64_t ld;
};

// C = activation(alpha * op(A) * op(B) + beta * C) with op(A) m x k and op(B) k x n. With gates C is half
// as wide, and beta must be 0.
struct Gemm {
    int64_t m = 0, n = 0, k = 0;
    hgemm_layout_t layout = HGEMM_ROW_MAJOR;
    hgemm_op_t transa = HGEMM_NO_TRANS, transb = HGEMM_NO_TRANS;
    float alpha = 1, beta = 0;
    hgemm_uplo_t uplo = HGEMM_UPLO_NONE;  // else C is square and known to be symmetric
    hgemm_activation_t activation = HGEMM_ACTIVATION_NONE;
    hgemm_gate_t gate = {};
};

// A symmetric C = alpha * op(A) * transpose(op(A)) + beta * C with op(A) n x k.
struct Syrk {
    int64_t n = 0, k = 0;
    hgemm_layout_t layout = HGEMM_ROW_MAJOR;
    hgemm_uplo_t uplo = HGEMM_BOTH;
    hgemm_op_t trans = HGEMM_NO_TRANS;
    float alpha = 1, beta = 0;
};

namespace detail {

// Does a span hold `rows` x `columns` elements? What else may be wrong with sizes the library tells.
template <typename T>
Status check_span(const char* name, const Matrix<T>& matrix, hgemm_layout_t layout, hgemm_op_t op,
                  int64_t rows, int64_t columns)
{
    const bool by_rows = (layout == HGEMM_ROW_MAJOR) == (op == HGEMM_NO_TRANS);
    const int64_t lines = by_rows ? rows : columns, length = by_rows ? columns : rows;
    if (lines <= 0 || length <= 0 || matrix.ld < length)
        return {};
    const auto size = static_cast<uint64_t>(matrix.data.size());
    // Lines that fit, without a product that could overflow.
    const bool holds = size >= static_cast<uint64_t>(length) &&
                       (size - static_cast<uint64_t>(length)) / static_cast<uint64_t>(matrix.ld) >=
                           static_cast<uint64_t>(lines - 1);
    if (holds)
        return {};
    return Error{HGEMM_STATUS_INVALID_ARGUMENT, 0,
                 std::string(name) + " has " + std::to_string(size) + " elements, too few for " +
                     std::to_string(lines) + " lines of " + std::to_string(length) + ", " +
                     std::to_string(matrix.ld) + " apart"};
}

}  // namespace detail

// Owns an hgemm_handle_t. Used by one thread at a time; may be moved to another one.
class Handle {
public:
    static Result<Handle> create()
    {
        Handle handle;
        const hgemm_status_t status = hgemm_create(&handle.handle_);
        return status == HGEMM_STATUS_SUCCESS ? Result<Handle>(std::move(handle)) : last_error(status);
    }
    static Result<Handle> create_on(int device)
    {
        Handle handle;
        const hgemm_status_t status = hgemm_create_on(&handle.handle_, device);
        return status == HGEMM_STATUS_SUCCESS ? Result<Handle>(std::move(handle)) : last_error(status);
    }
    // With a workspace of so many bytes instead of what the backend asks for.
    static Result<Handle> create_sized(int device, std::size_t workspace_bytes)
    {
        Handle handle;
        const hgemm_status_t status = hgemm_create_sized(&handle.handle_, device, workspace_bytes);
        return status == HGEMM_STATUS_SUCCESS ? Result<Handle>(std::move(handle)) : last_error(status);
    }

    Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Handle() { hgemm_destroy(handle_); }

    hgemm_handle_t get() const noexcept { return handle_; }  // for the functions of hgemm.h
    std::string_view backend() const { return hgemm_backend(handle_); }

    Status set_stream(hgemm_stream_t stream) { return to_status(hgemm_set_stream(handle_, stream)); }
    Result<hgemm_stream_t> stream() const
    {
        hgemm_stream_t stream = nullptr;
        const hgemm_status_t status = hgemm_get_stream(handle_, &stream);
        return status == HGEMM_STATUS_SUCCESS ? Result<hgemm_stream_t>(stream) : last_error(status);
    }
    // The memory must stay there until the handle has another one.
    Status set_workspace(std::span<std::byte> memory)
    {
        return to_status(
            hgemm_set_workspace(handle_, memory.empty() ? nullptr : memory.data(), memory.size()));
    }
    // The one in use; its memory is the device's for a handle on a GPU.
    // See hgemm_set_workspace_per_stream(): one of at most so many bytes for each stream and each graph.
    Status set_workspace_per_stream(std::size_t bytes)
    {
        return to_status(hgemm_set_workspace_per_stream(handle_, bytes));
    }
    Result<std::size_t> workspace_per_stream() const
    {
        std::size_t bytes = 0;
        const hgemm_status_t status = hgemm_get_workspace_per_stream(handle_, &bytes);
        if (status != HGEMM_STATUS_SUCCESS)
            return last_error(status);
        return bytes;
    }
    Result<std::span<std::byte>> workspace() const
    {
        void* memory = nullptr;
        std::size_t bytes = 0;
        const hgemm_status_t status = hgemm_get_workspace(handle_, &memory, &bytes);
        if (status != HGEMM_STATUS_SUCCESS)
            return last_error(status);
        return std::span(static_cast<std::byte*>(memory), bytes);
    }
    Status set_mode(hgemm_mode_t mode) { return to_status(hgemm_set_mode(handle_, mode)); }
    Result<hgemm_mode_t> mode() const
    {
        hgemm_mode_t mode = HGEMM_MODE_DEFAULT;
        const hgemm_status_t status = hgemm_get_mode(handle_, &mode);
        return status == HGEMM_STATUS_SUCCESS ? Result<hgemm_mode_t>(mode) : last_error(status);
    }
    // 0: all.
    Status set_sm_count(int count) { return to_status(hgemm_set_sm_count(handle_, count)); }
    Result<int> sm_count() const
    {
        int count = 0;
        const hgemm_status_t status = hgemm_get_sm_count(handle_, &count);
        return status == HGEMM_STATUS_SUCCESS ? Result<int>(count) : last_error(status);
    }
    // CUDA's number of it, or HGEMM_DEVICE_HOST.
    Result<int> device() const
    {
        int device = HGEMM_DEVICE_HOST;
        const hgemm_status_t status = hgemm_get_device(handle_, &device);
        return status == HGEMM_STATUS_SUCCESS ? Result<int>(device) : last_error(status);
    }

    template <HalfElement T, Element U>
    Status multiply(const Gemm& gemm, Matrix<const T> a, Matrix<const T> b, Matrix<U> c)
    {
        const bool reads_ab = gemm.k != 0 && gemm.alpha != 0.0f;
        if (reads_ab) {
            if (Status s = detail::check_span("A", a, gemm.layout, gemm.transa, gemm.m, gemm.k); !s)
                return s;
            if (Status s = detail::check_span("B", b, gemm.layout, gemm.transb, gemm.k, gemm.n); !s)
                return s;
        }
        const int64_t halves = gemm.gate.block == 0 ? 1 : 2;
        const bool by_rows = gemm.layout == HGEMM_ROW_MAJOR;
        if (Status s =
                detail::check_span("C", c, gemm.layout, HGEMM_NO_TRANS, by_rows ? gemm.m : gemm.m / halves,
                                   by_rows ? gemm.n / halves : gemm.n);
            !s)
            return s;
        hgemm_args_t args = make_args();
        args.layout = gemm.layout;
        args.transa = gemm.transa;
        args.transb = gemm.transb;
        args.type_ab = type_of<T>;
        args.type_c = args.type_d = type_of<U>;
        args.m = gemm.m;
        args.n = gemm.n;
        args.k = gemm.k;
        args.alpha = gemm.alpha;
        args.beta = gemm.beta;
        args.a = a.data.data();
        args.lda = a.ld;
        args.b = b.data.data();
        args.ldb = b.ld;
        args.c = args.d = c.data.data();
        args.ldc = args.ldd = c.ld;
        args.uplo = gemm.uplo;
        args.activation = gemm.activation;
        args.gate = gemm.gate;
        return run(args);
    }
    // All of C must lie in its span, whatever half is asked for.
    template <HalfElement T, Element U>
    Status multiply_symmetric(const Syrk& syrk, Matrix<const T> a, Matrix<U> c)
    {
        const Gemm gemm{.m = syrk.n,
                        .n = syrk.n,
                        .k = syrk.k,
                        .layout = syrk.layout,
                        .transa = syrk.trans,
                        .transb = syrk.trans == HGEMM_NO_TRANS ? HGEMM_TRANS : HGEMM_NO_TRANS,
                        .alpha = syrk.alpha,
                        .beta = syrk.beta,
                        .uplo = syrk.uplo};
        return multiply(gemm, a, a, c);
    }

    // The general forms; nothing is known of what their pointers point to.
    Status run(const hgemm_args_t& args) { return to_status(hgemm_gemm_ex(handle_, &args)); }
    Status run(const hgemm_grouped_args_t& args) { return to_status(hgemm_grouped_ex(handle_, &args)); }

    // See hgemm_gate_gradient().
    Status gate_gradient(const hgemm_gate_gradient_args_t& args)
    {
        return to_status(hgemm_gate_gradient(handle_, &args));
    }

    // Mixtures of experts. See hgemm_route(), hgemm_gather_rows(), hgemm_combine_rows(), hgemm_dot_rows()
    // and hgemm_clear_rows().
    Status route(const hgemm_route_args_t& args) { return to_status(hgemm_route(handle_, &args)); }
    Status gather_rows(const hgemm_rows_args_t& args)
    {
        return to_status(hgemm_gather_rows(handle_, &args));
    }
    Status combine_rows(const hgemm_rows_args_t& args)
    {
        return to_status(hgemm_combine_rows(handle_, &args));
    }
    Status dot_rows(const hgemm_rows_args_t& args) { return to_status(hgemm_dot_rows(handle_, &args)); }
    Status clear_rows(const hgemm_grouped_args_t& args)
    {
        return to_status(hgemm_clear_rows(handle_, &args));
    }

    // Across streams and GPUs. See hgemm_exchange(), hgemm_gemm_blocks() and hgemm_read_error().
    Status exchange(const hgemm_exchange_args_t& args) { return to_status(hgemm_exchange(handle_, &args)); }
    Status run(const hgemm_args_t& args, const hgemm_blocks_t& blocks)
    {
        return to_status(hgemm_gemm_blocks(handle_, &args, &blocks));
    }
    Status read_error(const uint32_t* error) { return to_status(hgemm_read_error(handle_, error)); }

    // Measures which kernel later calls use; also for grouped products. The texts of the report are the
    // handle's, until it tunes again or ends.
    Result<hgemm_tune_report_t> tune(const hgemm_args_t& args,
                                     const hgemm_tune_options_t& options = make_tune_options())
    {
        return tune_by(hgemm_tune, args, options);
    }
    Result<hgemm_tune_report_t> tune(const hgemm_grouped_args_t& args,
                                     const hgemm_tune_options_t& options = make_tune_options())
    {
        return tune_by(hgemm_tune_grouped, args, options);
    }

    Result<size_t> workspace_size(const hgemm_args_t& args) const
    {
        size_t bytes = 0;
        const hgemm_status_t status = hgemm_workspace_size(handle_, &args, &bytes);
        return status == HGEMM_STATUS_SUCCESS ? Result<size_t>(bytes) : last_error(status);
    }
    Result<std::string> explain(const hgemm_args_t& args) const
    {
        std::array<char, 1024> text{};
        const hgemm_status_t status = hgemm_explain(handle_, &args, text.data(), text.size());
        return status == HGEMM_STATUS_SUCCESS ? Result<std::string>(text.data()) : last_error(status);
    }

private:
    Handle() = default;

    template <typename Function, typename Args>
    Result<hgemm_tune_report_t> tune_by(Function function, const Args& args,
                                        const hgemm_tune_options_t& options)
    {
        hgemm_tune_report_t report;
        hgemm_tune_report_init(&report, sizeof report);
        const hgemm_status_t status = function(handle_, &args, &options, &report);
        return status == HGEMM_STATUS_SUCCESS ? Result<hgemm_tune_report_t>(report) : last_error(status);
    }

    hgemm_handle_t handle_ = nullptr;
};

}  // namespace libhgemm

#endif
