#include "arguments.hpp"

#include <algorithm>
#include <cinttypes>

namespace hg {
namespace {

struct Name {
    const char* plain;
    const char* member;
};

Name name_of(Arg arg)
{
    switch (arg) {
    case Arg::Handle: return {"handle", "handle"};
    case Arg::Args: return {"args", "args"};
    case Arg::Size: return {"size", "args->size"};
    case Arg::Layout: return {"layout", "args->layout"};
    case Arg::TransA: return {"transa", "args->transa"};
    case Arg::TransB: return {"transb", "args->transb"};
    case Arg::TypeAb: return {"type_ab", "args->type_ab"};
    case Arg::TypeC: return {"type_c", "args->type_c"};
    case Arg::TypeD: return {"type_d", "args->type_d"};
    case Arg::M: return {"m", "args->m"};
    case Arg::N: return {"n", "args->n"};
    case Arg::K: return {"k", "args->k"};
    case Arg::Alpha: return {"alpha", "args->alpha_device"};
    case Arg::Beta: return {"beta", "args->beta_device"};
    case Arg::A: return {"A", "args->a"};
    case Arg::Lda: return {"lda", "args->lda"};
    case Arg::StrideA: return {"stride_a", "args->stride_a"};
    case Arg::B: return {"B", "args->b"};
    case Arg::Ldb: return {"ldb", "args->ldb"};
    case Arg::StrideB: return {"stride_b", "args->stride_b"};
    case Arg::C: return {"C", "args->c"};
    case Arg::Ldc: return {"ldc", "args->ldc"};
    case Arg::StrideC: return {"stride_c", "args->stride_c"};
    case Arg::D: return {"D", "args->d"};
    case Arg::Ldd: return {"ldd", "args->ldd"};
    case Arg::StrideD: return {"stride_d", "args->stride_d"};
    case Arg::Count: return {"batch_count", "args->batch_count"};
    case Arg::InOut: return {"C", "C"};
    case Arg::LdInOut: return {"ldc", "ldc"};
    case Arg::StrideInOut: return {"stride_c", "stride_c"};
    case Arg::BiasMode: return {"bias_mode", "args->bias_mode"};
    case Arg::BiasType: return {"bias_type", "args->bias_type"};
    case Arg::Bias: return {"bias", "args->bias"};
    case Arg::Activation: return {"activation", "args->activation"};
    case Arg::Aux: return {"aux", "args->aux"};
    case Arg::Ldaux: return {"ldaux", "args->ldaux"};
    case Arg::StrideAux: return {"stride_aux", "args->stride_aux"};
    case Arg::Flags: return {"flags", "args->flags"};
    }
    return {"?", "?"};
}

// The same in a batch of pointer arrays.
Name array_name_of(Arg arg)
{
    switch (arg) {
    case Arg::A: return {"A", "args->a_array"};
    case Arg::B: return {"B", "args->b_array"};
    case Arg::C: return {"C", "args->c_array"};
    case Arg::D: return {"D", "args->d_array"};
    default: return name_of(arg);
    }
}

// A function of many problems without strides is given pointers to each.
bool takes_arrays(const Signature& signature)
{
    const auto has = [&](Arg arg) {
        return std::ranges::find(signature.args, arg) != signature.args.end();
    };
    return has(Arg::Count) && !has(Arg::StrideA);
}

int64_t element_bytes(hgemm_type_t type) { return bytes_of(static_cast<Type>(type)); }

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

    const char* name() const
    {
        const Name names = arrays_ ? array_name_of(arg_) : name_of(arg_);
        return signature_.in_struct ? names.member : names.plain;
    }

    Status check_scalar();
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
        return check_leading(position_, name(), ld, s, element_bytes(type));
    }
    Status stride(const char* name, int64_t value, hgemm_type_t type) const;
    Status matrix_stride(int64_t value, hgemm_type_t type) const
    {
        return arrays_ ? ok : stride(name(), value, type);
    }
    Status output_stride(int64_t value) const;
    Status pointer(const void* ptr, const void* array, bool needed, hgemm_type_t type) const;
    Status scalar_pointer(const void* ptr) const;
    Status aliased_c() const;

    bool column_major() const { return g_.layout == HGEMM_COL_MAJOR; }
    bool reads_ab() const { return !is_empty(g_) && g_.k > 0 && (g_.alpha_device || g_.alpha != 0.0f); }
    bool reads_c() const { return !is_empty(g_) && (g_.beta_device || g_.beta != 0.0f); }

