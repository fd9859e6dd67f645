// XLA's handlers: products of arrays on the CPU and on CUDA devices, for jax.ffi and other programs that
// use XLA.
//
// Arguments: a, b and perhaps c, which has as many dimensions as d, or a bias, which has one fewer;
// results: d, perhaps aux, and a workspace of bytes, which XLA plans as it does all memory, so that
// products that run at the same time never share one. Attributes of type int32: transpose_a, transpose_b,
// symmetric (d is known to be, and half of it is computed), batch_invariant and activation
// (hgemm_activation_t); of type float32: alpha and beta.
#include "call.hpp"
#include "handles.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

namespace hg::xla {
namespace {

size_t size_of(hgemm_type_t type) { return type == HGEMM_F32 ? 4 : 2; }

// Leading dimensions that are walked in one loop: their length, and how far apart matrices lie in each
// operand, 0 where they are shared. aux lies as d does.
struct Axis {
    int64_t count, a, b, c, bias, d;

    bool continues(const Axis& inner) const
    {
        return a == inner.a * inner.count && b == inner.b * inner.count && c == inner.c * inner.count &&
               bias == inner.bias * inner.count && d == inner.d * inner.count;
    }
};

// From the innermost outwards.
class Axes {
public:
    void add(const Axis& axis)
    {
        if (axis.count == 1)
            return;
        if (size_ > 0 && axis.continues(axes_[size_ - 1])) {
            axes_[size_ - 1].count *= axis.count;
            return;
        }
        if (size_ == axes_.size())
            throw Refusal(code_unimplemented,
                          "a and b are shared along too many leading dimensions in turn");
        axes_[size_++] = axis;
    }
    std::span<const Axis> all() const { return {axes_.data(), size_}; }

private:
    std::array<Axis, 8> axes_;
    size_t size_ = 0;
};

Axes axes_of(const Call& call, const hgemm_args_t& args)
{
    Axes axes;
    Axis next{1, args.m * args.k, args.k * args.n, args.m * args.n, args.n, args.m * args.n};
    const auto step = [](const Matrices& operand, size_t i, int64_t& distance) {
        const int64_t length = operand.type ? operand.dims[i] : 1;
        const int64_t here = length == 1 ? 0 : distance;
        distance *= length;
        return here;
    };
    for (size_t i = call.d.dims.size() - 2; i-- > 0;)
        axes.add({call.d.dims[i], step(call.a, i, next.a), step(call.b, i, next.b), step(call.c, i, next.c),
                  step(call.bias, i, next.bias), step(call.d, i, next.d)});
    return axes;
}

hgemm_args_t arguments_of(const Call& call)
{
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    const size_t rank = call.d.dims.size();
    args.layout = HGEMM_ROW_MAJOR;
    args.type_ab = call.a.type;
    args.type_c = call.c.type ? call.c.type : call.d.type;
    args.type_d = call.d.type;
    args.transa = call.transpose_a ? HGEMM_TRANS : HGEMM_NO_TRANS;
    args.transb = call.transpose_b ? HGEMM_TRANS : HGEMM_NO_TRANS;
    args.m = call.d.dims[rank - 2];
    args.n = call.d.dims[rank - 1];
    args.k = call.a.dims[call.transpose_a ? rank - 2 : rank - 1];
    args.lda = std::max<int64_t>(1, call.a.dims[rank - 1]);
    args.ldb = std::max<int64_t>(1, call.b.dims[rank - 1]);
    args.ldc = args.ldd = args.ldaux = std::max<int64_t>(1, args.n);
    args.alpha = call.alpha;
    args.beta = call.beta;
    args.uplo = call.symmetric ? HGEMM_BOTH : HGEMM_UPLO_NONE;
    args.a = call.a.data;
    args.b = call.b.data;
    args.c = call.c.data;
    args.d = call.d.data;
    args.aux = call.aux.data;
    if (call.bias.type) {
        args.bias_mode = HGEMM_BIAS_N;
        args.bias_type = call.bias.type;
        args.bias = call.bias.data;
    }
    args.activation = call.activation;
    return args;
}

template <typename T>
void advance(T*& pointer, int64_t elements, hgemm_type_t type)
{
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    if (pointer)
        pointer = static_cast<Byte*>(pointer) + elements * static_cast<int64_t>(size_of(type));
}

// A product for each index of the outer axes.
void run(hgemm_handle_t handle, hgemm_args_t args, std::span<const Axis> outer)
{
    if (outer.empty())
        return require(hgemm_gemm_ex(handle, &args));
    const Axis& axis = outer.back();
    for (int64_t i = 0; i < axis.count; ++i) {
        run(handle, args, outer.first(outer.size() - 1));
        advance(args.a, axis.a, args.type_ab);
        advance(args.b, axis.b, args.type_ab);
        advance(args.c, axis.c, args.type_c);
        advance(args.bias, axis.bias, args.bias_type);
        advance(args.d, axis.d, args.type_d);
        advance(args.aux, axis.d, args.type_d);
    }
}

// Are the problems along the axis more rows of one? They have one B and one bias, and rows of A and C.
bool is_more_rows(const hgemm_args_t& args, const Axis& axis)
{
    const bool rows_of_a = args.transa == HGEMM_NO_TRANS && axis.a == args.m * args.k;
    const bool rows_of_c = !args.c || axis.c == args.m * args.n;
    return args.uplo == HGEMM_UPLO_NONE && rows_of_a && rows_of_c && !axis.b && !axis.bias;
}

// The innermost axis is a batch, or more rows.
void run(hgemm_handle_t handle, hgemm_args_t args, const Axes& axes)
{
    std::span<const Axis> outer = axes.all();
    if (!outer.empty() && is_more_rows(args, outer[0])) {
        args.m *= outer[0].count;
        outer = outer.subspan(1);
    }
    if (!outer.empty()) {
        args.batch_count = outer[0].count;
        args.stride_a = outer[0].a;
        args.stride_b = outer[0].b;
        args.stride_c = outer[0].c;
        args.stride_bias = outer[0].bias;
        args.stride_d = args.stride_aux = outer[0].d;
        outer = outer.subspan(1);
    }
    run(handle, args, outer);
}

void multiply(const CallFrame& frame, bool on_gpu)
{
    const Call call(frame);
    const Lent handle = lend(frame, on_gpu, call.batch_invariant);
    const hgemm_args_t args = arguments_of(call);
    run(handle, args, axes_of(call, args));
}

}  // namespace
}  // namespace hg::xla

extern "C" __attribute__((visibility("default"))) hg::xla::Error*
hgemm_xla_matmul_host(const hg::xla::CallFrame* frame)
{
    return hg::xla::answer(*frame, false, hg::xla::multiply);
}

extern "C" __attribute__((visibility("default"))) hg::xla::Error*
hgemm_xla_matmul_cuda(const hg::xla::CallFrame* frame)
{
    return hg::xla::answer(*frame, true, hg::xla::multiply);
}
