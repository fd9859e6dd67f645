#include "trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hg::test {
namespace {

enum Operand : uint64_t { OperandA, OperandB, OperandC, OperandBias };

uint64_t index_of(int64_t z, int64_t row, int64_t column)
{
    return static_cast<uint64_t>(z) << 50 ^ static_cast<uint64_t>(row) << 25 ^
           static_cast<uint64_t>(column);
}

std::string describe(const char* what, int64_t z, int64_t i, int64_t j, double got, double value,
                     double error)
{
    char text[200];
    std::snprintf(text, sizeof text, "%s[%lld](%lld, %lld) is %.9g, expected %.9g +- %.3g", what,
                  static_cast<long long>(z), static_cast<long long>(i), static_cast<long long>(j), got,
                  value, error);
    return text;
}

Trial::Generator drawn(const GemmCase& g, Operand operand)
{
    return [data = g.data, seed = g.seed * 8 + operand](int64_t z, int64_t row, int64_t column) {
        return Trial::draw(data, seed, index_of(z, row, column));
    };
}

}  // namespace

Trial::Trial(const GemmCase& description, Memory& memory)
    : case_(description), memory_(memory), exact_(description.data == Data::Integers)
{
    const GemmCase& g = case_;
    a_ = Buffer(memory, g.type_ab, g.extent_a(), g.shift(g.a), g.guard);
    b_ = Buffer(memory, g.type_ab, g.extent_b(), g.shift(g.b), g.guard);
    d_ = Buffer(memory, g.type_d, g.extent_d(), g.shift(g.d), g.guard);
    if (!g.in_place)
        c_ = Buffer(memory, g.type_c, g.extent_c(), g.shift(g.c), g.guard);
    if (g.aux)
        aux_ = Buffer(memory, g.type_d, g.extent_aux(), g.shift(g.aux_place), g.guard);
    if (g.bias != HGEMM_BIAS_NONE)
        bias_ = Buffer(memory, g.bias_type, g.extent_bias(), 1, g.guard);
    fill_with_data();
    fill_args();
    if (g.batch == Batch::Arrays)
        make_pointer_arrays();
    if (g.device_scalars) {
        scalars_ = Block(memory, 2 * sizeof(float), Guard::Fence);
        args_.alpha_device = scalars_.get<float>();
        args_.beta_device = scalars_.get<float>() + 1;
        args_.alpha = args_.beta = NAN;  // not to be used
    }
}

void Trial::fill_args()
{
    const GemmCase& g = case_;
    hgemm_args_init(&args_, sizeof args_);
    args_.layout = g.layout;
    args_.transa = g.transa;
    args_.transb = g.transb;
    args_.type_ab = g.type_ab;
    args_.type_c = g.in_place ? g.type_d : g.type_c;
    args_.type_d = g.type_d;
    args_.m = g.m;
    args_.n = g.n;
    args_.k = g.k;
    args_.alpha = g.alpha;
    args_.beta = g.beta;
    args_.a = a_.ptr();
    args_.b = b_.ptr();
    args_.c = stored_c().ptr();
    args_.d = d_.ptr();
    args_.lda = a_.extent().ld;
    args_.ldb = b_.extent().ld;
    args_.ldc = stored_c().extent().ld;
    args_.ldd = d_.extent().ld;
    args_.batch_count = g.batch_count;
    args_.stride_a = a_.extent().stride;
    args_.stride_b = b_.extent().stride;
    args_.stride_c = stored_c().extent().stride;
    args_.stride_d = d_.extent().stride;
    args_.bias_mode = g.bias;
    args_.bias_type = g.bias_type;
    args_.bias = bias_.exists() ? bias_.ptr() : nullptr;
    args_.stride_bias = bias_.exists() ? bias_.extent().stride : 0;
    args_.activation = g.activation;
    args_.aux = aux_.exists() ? aux_.ptr() : nullptr;
    args_.ldaux = aux_.exists() ? aux_.extent().ld : 0;
    args_.stride_aux = aux_.exists() ? aux_.extent().stride : 0;
    args_.uplo = g.uplo;
    args_.gate = g.gate;
}

