#include "oracle.hpp"

#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <utility>

namespace hg::fuzz {
namespace {

using enum Field;
using test::Form;

bool is_half(hgemm_type_t type) { return type == HGEMM_F16 || type == HGEMM_BF16; }
bool is_type(hgemm_type_t type) { return is_half(type) || type == HGEMM_F32; }
bool is_op(hgemm_op_t op) { return op >= 111 && op <= 113; }
bool is_at(const void* pointer, size_t alignment)
{
    return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}
size_t width(hgemm_type_t type) { return is_type(type) ? test::bytes_of(type) : 1; }

class Judge {
public:
    Judge(const Product& p, bool pointers) : p_(p), g_(p.g), pointers_(pointers) {}
    Verdict judge();

private:
    void wrong_if(bool condition, Field field)
    {
        if (condition)
            verdict_.wrong.push_back(field);
    }
    void doubtful_if(bool condition, Field field)
    {
        if (condition)
            verdict_.doubtful.push_back(field);
    }
    void judge_struct();
    void judge_values();
    void judge_ld(Field field, const Extent& extent, hgemm_type_t type, bool is_used);
    void judge_stride(Field field, const Extent& extent, hgemm_type_t type, bool is_output, bool is_used);
    void judge_lines();
    void judge_pointer(Field field, const void* pointer, hgemm_type_t type, bool is_used);
    void judge_array(Field field, const void* const* array, hgemm_type_t type, bool is_used);
    void judge_pointers();
    void judge_alias();
    void judge_overlap();
    void judge_epilogue();
    void judge_gate();

