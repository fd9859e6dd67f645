// The host fills OperandParams.
#pragma once

#include "arch/sm80/config.hpp"
#include "src/problem.hpp"

#include <algorithm>
#include <cstdint>

namespace hg::sm80 {

// `rows`: M of A, N of B.
inline OperandParams pack_operand(const Operand& o, const Problem& p, int64_t rows)
{
    OperandParams params{static_cast<const uint16_t*>(o.ptr),
                         reinterpret_cast<const uint16_t* const*>(o.array),
                         o.row_stride,
                         o.k_stride,
                         o.batch_stride,
                         nullptr,
                         nullptr};
    if (o.array || rows == 0 || p.k == 0 || p.batch == 0)
        return params;
    const int64_t last_problem = (p.batch - 1) * o.batch_stride;
    params.begin = params.ptr + std::min<int64_t>(0, last_problem);
    params.end = params.ptr + std::max<int64_t>(0, last_problem) + extent(params, rows, p.k);
    return params;
}

}  // namespace hg::sm80
