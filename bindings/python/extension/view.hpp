// Tensors as libhgemm takes them: matrices in memory, their types, and the handle of their device and
// stream.
#pragma once

#include <cstdint>

#include "handles.hpp"
#include "hgemm.h"
#include "torch_api.hpp"

namespace hgemm_torch {

constexpr std::int64_t MAX_DIMENSIONS = 8;

struct Matrix {  // or a batch of them
    std::int64_t rows, columns, row_stride, column_stride;
    std::int64_t batch = 1, batch_stride = 0;

    Matrix transposed() const { return {columns, rows, column_stride, row_stride, batch, batch_stride}; }
};

struct View {
    std::int64_t dimensions, *sizes, *strides;
    std::int32_t dtype, device_type, device_index;
    void* data;

    bool read(Tensor tensor);
    // 0: none of libhgemm.
    hgemm_type_t type() const;
    bool is_half() const { return type() == HGEMM_F16 || type() == HGEMM_BF16; }

    bool is_beside(const View& other) const
    {
        return device_type == other.device_type && device_index == other.device_index;
    }

    // The last two dimensions, and one before them as a batch.
    Matrix matrix() const;
    // All dimensions before the last as rows; false if they have no common stride.
    bool as_rows(Matrix& result) const;

    // A contiguous one beside it, of its sizes but for the last; null if torch fails.
    Tensor new_rows(std::int64_t columns, std::int32_t dtype) const;
    Tensor new_matrix(std::int64_t rows, std::int64_t columns, std::int32_t dtype) const;

    // The shared handle of its device and torch's stream there, taken; null: there is none that is idle.
    Shared* take_handle(bool batch_invariant) const;
};

// The leading dimension of a row-major matrix as BLAS stores it; 0: it is not stored so.
std::int64_t leading(const Matrix& x);

}  // namespace hgemm_torch
