// The problem of a product, for models that read no operand.
#pragma once

#include "src/plan/problem.hpp"
#include "src/tools/bench/product.hpp"

namespace hg::evidence {

// D = A * transpose(B) of row-major f16, packed.
inline Problem problem_of(const bench::Product& product)
{
    void* const somewhere = reinterpret_cast<void*>(0x1000);
    Problem p{};
    p.m = product.m, p.n = product.n, p.k = product.k, p.batch = 1;
    p.type_ab = Type::F16;
    p.a = {somewhere, nullptr, p.k, 1, 0};
    p.b = {somewhere, nullptr, p.k, 1, 0};
    p.d = {somewhere, nullptr, p.n, 0, Type::F16};
    p.alpha = 1;
    return p;
}

}  // namespace hg::evidence
