#include "src/check/arguments.hpp"

#include "src/base/decimal.hpp"
#include "src/check/aliasing.hpp"
#include "src/check/gate.hpp"
#include "src/check/host_memory.hpp"
#include "src/check/overlap.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <cstdio>

namespace hg {
namespace {

bool contains(const Signature& signature, Arg arg)
{
    return std::ranges::find(signature.args, arg) != signature.args.end();
}

// A batched function without strides takes arrays of pointers.
bool takes_arrays(const Signature& signature)
{
    return contains(signature, Arg::Count) && !contains(signature, Arg::StrideA);
}

class Checker {
public:
    Checker(const Signature& signature, const hgemm_args_t& args, Pointers pointers)
        : signature_(signature), g_(args), pointers_(pointers),
          arrays_(takes_arrays(signature) || args.a_array || args.b_array || args.c_array || args.d_array)
    {
    }

    Status check(Arg arg, int position);

private:
    template <typename... Values>
    Status bad(const char* format, Values... values) const
    {
        return fail_argument(position_, name(), format, values...);
    }

    bool has(Arg arg) const { return contains(signature_, arg); }
    const char* name() const { return name_of(arg_, signature_.in_struct, arrays_); }

    Status check_scalar();
    Status check_uplo() const;
    Status check_matrix();
    Status check_epilogue();

    Status one_of(int value, int low, int high, const char* wanted) const
    {
        return value >= low && value <= high ? ok : bad("is %d, must be %s", value, wanted);
    }
    Status not_negative(int64_t value) const
    {
        return value >= 0 ? ok : bad("is %" PRId64 ", must be at least 0", value);
    }
    Status leading(int64_t ld, const Stored& s, hgemm_type_t type) const
    {
        Stored named = s;
        if (*s.inner_name == 'm' && !has(Arg::M))  // of functions whose D is n x n
            named.inner_name = "n";
        return check_leading(position_, name(), ld, named, element_bytes(type));
    }
    Status stride(const char* name, int64_t value, hgemm_type_t type) const;
    Status matrix_stride(int64_t value, hgemm_type_t type) const
    {
        return arrays_ ? ok : stride(name(), value, type);
    }
    Status output_stride(int64_t value, const Stored& output, int64_t ld) const;
    Status pointer(const void* ptr, const void* const* array, bool needed, hgemm_type_t type) const;
    Status pointers_of(const void* const* array, hgemm_type_t type) const;
    Status scalar_pointer(const void* ptr) const;
    Status aliased_c() const;

