// Stores a tile of floats in shared memory to an output that needs only alpha, and whose rows are whole
// aligned vectors of eight: see is_vector_output().
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/params.hpp"

namespace hg {

// Eight columns of the output that one thread stores. The type is the only branch, so that the rows of an
// unrolled loop overlap.
struct VectorColumn {
    char* d;  // in row 0
    int64_t row_bytes;
    float alpha;
    Type type;

    // Columns j ... j + 7 of problem z.
    __device__ VectorColumn(const OutputParams& p, float alpha, int64_t j, int32_t z)
        : d(static_cast<char*>(p.d) + (z * p.stride_d + j) * device_bytes_of(p.type_d)),
          row_bytes(p.ldd * device_bytes_of(p.type_d)), alpha(alpha), type(p.type_d)
    {
    }

    // Stores `sums`, a vector of floats in shared memory, to row i.
    __device__ void store(int64_t i, const float* sums) const
    {
        float v[2][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            *reinterpret_cast<float4*>(v[half]) = reinterpret_cast<const float4*>(sums)[half];
#pragma unroll
            for (float& x : v[half])
                x = __fmul_rn(alpha, x);
        }
        char* const to = d + i * row_bytes;
        if (type == Type::F32) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                reinterpret_cast<float4*>(to)[half] = *reinterpret_cast<const float4*>(v[half]);
        } else {
            *reinterpret_cast<uint4*>(to) =
                make_uint4(to_bits2(v[0][0], v[0][1], type), to_bits2(v[0][2], v[0][3], type),
                           to_bits2(v[1][0], v[1][1], type), to_bits2(v[1][2], v[1][3], type));
        }
    }
};

}  // namespace hg
