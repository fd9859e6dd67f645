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

// The whole kernel.
__device__ inline void clear_rows(const ClearParams& p)
{
    const auto block = static_cast<int32_t>(blockIdx.x),
               step = static_cast<int32_t>(gridDim.x) / p.ctas_of_matrix;
    const int32_t part = block % p.ctas_of_matrix, warp = static_cast<int32_t>(threadIdx.x) / 32;
#pragma unroll 1
    for (int32_t matrix = block / p.ctas_of_matrix; matrix < p.matrices; matrix += step) {
        const OwnedRows owned(p, matrix);
        const int32_t count = owned.first + (p.rows - owned.last);
#pragma unroll 1
        for (int64_t i = part * rows_warps + warp; i < count; i += p.ctas_of_matrix * rows_warps) {
            const int64_t row = i < owned.first ? i : owned.last + (i - owned.first);
            clear_row(p, p.d + matrix * p.stride_bytes + row * p.ld_bytes);
        }
    }
}

}  // namespace hg