void Trial::make_pointer_arrays()
{
    const Buffer* buffers[] = {&a_, &b_, &d_, &stored_c()};
    const auto count = static_cast<size_t>(case_.batch_count);
    std::vector<void*> pointers;
    for (const Buffer* buffer : buffers)
        for (int64_t z = 0; z < case_.batch_count; ++z)
            pointers.push_back(buffer->ptr(slot(*buffer, z)));
    arrays_ = Block(memory_, pointers.size() * sizeof(void*), Guard::Fence);
    arrays_.copy_in(pointers.data());
    void** base = arrays_.get<void*>();
    args_.a_array = base;
    args_.b_array = base + count;
    args_.d_array = base + 2 * count;
    args_.c_array = case_.in_place ? args_.d_array : base + 3 * count;
    args_.a = args_.b = args_.c = args_.d = nullptr;
    args_.stride_a = args_.stride_b = args_.stride_c = args_.stride_d = 0;
}

int64_t Trial::slot(const Buffer& buffer, int64_t z) const
{
    if (case_.batch != Batch::Arrays)
        return z;
    const int64_t n = case_.batch_count;
    return &buffer == &a_ ? n - 1 - z : &buffer == &b_ ? z : (z + 1) % n;
}

double Trial::draw(Data data, uint64_t seed, uint64_t index)
{
    switch (data) {
    case Data::Integers: return static_cast<double>(hash(seed, index) % 5) - 2;
    case Data::Normal: return normal(seed, index);
    case Data::Wide:
    case Data::Cancelling: {
        const int exponent = static_cast<int>(hash(seed + 1, index) % 15) - 7;
        return std::ldexp(hash(seed + 2, index) & 1 ? 1 : -1, exponent) * (1 + uniform(seed, index));
    }
    }
    return 0;
}

void Trial::fill(Buffer& buffer, bool by_rows, const Generator& value)
{
    const Extent& e = buffer.extent();
    const int64_t stored = e.stride == 0 ? std::min<int64_t>(e.batch, 1) : e.batch;
    for (int64_t z = 0; z < stored; ++z)
        parallel(e.lines, e.length * 16, [&](int64_t begin, int64_t end) {
            for (int64_t line = begin; line < end; ++line)
                for (int64_t position = 0; position < e.length; ++position)
                    buffer.set(z, line, position,
                               by_rows ? value(z, line, position) : value(z, position, line));
        });
}

void Trial::fill_with_data()
{
    fill_a(data_a(case_));
    fill_b(data_b(case_));
    fill_c(data_c(case_));
    if (bias_.exists())
        fill_bias(drawn(case_, OperandBias));
}

Trial::Generator Trial::data_a(const GemmCase& g)
{
    const Generator a = drawn(g, OperandA);
    if (g.data != Data::Cancelling)
        return a;
    return [a, half = g.k / 2](int64_t z, int64_t i, int64_t p) {
        return p < half ? a(z, i, p) : -a(z, i, p - half);
    };
}

Trial::Generator Trial::data_b(const GemmCase& g)
{
    if (g.uplo != HGEMM_UPLO_NONE)
        return [a = data_a(g)](int64_t z, int64_t p, int64_t j) { return a(z, j, p); };
    const Generator b = drawn(g, OperandB);
    if (g.data != Data::Cancelling)
        return b;
    return [b, half = g.k / 2](int64_t z, int64_t p, int64_t j) {
        return p < half ? b(z, p, j) : b(z, p - half, j) * (1 + 0x1p-7);
    };
}

Trial::Generator Trial::data_c(const GemmCase& g) { return drawn(g, OperandC); }

void Trial::poison_a()
{
    fill_a([](auto...) { return NAN; });
}
void Trial::poison_b()
{
    fill_b([](auto...) { return NAN; });
}
void Trial::poison_c()
{
    fill_c([](auto...) { return NAN; });
}

void Trial::set_scalars(float alpha, float beta)
{
    if (!case_.device_scalars)
        return;
    case_.alpha = alpha;
    case_.beta = beta;
}