    const Signature& signature_;
    const hgemm_args_t& g_;
    Pointers pointers_;
    const bool arrays_;  // problems are given by arrays of pointers
    Arg arg_{};
    int position_ = 0;
};

// The stride of a single problem is not used.
Status Checker::stride(const char* name, int64_t value, hgemm_type_t type) const
{
    if (g_.batch_count > 1 && is_too_far(value, g_.batch_count, element_bytes(type)))
        return fail_argument(position_, name,
                             "is %" PRId64 ", too large: %" PRId64 " problems must stay within 2^62 bytes",
                             value, g_.batch_count);
    return ok;
}

Status Checker::output_stride(int64_t value, const Stored& output, int64_t ld) const
{
    if (g_.batch_count < 2 || arrays_ || is_empty(g_))
        return ok;
    if (value == 0)
        return bad("is 0, must separate the outputs of %" PRId64 " problems", g_.batch_count);
    if (const int64_t distance =
            overlapping_distance(value, g_.batch_count, output.outer, ld, output.inner))
        return bad("is %" PRId64 ", must separate the outputs of %" PRId64
                   " problems: those of problems 0 and %" PRId64 " share elements",
                   value, g_.batch_count, distance);
    return stride(name(), value, g_.type_d);
}

// Checks the entries of an array that the CPU can read.
Status Checker::pointers_of(const void* const* array, hgemm_type_t type) const
{
    for (int64_t i = 0; i < g_.batch_count; ++i) {
        char entry[40];
        const bool wrong = !array[i] || reinterpret_cast<uintptr_t>(array[i]) % element_bytes(type) != 0;
        if (!wrong && i > 0)
            continue;
        std::snprintf(entry, sizeof entry, "%s[%" PRId64 "]", name(), i);
        if (const Status status = check_pointer(position_, entry, array[i], element_bytes(type), pointers_);
            status != ok)
            return status;
    }
    return ok;
}

Status Checker::pointer(const void* ptr, const void* const* array, bool needed, hgemm_type_t type) const
{
    if (pointers_ == Pointers::Unchecked || !needed)
        return ok;
    if (!arrays_)
        return check_pointer(position_, name(), ptr, element_bytes(type), pointers_);
    if (!array)
        return bad("is NULL, must be an array of %" PRId64 " pointers", g_.batch_count);
    if (reinterpret_cast<uintptr_t>(array) % alignof(void*) != 0)
        return bad("is %p, must be aligned to %zu bytes", static_cast<const void*>(array), alignof(void*));
    if (pointers_ != Pointers::OnHost)
        return ok;
    const Status status = check_host_memory(position_, name(), array);
    return status == ok ? pointers_of(array, type) : status;
}

Status Checker::scalar_pointer(const void* ptr) const
{
    if (reinterpret_cast<uintptr_t>(ptr) % alignof(float) != 0)
        return bad("is %p, must be aligned to 4 bytes", ptr);
    return ptr && pointers_ == Pointers::OnHost ? check_host_memory(position_, name(), ptr) : ok;
}

// D may be C itself. Any other overlap would read elements that were already written.
Status Checker::aliased_c() const
{
    const bool same = arrays_ ? g_.c_array && g_.c_array == g_.d_array : g_.c && g_.c == g_.d;
    if (!same || !reads_c(g_))
        return ok;
    const char* d = arrays_ ? "args->d_array" : "args->d";
    if (g_.gate.block != 0)
        return bad("equals %s, which is narrower", d);
    if (g_.type_c != g_.type_d)
        return bad("equals %s, so args->type_c must equal args->type_d", d);
    if (g_.ldc != g_.ldd)
        return bad("equals %s, so args->ldc = %" PRId64 " must equal args->ldd = %" PRId64, d, g_.ldc,
                   g_.ldd);
    if (!arrays_ && g_.batch_count > 1 && g_.stride_c != g_.stride_d)
        return bad("equals %s, so args->stride_c must equal args->stride_d", d);
    return ok;
}

// Half of D is only asked for where D is the plain product of square matrices. What is wrong with the
// members that come later is told there.
Status Checker::check_uplo() const
{
    const char* wanted = "121 (upper), 122 (lower) or 123 (both)";
    if (g_.uplo == HGEMM_UPLO_NONE && signature_.in_struct)
        return ok;
    if (g_.uplo < HGEMM_UPPER || g_.uplo > HGEMM_BOTH)
        return bad(signature_.in_struct ? "is %d, must be 0 (none), %s" : "is %d, must be %s",
                   static_cast<int>(g_.uplo), wanted);
    if (g_.m != g_.n)
        return bad("is %d, so args->m = %" PRId64 " must equal args->n = %" PRId64,
                   static_cast<int>(g_.uplo), g_.m, g_.n);
    const char* const name = g_.bias_mode != HGEMM_BIAS_NONE          ? "args->bias_mode"
                             : g_.activation != HGEMM_ACTIVATION_NONE ? "args->activation"
                             : g_.aux                                 ? "args->aux"
                             : g_.gate.block != 0                     ? "args->gate.block"
                                                                      : nullptr;
    if (name)
        return bad("is %d, so %s must be 0", static_cast<int>(g_.uplo), name);
    return ok;
}

Status Checker::check_scalar()
{
    const char* ops = "111 (NO_TRANS), 112 (TRANS) or 113 (CONJ_TRANS)";
    const char* types = "1 (F16), 2 (BF16) or 3 (F32)";
    switch (arg_) {
    case Arg::Layout: return one_of(g_.layout, 101, 102, "101 (row-major) or 102 (column-major)");
    case Arg::Uplo: return check_uplo();
    case Arg::Gate: return check_gate(position_, g_.gate, g_.activation, stored_c(g_));
    case Arg::Trans:
    case Arg::TransA: return one_of(g_.transa, 111, 113, ops);
    case Arg::TransB: return one_of(g_.transb, 111, 113, ops);
    case Arg::TypeAb: return one_of(g_.type_ab, 1, 2, "1 (F16) or 2 (BF16)");
    case Arg::TypeC: return one_of(g_.type_c, 1, 3, types);
    case Arg::TypeD: return one_of(g_.type_d, 1, 3, types);
    case Arg::M: return not_negative(g_.m);
    case Arg::N: return not_negative(g_.n);
    case Arg::K: return not_negative(g_.k);
    case Arg::Count: return not_negative(g_.batch_count);
    case Arg::Alpha: return scalar_pointer(g_.alpha_device);
    case Arg::Beta: return scalar_pointer(g_.beta_device);
    default: return ok;
    }
}

Status Checker::check_matrix()
{
    const bool writes = !is_empty(g_);
    switch (arg_) {
    case Arg::A: return pointer(g_.a, g_.a_array, reads_ab(g_), g_.type_ab);
    case Arg::B: return pointer(g_.b, g_.b_array, reads_ab(g_), g_.type_ab);
    case Arg::C: {
        const Status status = pointer(g_.c, g_.c_array, reads_c(g_), g_.type_c);
        return status == ok ? aliased_c() : status;
    }
    case Arg::D:
    case Arg::InOut: return pointer(g_.d, g_.d_array, writes, g_.type_d);
    case Arg::Lda: return leading(g_.lda, stored_a(g_), g_.type_ab);
    case Arg::Ldb: return leading(g_.ldb, stored_b(g_), g_.type_ab);
    case Arg::Ldc: return reads_c(g_) ? leading(g_.ldc, stored_c(g_), g_.type_c) : ok;
    case Arg::Ldd:
    case Arg::LdInOut: return leading(g_.ldd, stored_d(g_), g_.type_d);
    case Arg::StrideA: return matrix_stride(g_.stride_a, g_.type_ab);
    case Arg::StrideB: return matrix_stride(g_.stride_b, g_.type_ab);
    case Arg::StrideC: return reads_c(g_) ? matrix_stride(g_.stride_c, g_.type_c) : ok;
    case Arg::StrideD:
    case Arg::StrideInOut: return output_stride(g_.stride_d, stored_d(g_), g_.ldd);
    default: return ok;
    }
}

Status Checker::check_epilogue()
{
    const bool biased = g_.bias_mode != HGEMM_BIAS_NONE;
    switch (arg_) {
    case Arg::BiasMode: return one_of(g_.bias_mode, 0, 2, "0 (none), 1 (along m) or 2 (along n)");
    case Arg::BiasType: return biased ? one_of(g_.bias_type, 1, 3, "1 (F16), 2 (BF16) or 3 (F32)") : ok;
    case Arg::Bias:
        if (!biased && g_.bias)
            return bad("is %p, must be NULL while args->bias_mode is 0 (none)", g_.bias);
        if (!biased || is_empty(g_))
            return ok;
        if (Status status = stride("args->stride_bias", g_.stride_bias, g_.bias_type);
            status != ok || pointers_ == Pointers::Unchecked)
            return status;
        return check_pointer(position_, name(), g_.bias, element_bytes(g_.bias_type), pointers_);
    case Arg::Activation: return one_of(g_.activation, 0, 4, "an hgemm_activation_t from 0 to 4");
    case Arg::Aux:
        if (g_.aux && arrays_)
            return bad("is set, must be NULL in a batch of pointer arrays");
        return g_.aux ? check_pointer(position_, name(), g_.aux, element_bytes(g_.type_d), pointers_) : ok;
    case Arg::Ldaux: return g_.aux ? leading(g_.ldaux, stored_c(g_), g_.type_d) : ok;
    case Arg::StrideAux: return g_.aux ? output_stride(g_.stride_aux, stored_c(g_), g_.ldaux) : ok;
    case Arg::Flags: return g_.flags == 0 ? ok : bad("is %u, must be 0", g_.flags);
    default: return ok;
    }
}

Status Checker::check(Arg arg, int position)
{
    arg_ = arg;
    position_ = position;
    Status status = check_scalar();
    if (status == ok)
        status = check_matrix();
    return status == ok ? check_epilogue() : status;
}

}  // namespace

int64_t element_bytes(hgemm_type_t type) { return bytes_of(static_cast<Type>(type)); }

bool is_too_far(int64_t step, int64_t count, int64_t element_bytes)
{
    constexpr int64_t limit = int64_t{1} << 62;
    int64_t extent;
    return __builtin_mul_overflow(step, count, &extent) ||
           __builtin_mul_overflow(extent, element_bytes, &extent) || extent >= limit || extent <= -limit;
}

Status check_type(int position, const char* name, hgemm_type_t type)
{
    return HGEMM_F16 <= type && type <= HGEMM_F32
               ? ok
               : fail_argument(position, name, "is %d, must be 1 (F16), 2 (BF16) or 3 (F32)",
                               static_cast<int>(type));
}

Status check_leading(int position, const char* name, int64_t ld, const Stored& s, int64_t bytes)
{
    if (s.inner == 0 && ld < 1)
        return fail_argument(position, name, "is %" PRId64 ", must be at least max(1, %s) = 1", ld,
                             s.inner_name);
    if (ld < s.inner)
        return fail_argument(position, name, "is %" PRId64 ", must be at least %s = %" PRId64, ld,
                             s.inner_name, s.inner);
    if (is_too_far(ld, s.outer, bytes))
        return fail_argument(
            position, name, "is %" PRId64 ", too large: %" PRId64 " lines of it must stay under 2^62 bytes",
            ld, s.outer);
    return ok;
}

Status check_pointer(int position, const char* name, const void* ptr, int64_t bytes, Pointers pointers)
{
    if (!ptr)
        return fail_argument(position, name, "is NULL, must point to its elements");
    if (reinterpret_cast<uintptr_t>(ptr) % bytes != 0)
        return fail_argument(position, name, "is %p, must be aligned to its elements of %" PRId64 " bytes",
                             ptr, bytes);
    return pointers == Pointers::OnHost ? check_host_memory(position, name, ptr) : ok;
}

Status check_arguments(const Signature& signature, const hgemm_args_t& args, Pointers pointers)
{
    Checker checker(signature, args, pointers);
    int position = 0;
    for (const Arg arg : signature.args) {
        position = signature.in_struct && position == 2 ? 2 : position + 1;
        if (const Status status = checker.check(arg, position); status != ok)
            return status;
    }
    return pointers == Pointers::Unchecked || is_empty(args) ? ok : check_apart(signature, args);
}

}  // namespace hg
