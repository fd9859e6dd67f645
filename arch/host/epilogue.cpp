#include "arch/host/epilogue.hpp"

#include "src/base/convert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hg {
namespace {

// Replaces minus infinity, for which the activations would compute infinity times 0, by the lowest number,
// for which they give the limit. NaN stays NaN.
float bounded(float x) { return std::max(x, std::numeric_limits<float>::lowest()); }

}  // namespace

void activate(Activation activation, float* values, int64_t count, float slope)
{
    const auto apply = [=](auto function) { std::transform(values, values + count, values, function); };
    switch (activation) {
    case Activation::None: break;
    // NaN stays NaN.
    case Activation::Relu: apply([](float x) { return x <= 0.0f ? 0.0f : x; }); break;
    // 0.5 * (1 + tanh(u)) as a logistic function and 0.5 * (1 + erf(u)) as erfc: no cancellation at x < 0.
    case Activation::GeluTanh:
        apply([](float x) {
            x = bounded(x);
            return x / (1.0f + std::exp(-1.5957691216f * (x + 0.044715f * x * x * x)));  // 2 sqrt(2 / pi)
        });
        break;
    case Activation::GeluErf:
        apply([](float x) {
            x = bounded(x);
            return 0.5f * x * std::erfc(-0.70710678119f * x);  // sqrt(1 / 2)
        });
        break;
    case Activation::Silu:
        apply([=](float x) { return bounded(x) / (1.0f + std::exp(-slope * x)); });
        break;
    }
}

namespace {

// Elements of C, D or aux from (i, j) on.
struct Run {
    int64_t offset, stride;

    Run(const Matrix& x, int64_t batch_offset, int64_t i, int64_t j, Along along)
        : offset(batch_offset + i * x.ld + j), stride(along == Along::Row ? 1 : x.ld)
    {
    }
};

void put(const Matrix& x, int64_t z, int64_t i, int64_t j, Along along, int64_t count, const float* values)
{
    int64_t offset = 0;
    void* const target = base(x, z, offset);
    const Run run(x, offset, i, j, along);
    from_float(x.type, values, count, target, run.offset, run.stride);
}

}  // namespace

Epilogue::Epilogue(const Problem& problem)
    : p_(problem), alpha_(problem.alpha_device ? *problem.alpha_device : problem.alpha),
      beta_(problem.beta_device ? *problem.beta_device : problem.beta),
      wants_sums_(problem.k > 0 && alpha_ != 0.0f)
{
    // alpha may be an infinity or NaN, which times the sum 0 is NaN. -0 keeps the sign of zeros in beta *
    // C.
    if (!wants_sums_)
        alpha_ = problem.beta_device || problem.beta == 0.0f ? 0.0f : -0.0f;
}

void Epilogue::store(int64_t z, int64_t i, int64_t j, Along along, int64_t count, float* sums) const
{
    for (int64_t done = 0; done < count; done += chunk)
        store_chunk(z, along == Along::Row ? i : i + done, along == Along::Row ? j + done : j, along,
                    std::min(chunk, count - done), sums + done);
}

void Epilogue::store_zeros(int64_t z, int64_t i, int64_t j, Along along, int64_t count) const
{
    float zeros[chunk];
    for (int64_t done = 0; done < count; done += chunk) {
        const int64_t length = std::min(chunk, count - done);
        std::fill_n(zeros, length, 0.0f);
        store_chunk(z, along == Along::Row ? i : i + done, along == Along::Row ? j + done : j, along,
                    length, zeros);
    }
}

void Epilogue::store_chunk(int64_t z, int64_t i, int64_t j, Along along, int64_t count, float* values) const
{
    float operand[chunk];
    if (alpha_ != 1.0f)
        for (int64_t e = 0; e < count; ++e)
            values[e] *= alpha_;
    if (beta_ != 0.0f) {
        int64_t offset = 0;
        const void* const c = base(p_.c, z, offset);
        const Run run(p_.c, offset, i, j, along);
        to_float(p_.c.type, c, run.offset, run.stride, count, operand);
        for (int64_t e = 0; e < count; ++e)
            values[e] += beta_ * operand[e];
    }
    if (p_.bias.along != BiasAlong::None) {
        const bool of_column = p_.bias.along == BiasAlong::Columns;
        const bool varies = of_column == (along == Along::Row);
        to_float(p_.bias.type, p_.bias.ptr, z * p_.bias.batch_stride + (of_column ? j : i), varies ? 1 : 0,
                 count, operand);
        for (int64_t e = 0; e < count; ++e)
            values[e] += operand[e];
    }
    if (p_.aux.exists())
        put(p_.aux, z, i, j, along, count, values);
    activate(p_.activation, values, count);
    put(p_.d, z, i, j, along, count, values);
}

}  // namespace hg
