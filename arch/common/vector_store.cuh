// From a tile of floats in shared memory to an output that takes alpha and a bias and nothing else, and
// whose rows are whole aligned vectors of eight: see is_vector_output(). A thread keeps to one vector of
// columns.
#pragma once

#include "arch/common/epilogue.cuh"

namespace hg {

struct VectorColumn {
    char* d;  // in row 0
    int64_t row_bytes;
    const void* row_bias;  // null: none
    float bias[epilogue_vector];
    float alpha;
    bool has_column_bias;
    Type type, type_bias;

    // Columns j ... j + 7 of problem z.
    __device__ VectorColumn(const OutputParams& p, float alpha, int64_t j, int32_t z)
        : alpha(alpha), has_column_bias(p.bias_along == BiasAlong::Columns), type(p.type_d),
          type_bias(p.type_bias)
    {
        const int64_t bytes = device_bytes_of(type);
        d = static_cast<char*>(p.d) + (z * p.stride_d + j) * bytes;
        row_bytes = p.ldd * bytes;
        const char* bias_of_z =
            static_cast<const char*>(p.bias) + z * p.stride_bias * device_bytes_of(type_bias);
        row_bias = p.bias_along == BiasAlong::Rows ? bias_of_z : nullptr;
        if (has_column_bias)
            load_elements(bias, bias_of_z, j, type_bias, epilogue_vector);
    }

    // `sums` is a vector of floats in shared memory, of row i.
    __device__ void store(int64_t i, const float (&sums)[epilogue_vector]) const
    {
        float v[epilogue_vector];
#pragma unroll
        for (int e = 0; e < epilogue_vector; ++e)
            v[e] = __fmul_rn(alpha, sums[e]);
        if (has_column_bias) {
#pragma unroll
            for (int e = 0; e < epilogue_vector; ++e)
                v[e] = __fadd_rn(v[e], bias[e]);
        } else if (row_bias) {
            const float b = load_element(row_bias, i, type_bias);
#pragma unroll
            for (float& x : v)
                x = __fadd_rn(x, b);
        }
        write(d + i * row_bytes, v);
    }

private:
    __device__ void write(void* to, const float (&v)[epilogue_vector]) const
    {
        if (type == Type::F32) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                static_cast<float4*>(to)[half] = reinterpret_cast<const float4*>(v)[half];
        } else {
            *static_cast<uint4*>(to) = make_uint4(to_bits2(v[0], v[1], type), to_bits2(v[2], v[3], type),
                                                  to_bits2(v[4], v[5], type), to_bits2(v[6], v[7], type));
        }
    }
};

// As store_chunk(), of problem z.
template <int Cols>
__device__ inline void store_chunk_vectors(const OutputParams& p, float alpha, int32_t z,
                                           const float* chunk, int64_t row, int64_t column, int columns,
                                           int lane)
{
    constexpr int vectors = Cols / epilogue_vector, rows_at_once = 32 / vectors;
    const int vector = lane % vectors, first = lane / vectors;
    const int64_t j = column + vector * epilogue_vector;
    if (vector * epilogue_vector >= columns || j >= p.n)
        return;
    const VectorColumn out(p, alpha, j, z);
    const auto rows = static_cast<int>(min(int64_t{epilogue_rows}, p.m - row));
#pragma unroll
    for (int r = 0; r < epilogue_rows; r += rows_at_once) {
        if (r + first >= rows)
            continue;
        float v[epilogue_vector];
        Chunk<Cols>::get(v, chunk, r + first, vector);
        out.store(row + r + first, v);
    }
}

}  // namespace hg
