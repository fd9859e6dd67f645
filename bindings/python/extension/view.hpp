// Tensors as libhgemm takes them: matrices in memory, their types, and the handle of their device and
// stream.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "handles.hpp"
#include "hgemm.h"
#include "torch_api.hpp"

namespace hgemm_torch {

constexpr std::int64_t MAX_DIMENSIONS = 8;

struct Delete {
    void operator()(Tensor tensor) const { api.delete_tensor(tensor); }
};
using Owned = std::unique_ptr<AtenTensorOpaque, Delete>;

struct GiveBack {
    void operator()(Shared* shared) const { shared->give_back(); }
};
using Lent = std::unique_ptr<Shared, GiveBack>;  // a handle, as long as this lives

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

    bool is_contiguous() const;

    // Contiguous ones beside it, and where they lie: of its sizes but for the last, or of others. Null if
    // torch fails.
    Owned new_rows(std::int64_t columns, std::int32_t dtype, void*& address) const;
    Owned new_tensor(std::initializer_list<std::int64_t> sizes, std::int32_t dtype, void*& address) const;

    // The shared handle of its device and torch's stream there; null: there is none that is idle.
    Lent take_handle(bool batch_invariant) const;
};

// The leading dimension of a row-major matrix as BLAS stores it; 0: it is not stored so.
std::int64_t leading(const Matrix& x);
// The same of one in either order, and the order, by rows if it is both; false: in neither.
bool read_operand(const Matrix& x, hgemm_op_t& op, std::int64_t& ld);

// torch's number of a type.
std::int32_t dtype_of(hgemm_type_t type);

}  // namespace hgemm_torch
