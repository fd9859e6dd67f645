// Clears the rows of D that no group owns.
#pragma once

#include "arch/common/experts/config.hpp"
#include "arch/common/groups.cuh"
#include "arch/common/ptx/global.cuh"

#include <cstdint>

namespace hg {

// Rows first ... last - 1 of a matrix belong to groups.
struct OwnedRows {
    int32_t first, last;

    __device__ OwnedRows(const ClearParams& p, int32_t matrix) : first(0), last(0)
    {
        if (p.group_count == 0)
            return;
        const bool masked = p.groups.masked();
        const GroupRows from = GroupRows::of(p.groups, masked ? matrix : 0, p.rows);
        const GroupRows to = masked ? from : GroupRows::of(p.groups, p.group_count - 1, p.rows);
        first = from.first;
        last = max(first, to.first + to.count);
    }
};

// By a warp.
__device__ inline void clear_row(const ClearParams& p, char* row)
{
    const auto lane = static_cast<int64_t>(threadIdx.x % 32);
    if (p.vectors)
        for (int64_t i = 16 * lane; i < p.row_bytes; i += 16 * 32)
            ptx::store_global_v4(reinterpret_cast<uint4*>(row + i), make_uint4(0, 0, 0, 0));
    else
        for (int64_t i = 2 * lane; i < p.row_bytes; i += 2 * 32)
            *reinterpret_cast<uint16_t*>(row + i) = 0;
}

// The whole kernel. Each CTA has a part of every matrices_at_once-th matrix.
__device__ inline void clear_rows(const ClearParams& p)
{
    const auto block = static_cast<int32_t>(blockIdx.x), warp = static_cast<int32_t>(threadIdx.x) / 32;
    const int32_t first = p.ctas_of_matrix.quotient(block), ctas = p.ctas_of_matrix.value;
    const int32_t begin = (block - first * ctas) * rows_warps + warp, step = ctas * rows_warps;
#pragma unroll 1
    for (int32_t matrix = first; matrix < p.matrices; matrix += p.matrices_at_once) {
        const OwnedRows owned(p, matrix);
        char* const d = p.d + matrix * p.stride_bytes;
#pragma unroll 1
        for (int64_t i = begin; i < owned.first + int64_t{p.rows - owned.last}; i += step)
            clear_row(p, d + (i < owned.first ? i : owned.last + (i - owned.first)) * p.ld_bytes);
    }
}

}  // namespace hg