std::vector<double> Trial::results(int64_t rows) const
{
    std::vector<double> values;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < case_.columns_of_d(); ++j)
            values.push_back(result(0, i, j));
    return values;
}

double Trial::at(const Buffer& buffer, int64_t z, int64_t row, int64_t column) const
{
    const int64_t s = slot(buffer, z);
    return case_.d_by_rows() ? buffer.get(s, row, column) : buffer.get(s, column, row);
}

double Trial::bias(int64_t z, int64_t row, int64_t column) const
{
    if (case_.bias == HGEMM_BIAS_NONE)
        return -0.0;
    return bias_.get(z, 0, case_.bias == HGEMM_BIAS_M ? row : column);
}

Dense Trial::dense(const Buffer& buffer, bool by_rows, int64_t z, int64_t rows, int64_t columns) const
{
    Dense out(rows, columns);
    const Extent& e = buffer.extent();
    const int64_t s = slot(buffer, z);
    for (int64_t line = 0; line < e.lines; ++line)
        for (int64_t position = 0; position < e.length; ++position)
            (by_rows ? out(line, position) : out(position, line)) = buffer.get(s, line, position);
    return out;
}

void Trial::upload()
{
    read_c_.clear();
    read_d_.clear();
    for (int64_t z = 0; z < case_.batch_count && case_.uplo != HGEMM_UPLO_NONE; ++z)
        read_d_.push_back(dense(d_, case_.d_by_rows(), z, case_.m, case_.n));
    for (int64_t z = 0; z < case_.batch_count; ++z)
        read_c_.push_back(dense(stored_c(), case_.d_by_rows(), z, case_.m, case_.n));
    for (Buffer* buffer : {&a_, &b_, &c_, &d_, &aux_, &bias_})
        if (buffer->exists())
            buffer->upload();
    const float scalars[2] = {case_.alpha, case_.beta};
    if (case_.device_scalars)
        scalars_.copy_in(scalars);
}

void Trial::download()
{
    for (Buffer* buffer : {&a_, &b_, &c_, &d_, &aux_, &bias_})
        if (buffer->exists())
            buffer->download();
}

// Is all that is left beta * C and a bias, as the call itself says? Then no zero changes its sign.
bool Trial::only_scales_c() const
{
    return !case_.multiplies() && case_.beta != 0 && !case_.device_scalars;
}

// Not even what the bits of a NaN say changes then.
bool Trial::leaves_c_alone() const
{
    return only_scales_c() && case_.beta == 1 && case_.in_place && case_.bias == HGEMM_BIAS_NONE &&
           case_.activation == HGEMM_ACTIVATION_NONE && !case_.aux && case_.uplo != HGEMM_BOTH &&
           !case_.is_gated();
}

// alpha * A * B + beta * C + bias as BLAS defines it: what is multiplied by 0 is not looked at. A term that
// is not there is -0, which changes no other; without any the result is 0.
void Trial::expect(int64_t z, const Arithmetic& arithmetic, Dense& value, Dense& error) const
{
    const GemmCase& g = case_;
    Product product{Dense(g.m, g.n), Dense(g.m, g.n)};
    if (g.multiplies())
        product = multiply(dense(a_, g.a_by_rows(), z, g.m, g.k), dense(b_, g.b_by_rows(), z, g.k, g.n),
                           arithmetic);
    value = error = Dense(g.m, g.n);
    const Dense& c = read_c_[static_cast<size_t>(z)];
    const double roundings = g.bias == HGEMM_BIAS_NONE ? 3 : 4;
    for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j) {
            const double ab = g.multiplies() ? g.alpha * product.sum(i, j) : g.beta != 0 ? -0.0 : 0;
            const double bc = g.beta != 0 ? g.beta * c(i, j) : -0.0;
            const double added = bias(z, i, j);
            value(i, j) = ab + bc + added;
            error(i, j) =
                exact_ ? 0
                       : std::fabs(g.alpha) * product.error(i, j) +
                             roundings * 0x1p-24 * (std::fabs(ab) + std::fabs(bc) + std::fabs(added));
        }
}