    const Product& p_;
    const hgemm_args_t& g_;
    const bool pointers_;
    Verdict verdict_;
};

void Judge::judge_struct()
{
    if (p_.form != Form::General)
        return;
    const size_t known = sizeof(hgemm_args_t), there = known + static_cast<size_t>(p_.tail);
    constexpr size_t first_known = 280;  // of the first version
    wrong_if(g_.size < first_known || g_.size > 1024, Size);
    wrong_if(g_.size < known && g_.size % 8 != 0, Size);
    doubtful_if(g_.size < known, Size);
    wrong_if(g_.size > there && g_.size <= 1024, Size);  // or it is read behind its end
    wrong_if(g_.size >= there && p_.dirty_tail, Size);
    doubtful_if(g_.size % 8 != 0 || p_.dirty_tail, Size);
}

void Judge::judge_values()
{
    wrong_if(g_.layout != HGEMM_ROW_MAJOR && g_.layout != HGEMM_COL_MAJOR, Layout);
    wrong_if(!is_op(g_.transa), TransA);
    wrong_if(!is_op(g_.transb), TransB);
    wrong_if(!is_half(g_.type_ab), TypeAb);
    wrong_if(!is_type(g_.type_d), TypeD);
    wrong_if(!is_type(g_.type_c) && p_.reads_c(), TypeC);
    doubtful_if(!is_type(g_.type_c), TypeC);
    wrong_if(g_.m < 0, M);
    wrong_if(g_.n < 0, N);
    wrong_if(g_.k < 0, K);
    wrong_if(g_.batch_count < 0, Count);
    wrong_if(g_.flags != 0, Flags);
    const bool half = g_.uplo >= HGEMM_UPPER && g_.uplo <= HGEMM_BOTH;
    const bool finished = g_.bias_mode != HGEMM_BIAS_NONE || g_.activation != HGEMM_ACTIVATION_NONE ||
                          g_.aux || p_.is_gated();
    wrong_if(!half && g_.uplo != HGEMM_UPLO_NONE, Uplo);
    wrong_if(half && (g_.m != g_.n || finished), Uplo);
    wrong_if(g_.activation < 0 || g_.activation > HGEMM_ACTIVATION_SILU, Activation);
    wrong_if(g_.alpha_device && !is_at(g_.alpha_device, 4), Alpha);
    wrong_if(g_.beta_device && !is_at(g_.beta_device, 4), Beta);
}

void Judge::judge_ld(Field field, const Extent& extent, hgemm_type_t type, bool is_used)
{
    const bool short_of = extent.ld < std::max<int64_t>(1, extent.length);
    wrong_if(short_of && is_used, field);
    doubtful_if(short_of || is_far(extent.ld, extent.lines, type), field);
}

void Judge::judge_stride(Field field, const Extent& extent, hgemm_type_t type, bool is_output, bool is_used)
{
    if (p_.is_array() || p_.form == Form::Short || p_.form == Form::Cblas || extent.batch <= 1)
        return;
    wrong_if(is_output && is_used && !p_.is_empty() && extent.stride == 0, field);
    doubtful_if(is_far(extent.stride, extent.batch, type), field);
    wrong_if(is_output && !p_.is_empty() && extent.overlaps_itself(), field);
    doubtful_if(is_output && extent.span() < 0, field);
}

void Judge::judge_lines()
{
    // That of A and B belongs to the call, as in BLAS, even where they are not read.
    judge_ld(Lda, p_.extent_a(), g_.type_ab, p_.reads_ab());
    judge_ld(Ldb, p_.extent_b(), g_.type_ab, p_.reads_ab());
    judge_ld(Ldd, p_.extent_d(), g_.type_d, !p_.is_empty());
    judge_stride(StrideA, p_.extent_a(), g_.type_ab, false, true);
    judge_stride(StrideB, p_.extent_b(), g_.type_ab, false, true);
    judge_stride(StrideD, p_.extent_d(), g_.type_d, true, true);
    if (p_.form != Form::General)
        return;
    if (p_.reads_c()) {
        judge_ld(Ldc, p_.extent_c(), g_.type_c, true);
        judge_stride(StrideC, p_.extent_c(), g_.type_c, false, true);
    }
    if (g_.aux) {
        judge_ld(Ldaux, p_.extent_aux(), g_.type_d, !p_.is_empty());
        judge_stride(StrideAux, p_.extent_aux(), g_.type_d, true, true);
    }
}

void Judge::judge_pointer(Field field, const void* pointer, hgemm_type_t type, bool is_used)
{
    const bool bad = !pointer || !is_at(pointer, width(type));
    wrong_if(bad && is_used && pointers_, field);
    doubtful_if(bad && pointer, field);
}

// On the host the entries can be read, so that those that cannot be right are refused.
void Judge::judge_array(Field field, const void* const* array, hgemm_type_t type, bool is_used)
{
    const bool bad = !array || !is_at(array, sizeof(void*));
    wrong_if(bad && is_used && pointers_, field);
    doubtful_if(bad && array, field);
    if (bad)
        return;
    bool bad_entry = false;
    // Of a batch that is empty arrays may be shorter than it.
    const auto entries = std::min(g_.batch_count, static_cast<int64_t>(p_.d_list.size()));
    for (int64_t z = 0; z < entries; ++z)
        bad_entry = bad_entry || !array[z] || !is_at(array[z], width(type));
    wrong_if(bad_entry && is_used && pointers_, field);
    doubtful_if(bad_entry, field);
}

void Judge::judge_pointers()
{
    if (p_.is_array()) {
        judge_array(A, g_.a_array, g_.type_ab, p_.reads_ab());
        judge_array(B, g_.b_array, g_.type_ab, p_.reads_ab());
        judge_array(C, g_.c_array, g_.type_c, p_.reads_c());
        judge_array(D, const_cast<const void* const*>(g_.d_array), g_.type_d, !p_.is_empty());
        return;
    }
    judge_pointer(A, g_.a, g_.type_ab, p_.reads_ab());
    judge_pointer(B, g_.b, g_.type_ab, p_.reads_ab());
    judge_pointer(C, g_.c, g_.type_c, p_.reads_c());
    judge_pointer(D, g_.d, g_.type_d, !p_.is_empty());
}

// C may be D itself, element by element, and then is as wide.
void Judge::judge_alias()
{
    if (p_.form != Form::General)
        return;
    const bool same = p_.is_array() ? g_.c_array && g_.c_array == const_cast<const void* const*>(g_.d_array)
                                    : g_.c && g_.c == g_.d;
    const bool strides = p_.is_array() || g_.batch_count <= 1 || g_.stride_c == g_.stride_d;
    const bool bad = same && (p_.is_gated() || g_.type_c != g_.type_d || g_.ldc != g_.ldd || !strides);
    wrong_if(bad && p_.reads_c() && pointers_, C);
    doubtful_if(bad, C);
}

// The output lies over an operand that is read, from the first element on. Sizes for which there is no
// memory may lead from any pointer over any other.
void Judge::judge_overlap()
{
    for (const Field field : {C, D, Aux})
        doubtful_if(!p_.has_memory, field);
    if (p_.is_array() || !pointers_)
        return;
    const bool over_bias = !p_.is_empty() && g_.bias_mode != HGEMM_BIAS_NONE && g_.bias == g_.d;
    wrong_if(over_bias, D);
    wrong_if(over_bias, Bias);
    if (!p_.reads_ab())
        return;
    for (const auto& [operand, field] : {std::pair{g_.a, A}, {g_.b, B}}) {
        wrong_if(operand == g_.d, D);
        wrong_if(operand == g_.d, field);
    }
}

void Judge::judge_epilogue()
{
    wrong_if(g_.bias_mode < 0 || g_.bias_mode > HGEMM_BIAS_N, BiasMode);
    const bool biased = g_.bias_mode == HGEMM_BIAS_M || g_.bias_mode == HGEMM_BIAS_N;
    wrong_if(biased && !is_type(g_.bias_type), BiasType);
    doubtful_if(!biased && !is_type(g_.bias_type), BiasType);
    wrong_if(g_.bias_mode == HGEMM_BIAS_NONE && g_.bias, Bias);
    doubtful_if(!biased && g_.bias, Bias);
    if (biased) {
        judge_pointer(Bias, g_.bias, g_.bias_type, !p_.is_empty());
        doubtful_if(is_far(g_.stride_bias, g_.batch_count, g_.bias_type), Bias);
        doubtful_if(is_far(g_.stride_bias, g_.batch_count, g_.bias_type), StrideBias);
    }
    if (g_.aux) {
        wrong_if(!is_at(g_.aux, width(g_.type_d)) && !p_.is_empty() && pointers_, Aux);
        doubtful_if(!is_at(g_.aux, width(g_.type_d)) || p_.is_array(), Aux);
    }
}

void Judge::judge_gate()
{
    const auto& [block, limit, slope, offset, unused] = g_.gate;
    const auto is_positive = [](float x) { return x >= 0 && std::isfinite(x); };
    const bool divides = block <= p_.line() / 2 && (block <= 0 || p_.line() % (2 * block) == 0);
    wrong_if(block < 0 || (block > 0 && p_.line() > 0 && !divides), GateBlock);
    wrong_if(block == 0 && (limit != 0 || slope != 0 || offset != 0), GateBlock);
    wrong_if(!is_positive(limit), GateLimit);
    wrong_if(!is_positive(slope) || (slope != 0 && g_.activation != HGEMM_ACTIVATION_SILU), GateSlope);
    wrong_if(!std::isfinite(offset), GateOffset);
}

Verdict Judge::judge()
{
    if (p_.is_null) {
        verdict_.wrong.push_back(Args);
        return verdict_;
    }
    judge_struct();
    // Of a struct that is not one nothing else has a meaning.
    if (!verdict_.wrong.empty())
        return verdict_;
    judge_values();
    judge_lines();
    judge_pointers();
    judge_alias();
    judge_overlap();
    judge_epilogue();
    judge_gate();
    return verdict_;
}

// The arguments of each form in hgemm.h's order; of those without a D, C is D.
std::vector<Field> prototype(Form form)
{
    switch (form) {
    case Form::Short: return {Handle, M, N, K, Alpha, A, Lda, B, Ldb, Beta, D, Ldd};
    case Form::Cblas: return {Handle, Layout, TransA, TransB, M, N, K, Alpha, A, Lda, B, Ldb, Beta, D, Ldd};
    case Form::Strided:
        return {Handle,  Layout, TransA, TransB,  M,    N, K,   Alpha,   A,    Lda,
                StrideA, B,      Ldb,    StrideB, Beta, D, Ldd, StrideD, Count};
    case Form::Batched:
        return {Handle, Layout, TransA, TransB, M, N, K, Alpha, A, Lda, B, Ldb, Beta, D, Ldd, Count};
    case Form::General: break;
    }
    return {};
}

const char* name_in_prototype(Field field)
{
    switch (field) {
    case A: return "A";
    case B: return "B";
    case D: return "C";
    case Ldd: return "ldc";
    case StrideD: return "stride_c";
    default: return nullptr;
    }
}

std::string name_in_struct(Field field, bool arrays)
{
    static constexpr const char* names[] = {
        "handle",      "args",       "size",         "layout",      "transa",
        "transb",      "type_ab",    "type_c",       "type_d",      "m",
        "n",           "k",          "alpha_device", "beta_device", "a",
        "lda",         "b",          "ldb",          "c",           "ldc",
        "d",           "ldd",        "batch_count",  "stride_a",    "stride_b",
        "stride_c",    "stride_d",   "bias_mode",    "bias_type",   "bias",
        "stride_bias", "activation", "aux",          "ldaux",       "stride_aux",
        "flags",       "uplo",       "entry",        "gate.block",  "gate.limit",
        "gate.slope",  "gate.offset"};
    const std::string name = names[static_cast<int>(field)];
    return arrays && name.size() == 1 && std::strchr("abcd", name[0]) ? name + "_array" : name;
}

std::string name_of(const Product& p, Field field, const std::string& prefix)
{
    if (field == Args)
        return "args";
    if (p.form == Form::General)
        return prefix + name_in_struct(field, p.is_array());
    const char* const name = name_in_prototype(field);
    return name ? name : name_in_struct(field, false);
}

int position_of(const Product& p, Field field)
{
    if (p.form == Form::General)
        return 2;
    const std::vector<Field> fields = prototype(p.form);
    const auto found = std::ranges::find(fields, field);
    return found == fields.end() ? 0 : static_cast<int>(found - fields.begin()) + 1;
}

}  // namespace

bool is_far(int64_t step, int64_t count, hgemm_type_t type)
{
    const __int128 distance = step < 0 ? -static_cast<__int128>(step) : step;
    const int64_t most = (INT64_C(1) << 60) / static_cast<int64_t>(test::bytes_of(type));
    return distance * std::max<int64_t>(count, 0) >= most;
}

Verdict judge(const Product& product, bool pointers) { return Judge(product, pointers).judge(); }

// Does the text name the argument? "(A)", "(A[1])", "(args->a_array)".
bool names_it(const char* text, const std::string& name)
{
    const char* const found = std::strstr(text, ("(" + name).c_str());
    return found && std::strchr(")[ ", found[1 + name.size()]) && found[1 + name.size()];
}

void check_error(const std::string& function, int argument, const std::vector<std::string>& names)
{
    const char* const text = hgemm_last_error();
    note("  refused: %s", text);
    if (!is_one_line(text) || !std::string(text).starts_with(function + ": "))
        wrong("the error is \"%s\", must be one line of %s", text, function.c_str());
    if (hgemm_last_error_argument() != argument)
        wrong("argument %d was named, must be %d: %s", hgemm_last_error_argument(), argument, text);
    if (!names.empty() &&
        std::ranges::none_of(names, [&](const auto& name) { return names_it(text, name); }))
        wrong("the error names none of the wrong arguments, %s first: %s", names[0].c_str(), text);
}

void expect_status(hgemm_status_t status, hgemm_status_t wanted, const std::string& function, int argument)
{
    if (status != wanted)
        wrong("%s answered %s (%s), must answer %s", function.c_str(), hgemm_status_string(status),
              hgemm_last_error(), hgemm_status_string(wanted));
    if (status != HGEMM_STATUS_SUCCESS)
        check_error(function, argument, {});
}

std::vector<std::string> names_of(const Product& p, const Verdict& verdict, const std::string& prefix,
                                  int position)
{
    std::vector<std::string> names;
    for (const auto* const fields : {&verdict.wrong, &verdict.doubtful})
        for (const Field field : *fields)
            if (position == 0 || position_of(p, field) == position)
                names.push_back(name_of(p, field, prefix));
    return names;
}

bool check_answer(const Product& p, const Verdict& verdict, hgemm_status_t status,
                  const std::string& function)
{
    if (status == HGEMM_STATUS_SUCCESS && verdict.is_right())
        return true;
    const std::vector<std::string> all = names_of(p, verdict, "args->");
    if (status != HGEMM_STATUS_INVALID_ARGUMENT)
        wrong("%s answered %s (%s), %s", function.c_str(), hgemm_status_string(status), hgemm_last_error(),
              verdict.is_right() ? "but nothing is wrong" : ("but this is wrong: " + all[0]).c_str());
    const std::vector<std::string> names = names_of(p, verdict, "args->", hgemm_last_error_argument());
    if (names.empty())
        wrong("refused, but argument %d is right: %s", hgemm_last_error_argument(), hgemm_last_error());
    check_error(function, hgemm_last_error_argument(), names);
    return false;
}

}  // namespace hg::fuzz
