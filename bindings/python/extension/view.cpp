#include "view.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hgemm_torch {
namespace {

Owned new_contiguous(const View& beside, const std::int64_t* sizes, std::int64_t dimensions,
                     std::int32_t dtype, void*& address)
{
    std::array<std::int64_t, MAX_DIMENSIONS> strides;
    std::int64_t step = 1;
    for (std::int64_t i = dimensions - 1; i >= 0; --i) {
        strides[i] = step;
        step *= std::max<std::int64_t>(1, sizes[i]);
    }
    Tensor result = nullptr;
    if (api.empty_strided(dimensions, sizes, strides.data(), dtype, beside.device_type, beside.device_index,
                          &result))
        return nullptr;
    Owned owned(result);
    return api.get_data_ptr(result, &address) ? nullptr : std::move(owned);
}

}  // namespace

bool View::read(Tensor tensor)
{
    return !(api.get_dim(tensor, &dimensions) || api.get_sizes(tensor, &sizes) ||
             api.get_strides(tensor, &strides) || api.get_dtype(tensor, &dtype) ||
             api.get_device_type(tensor, &device_type) || api.get_device_index(tensor, &device_index) ||
             api.get_data_ptr(tensor, &data));
}

hgemm_type_t View::type() const
{
    if (dtype == api.f16)
        return HGEMM_F16;
    if (dtype == api.bf16)
        return HGEMM_BF16;
    return dtype == api.f32 ? HGEMM_F32 : hgemm_type_t{};
}

Matrix View::matrix() const
{
    const std::int64_t last = dimensions - 1;
    Matrix result{sizes[last - 1], sizes[last], strides[last - 1], strides[last]};
    if (dimensions == 3) {
        result.batch = sizes[0];
        result.batch_stride = strides[0];
    }
    return result;
}

bool View::as_rows(Matrix& result) const
{
    const std::int64_t last = dimensions - 1;
    if (last < 0 || dimensions > MAX_DIMENSIONS)
        return false;
    result = {1, sizes[last], 0, strides[last]};
    for (std::int64_t i = last - 1; i >= 0; --i) {
        if (sizes[i] == 1)
            continue;
        if (result.rows == 1)
            result.row_stride = strides[i];
        else if (strides[i] != result.row_stride * result.rows)
            return false;
        result.rows *= sizes[i];
    }
    return true;
}

bool View::is_contiguous() const
{
    std::int64_t step = 1;
    for (std::int64_t i = dimensions - 1; i >= 0; --i) {
        if (sizes[i] > 1 && strides[i] != step)
            return false;
        step *= sizes[i];
    }
    return true;
}

Owned View::new_rows(std::int64_t columns, std::int32_t result_dtype, void*& address) const
{
    std::array<std::int64_t, MAX_DIMENSIONS> result_sizes;
    std::copy_n(sizes, dimensions - 1, result_sizes.begin());
    result_sizes[dimensions - 1] = columns;
    return new_contiguous(*this, result_sizes.data(), dimensions, result_dtype, address);
}

Owned View::new_tensor(std::initializer_list<std::int64_t> result_sizes, std::int32_t result_dtype,
                       void*& address) const
{
    const auto dimensions_of_result = static_cast<std::int64_t>(result_sizes.size());
    return new_contiguous(*this, result_sizes.begin(), dimensions_of_result, result_dtype, address);
}

Lent View::take_handle(bool batch_invariant) const
{
    Key key{HGEMM_DEVICE_HOST, nullptr, batch_invariant};
    if (device_type != api.cpu) {
        key.device = device_index;
        if (api.current_stream(key.device, &key.stream))
            return nullptr;
    }
    return Lent(Shared::take(key));
}

std::int32_t dtype_of(hgemm_type_t type)
{
    if (type == HGEMM_F16)
        return api.f16;
    return type == HGEMM_BF16 ? api.bf16 : api.f32;
}

std::int64_t leading(const Matrix& x)
{
    const std::int64_t shortest = std::max<std::int64_t>(1, x.columns);
    if (x.rows == 0 || x.columns == 0)
        return shortest;
    if (x.columns > 1 && x.column_stride != 1)
        return 0;
    if (x.rows == 1)
        return shortest;
    return x.row_stride >= shortest ? x.row_stride : 0;
}

bool read_operand(const Matrix& x, hgemm_op_t& op, std::int64_t& ld)
{
    op = HGEMM_NO_TRANS;
    ld = leading(x);
    if (ld == 0) {
        op = HGEMM_TRANS;
        ld = leading(x.transposed());
    }
    return ld != 0;
}

}  // namespace hgemm_torch
