// The host fills OperandParams.
#pragma once

#include "arch/sm80/config.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstdint>

namespace hg::sm80 {

// `rows`: M of A, N of B.
inline OperandParams pack_operand(const Operand& o, const Problem& p, int64_t rows)
{
    OperandParams params{};
    params.ptr = static_cast<const uint16_t*>(o.ptr);
    params.array = reinterpret_cast<const uint16_t* const*>(o.array);
    params.row_stride = o.row_stride;
    params.k_stride = o.k_stride;
    params.batch_stride = o.batch_stride;
    if (o.array || p.is_grouped() || rows == 0 || p.k == 0 || p.batch == 0)
        return params;
    const int64_t last_problem = (p.batch - 1) * o.batch_stride;
    const auto place = [&](int64_t element) {
        return reinterpret_cast<uintptr_t>(o.ptr) + static_cast<uintptr_t>(2 * element);
    };
    params.begin = place(std::min<int64_t>(0, last_problem));
    params.end = place(std::max<int64_t>(0, last_problem) + extent(params, rows, p.k));
    return params;
}

}  // namespace hg::sm80
