// The epilogue: alpha, beta * C, bias, aux and activation, all in fp32, then one rounding to D's type.
#pragma once

#include "src/plan/problem.hpp"

namespace hg {

// A run of elements of D in one row or in one column.
enum class Along { Row, Column };

class Epilogue {
public:
    explicit Epilogue(const Problem& problem);

    // False where all sums are 0, so that A and B must not be read.
    bool wants_sums() const { return wants_sums_; }

    // Elements of problem z from (i, j) on; `sums` are `count` values, which it changes.
    void store(int64_t z, int64_t i, int64_t j, Along along, int64_t count, float* sums) const;
    // The same for sums that are 0.
    void store_zeros(int64_t z, int64_t i, int64_t j, Along along, int64_t count) const;

private:
    static constexpr int64_t chunk = 512;
    void store_chunk(int64_t z, int64_t i, int64_t j, Along along, int64_t count, float* values) const;

    const Problem& p_;
    float alpha_, beta_;
    bool wants_sums_;
};

// `slope`: of Silu.
void activate(Activation activation, float* values, int64_t count, float slope = 1.0f);

// The pointer and the element offset at which problem z of a batch begins.
template <class View>
auto* base(const View& x, int64_t z, int64_t& offset)
{
    offset = x.array ? x.offset : z * x.batch_stride;
    return x.array ? x.array[z] : x.ptr;
}

}  // namespace hg