    Stored a() const
    {
        const bool along_m = column_major() == (g_.transa == HGEMM_NO_TRANS);
        return along_m ? Stored{g_.m, g_.k, "m"} : Stored{g_.k, g_.m, "k"};
    }
    Stored b() const
    {
        const bool along_k = column_major() == (g_.transb == HGEMM_NO_TRANS);
        return along_k ? Stored{g_.k, g_.n, "k"} : Stored{g_.n, g_.k, "n"};
    }
    Stored d() const { return column_major() ? Stored{g_.m, g_.n, "m"} : Stored{g_.n, g_.m, "n"}; }

    const Signature& signature_;
    const hgemm_args_t& g_;
    Pointers pointers_;
    const bool arrays_;  // arrays of pointers say where problems lie
    Arg arg_{};
    int position_ = 0;
};

// That of a single problem leads nowhere.
Status Checker::stride(const char* name, int64_t value, hgemm_type_t type) const
{
    if (g_.batch_count > 1 && is_too_far(value, g_.batch_count, element_bytes(type)))
        return fail_argument(position_, name,
                             "is %" PRId64 ", too large: %" PRId64 " problems must stay within 2^62 bytes",
                             value, g_.batch_count);
    return ok;
}

Status Checker::output_stride(int64_t value) const
{
    if (g_.batch_count > 1 && !arrays_ && !is_empty(g_) && value == 0)
        return bad("is 0, must separate the outputs of %" PRId64 " problems", g_.batch_count);
    return matrix_stride(value, g_.type_d);
}

Status Checker::pointer(const void* ptr, const void* array, bool needed, hgemm_type_t type) const
{
    if (pointers_ == Pointers::Unchecked || !needed)
        return ok;
    if (arrays_ && !array)
        return bad("is NULL, must be an array of %" PRId64 " pointers", g_.batch_count);
    if (arrays_ && reinterpret_cast<uintptr_t>(array) % alignof(void*) != 0)
        return bad("is %p, must be aligned to %zu bytes", array, alignof(void*));
    if (arrays_)
        return ok;
    return check_pointer(position_, name(), ptr, element_bytes(type));
}

Status Checker::scalar_pointer(const void* ptr) const
{
    if (reinterpret_cast<uintptr_t>(ptr) % alignof(float) != 0)
        return bad("is %p, must be aligned to 4 bytes", ptr);
    return ok;
}

// D may be C itself, element by element; any other overlap would read what was written.
Status Checker::aliased_c() const
{
    const bool same = arrays_ ? g_.c_array && g_.c_array == g_.d_array : g_.c && g_.c == g_.d;
    if (!same || !reads_c())
        return ok;
    const char* d = arrays_ ? "args->d_array" : "args->d";
    if (g_.type_c != g_.type_d)
        return bad("equals %s, so args->type_c must equal args->type_d", d);
    if (g_.ldc != g_.ldd)
        return bad("equals %s, so args->ldc = %" PRId64 " must equal args->ldd = %" PRId64, d, g_.ldc,
                   g_.ldd);
    if (!arrays_ && g_.batch_count > 1 && g_.stride_c != g_.stride_d)
        return bad("equals %s, so args->stride_c must equal args->stride_d", d);
    return ok;
}