void Trial::judge_other_half(int64_t z, int64_t i, int64_t j, Verdict& verdict) const
{
    const double got = result(z, i, j);
    const double wanted =
        case_.uplo == HGEMM_BOTH ? result(z, j, i) : read_d_[static_cast<size_t>(z)](i, j);
    const bool is_same =
        std::isnan(got) ? std::isnan(wanted) : got == wanted && std::signbit(got) == std::signbit(wanted);
    if (!is_same) {
        verdict.passed = false;
        verdict.message = describe("other half of D", z, i, j, got, wanted, 0);
    }
}

Estimate Trial::expect_d(const Dense& value, const Dense& error, int64_t i, int64_t j) const
{
    const GemmCase& g = case_;
    if (!g.is_gated())
        return {activate(g.activation, value(i, j)),
                activated_error(g.activation, value(i, j), error(i, j))};
    const auto at = [&](int64_t place) {
        return g.d_by_rows() ? Estimate{value(i, place), error(i, place)}
                             : Estimate{value(place, j), error(place, j)};
    };
    const int64_t place = place_of_gate(g.gate.block, g.d_by_rows() ? j : i);
    return gated(g.gate, g.activation, at(place), at(place + g.gate.block));
}

// `has_sign`: the sign of a zero counts.
void Trial::compare(const char* what, const Buffer& buffer, int64_t z, int64_t i, int64_t j,
                    const Estimate& wanted, bool has_sign, Verdict& verdict) const
{
    const double got = at(buffer, z, i, j);
    const bool sign_lost =
        has_sign && got == 0 && wanted.value == 0 && std::signbit(got) != std::signbit(wanted.value);
    if (sign_lost || !matches(case_.type_d, got, wanted.value, wanted.error)) {
        verdict.passed = false;
        verdict.message = describe(what, z, i, j, got, wanted.value, wanted.error);
    }
    if (exact_ || case_.type_d != HGEMM_F32)
        return;
    const double ratio = error_ratio(case_.type_d, got, wanted.value, wanted.error);
    verdict.max_ratio = std::max(verdict.max_ratio, ratio);
    verdict.sum_ratio += ratio;
    ++verdict.elements;
}

void Trial::judge_problem(int64_t z, const Arithmetic& arithmetic, Verdict& verdict) const
{
    Dense value, error;
    expect(z, arithmetic, value, error);
    const bool is_plain = case_.activation == HGEMM_ACTIVATION_NONE && !case_.is_gated();
    for (int64_t i = 0; i < case_.rows_of_d() && verdict.passed; ++i)
        for (int64_t j = 0; j < case_.columns_of_d() && verdict.passed; ++j)
            if (is_computed(case_.uplo, i, j))
                compare("D", d_, z, i, j, expect_d(value, error, i, j), is_plain && only_scales_c(),
                        verdict);
            else
                judge_other_half(z, i, j, verdict);
    for (int64_t i = 0; i < case_.m && aux_.exists() && verdict.passed; ++i)
        for (int64_t j = 0; j < case_.n && verdict.passed; ++j)
            compare("aux", aux_, z, i, j, {value(i, j), error(i, j)}, only_scales_c(), verdict);
}

Verdict Trial::judge(const Arithmetic& arithmetic)
{
    Verdict verdict = judge_memory(leaves_c_alone());
    for (int64_t z = 0; z < case_.batch_count && verdict.passed; ++z)
        judge_problem(z, arithmetic, verdict);
    return verdict;
}

Verdict Trial::judge_memory(bool none)
{
    Verdict verdict;
    const struct {
        const char* name;
        const Buffer& buffer;
        bool written;
    } buffers[] = {{"A", a_, false},       {"B", b_, false}, {"C", c_, false},
                   {"bias", bias_, false}, {"D", d_, true},  {"aux", aux_, true}};
    for (const auto& [name, buffer, written] : buffers)
        if (const std::string text = buffer.exists() ? buffer.damage(none || !written) : "";
            !text.empty()) {
            verdict.passed = false;
            verdict.message += std::string(name) + ": " + text + "; ";
        }
    return verdict;
}

}  // namespace hg::test
