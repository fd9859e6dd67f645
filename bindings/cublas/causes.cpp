#include "causes.hpp"

#include "driver.hpp"

#include "src/base/convert.hpp"

#include <cmath>
#include <string_view>

namespace hg::shim {
namespace {

constexpr const char* texts[] = {
    "in problems with a pointer that is no multiple of 16 bytes: cuBLAS 13.1 computes these wrong",
    "alpha is 0 in device memory: cuBLAS reads A and B all the same",
    "beta is 1: cuBLAS has rounded the product before it added C",
    "cublasHgemm: cuBLAS adds in fp16, libhgemm in fp32",
    "GELU: that of cuBLASLt is NaN for -infinity and 0 from about -5 down",
    "perhaps as a pointer or leading dimension is no multiple of 16 bytes: if cuBLAS splits K then, it "
    "adds "
    "sums of 16 bits",
    "why is not known: sums in another order, or an error",
};
static_assert(std::size(texts) == cause_count);

bool is_off(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 != 0; }

bool is_misaligned(const hgemm_args_t& args)
{
    const int64_t line_d = args.type_d == HGEMM_F32 ? 4 : 8;  // elements in 16 bytes
    if (args.lda % 8 != 0 || args.ldb % 8 != 0 || args.ldd % line_d != 0)
        return true;
    return !args.d_array &&
           (is_off(args.a) || is_off(args.b) || is_off(args.c) || is_off(args.d) || is_off(args.bias));
}

}  // namespace

const char* text_of(Cause cause) { return texts[static_cast<size_t>(cause)]; }

bool may_round_twice(const hgemm_args_t& args)
{
    const bool in_place =
        args.ldc == args.ldd && args.type_c == args.type_d &&
        (args.d_array ? args.c_array == args.d_array : args.c == args.d && args.stride_c == args.stride_d);
    return in_place && !args.beta_device && args.beta == 1 && args.type_d != HGEMM_F32 &&
           args.bias_mode == HGEMM_BIAS_NONE && args.activation == HGEMM_ACTIVATION_NONE;
}

float round_again(const hgemm_args_t& args, float product, float c)
{
    return args.type_d == HGEMM_F16 ? half_to_float(float_to_half(product + c))
                                    : bfloat16_to_float(float_to_bfloat16(product + c));
}

Causes::Causes(Product product, const hgemm_args_t& args, void* stream)
    : args_(args), half_sums_(std::string_view(name_of(product)).starts_with("cublasHgemm")),
      misaligned_(is_misaligned(args))
{
    if (args.d_array || args.alpha_device)
        read_device(stream);
}

void Causes::read_device(void* stream)
{
    const driver::AllowWhileRecording allow;
    const auto read = [&](void* to, const void* from, size_t bytes) {
        return driver::copy_out(to, from, bytes, stream) && driver::wait(stream);
    };
    if (float alpha = 1; args_.alpha_device && read(&alpha, args_.alpha_device, sizeof alpha))
        alpha_is_0_ = alpha == 0;
    if (!args_.d_array)
        return;
    const auto count = static_cast<size_t>(args_.batch_count);
    off_.resize(count);
    std::vector<const void*> pointers(count);
    for (const void* list :
         {static_cast<const void*>(args_.a_array), static_cast<const void*>(args_.b_array),
          static_cast<const void*>(args_.d_array)})
        if (read(pointers.data(), list, count * sizeof pointers[0]))
            for (size_t i = 0; i < count; ++i)
                off_[i] = off_[i] || is_off(pointers[i]);
}

Cause Causes::of(const Pair& pair, bool rounds_twice) const
{
    if (!off_.empty() && off_[pair.problem])
        return Cause::Pointers;
    if (alpha_is_0_ && std::isnan(pair.theirs))
        return Cause::Alpha;
    if (rounds_twice)
        return Cause::RoundsTwice;
    if (half_sums_)
        return Cause::HalfSums;
    if (args_.activation == HGEMM_ACTIVATION_GELU_TANH && std::abs(pair.ours) < 0x1p-18f &&
        (pair.theirs == 0 || std::isnan(pair.theirs)))
        return Cause::Gelu;
    return misaligned_ ? Cause::Misaligned : Cause::Unknown;
}

}  // namespace hg::shim