Status Checker::check_scalar()
{
    const char* ops = "111 (no), 112 (transpose) or 113 (conjugate transpose)";
    const char* types = "1 (F16), 2 (BF16) or 3 (F32)";
    switch (arg_) {
    case Arg::Layout: return one_of(g_.layout, 101, 102, "101 (row-major) or 102 (column-major)");
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
    case Arg::A: return pointer(g_.a, g_.a_array, reads_ab(), g_.type_ab);
    case Arg::B: return pointer(g_.b, g_.b_array, reads_ab(), g_.type_ab);
    case Arg::C: {
        const Status status = pointer(g_.c, g_.c_array, reads_c(), g_.type_c);
        return status == ok ? aliased_c() : status;
    }
    case Arg::D:
    case Arg::InOut: return pointer(g_.d, g_.d_array, writes, g_.type_d);
    case Arg::Lda: return leading(g_.lda, a(), g_.type_ab);
    case Arg::Ldb: return leading(g_.ldb, b(), g_.type_ab);
    case Arg::Ldc: return reads_c() ? leading(g_.ldc, d(), g_.type_c) : ok;
    case Arg::Ldd:
    case Arg::LdInOut: return leading(g_.ldd, d(), g_.type_d);
    case Arg::StrideA: return matrix_stride(g_.stride_a, g_.type_ab);
    case Arg::StrideB: return matrix_stride(g_.stride_b, g_.type_ab);
    case Arg::StrideC: return reads_c() ? matrix_stride(g_.stride_c, g_.type_c) : ok;
    case Arg::StrideD:
    case Arg::StrideInOut: return output_stride(g_.stride_d);
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
        if (!biased || is_empty(g_))
            return ok;
        if (Status status = stride("args->stride_bias", g_.stride_bias, g_.bias_type);
            status != ok || pointers_ == Pointers::Unchecked)
            return status;
        return check_pointer(position_, name(), g_.bias, element_bytes(g_.bias_type));
    case Arg::Activation: return one_of(g_.activation, 0, 4, "an hgemm_activation_t from 0 to 4");
    case Arg::Aux:
        if (g_.aux && arrays_)
            return bad("is set, must be NULL in a batch of pointer arrays");
        return g_.aux ? check_pointer(position_, name(), g_.aux, element_bytes(g_.type_d)) : ok;
    case Arg::Ldaux: return g_.aux ? leading(g_.ldaux, d(), g_.type_d) : ok;
    case Arg::StrideAux: return g_.aux ? output_stride(g_.stride_aux) : ok;
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

// C where it is read. Only where pointers are not looked at may it be NULL; it is well aligned then.
Matrix to_c(const hgemm_args_t& g, bool arrays)
{
    constexpr uintptr_t anywhere = 256;
    void* ptr = arrays ? nullptr : const_cast<void*>(g.c);
    if (!ptr && !g.c_array)
        ptr = reinterpret_cast<void*>(anywhere);
    return {ptr, const_cast<void* const*>(g.c_array), g.ldc, g.stride_c, static_cast<Type>(g.type_c)};
}

Operand to_operand(const void* ptr, const void* const* array, int64_t ld, int64_t batch_stride,
                   bool contiguous_k)
{
    return {ptr, array, contiguous_k ? ld : 1, contiguous_k ? 1 : ld, batch_stride};
}

}  // namespace

bool is_too_far(int64_t step, int64_t count, int64_t element_bytes)
{
    constexpr int64_t limit = int64_t{1} << 62;
    int64_t extent;
    return __builtin_mul_overflow(step, count, &extent) ||
           __builtin_mul_overflow(extent, element_bytes, &extent) || extent >= limit || extent <= -limit;
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

Status check_pointer(int position, const char* name, const void* ptr, int64_t bytes)
{
    if (!ptr)
        return fail_argument(position, name, "is NULL, must point to its elements");
    if (reinterpret_cast<uintptr_t>(ptr) % bytes != 0)
        return fail_argument(position, name, "is %p, must be aligned to its elements of %" PRId64 " bytes",
                             ptr, bytes);
    return ok;
}

bool is_empty(const hgemm_args_t& args) { return args.m == 0 || args.n == 0 || args.batch_count == 0; }

Status check_arguments(const Signature& signature, const hgemm_args_t& args, Pointers pointers)
{
    Checker checker(signature, args, pointers);
    int position = 0;
    for (const Arg arg : signature.args) {
        position = signature.in_struct && position == 2 ? 2 : position + 1;
        if (const Status status = checker.check(arg, position); status != ok)
            return status;
    }
    return ok;
}

Problem to_problem(const hgemm_args_t& g)
{
    const bool column = g.layout == HGEMM_COL_MAJOR;
    const bool reads_ab = g.k > 0 && (g.alpha_device || g.alpha != 0.0f);
    const bool reads_c = g.beta_device || g.beta != 0.0f;
    const bool a_no = g.transa == HGEMM_NO_TRANS, b_no = g.transb == HGEMM_NO_TRANS;

    Problem p{};
    p.batch = g.batch_count;
    p.k = reads_ab ? g.k : 0;
    p.type_ab = static_cast<Type>(g.type_ab);
    p.alpha = reads_ab ? g.alpha : 0.0f;
    p.alpha_device = reads_ab ? g.alpha_device : nullptr;
    p.beta = g.beta;
    p.beta_device = g.beta_device;

    const bool arrays = g.a_array || g.b_array || g.c_array || g.d_array;
    const Operand first = to_operand(g.a, g.a_array, g.lda, g.stride_a, column != a_no);
    const Operand second = to_operand(g.b, g.b_array, g.ldb, g.stride_b, column == b_no);
    p.m = column ? g.n : g.m;
    p.n = column ? g.m : g.n;
    if (reads_ab) {
        p.a = column ? second : first;
        p.b = column ? first : second;
    }
    if (reads_c)
        p.c = to_c(g, arrays);
    p.d = {arrays ? nullptr : g.d, g.d_array, g.ldd, g.stride_d, static_cast<Type>(g.type_d)};

    if (g.bias_mode != HGEMM_BIAS_NONE) {
        const bool along_rows = (g.bias_mode == HGEMM_BIAS_M) != column;
        p.bias = {g.bias, g.stride_bias, static_cast<Type>(g.bias_type),
                  along_rows ? BiasAlong::Rows : BiasAlong::Columns};
    }
    p.activation = static_cast<Activation>(g.activation);
    if (g.aux)
        p.aux = {g.aux, nullptr, g.ldaux, g.stride_aux, static_cast<Type>(g.type_d)};
    p.simplify();
    return p;
}

}  // namespace hg
