#include "view.hpp"

#include <algorithm>
#include <array>

namespace hgemm_torch {
namespace {

Tensor new_tensor(const View& beside, const std::int64_t* sizes, std::int64_t dimensions,
                  std::int32_t dtype)
{
    std::array<std::int64_t, MAX_DIMENSIONS> strides;
    std::int64_t step = 1;
    for (std::int64_t i = dimensions - 1; i >= 0; --i) {
        strides[i] = step;
        step *= std::max<std::int64_t>(1, sizes[i]);
    }
    Tensor result = nullptr;
    const Failed failed = api.empty_strided(dimensions, sizes, strides.data(), dtype, beside.device_type,
                                            beside.device_index, &result);
    return failed ? nullptr : result;
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

Tensor View::new_rows(std::int64_t columns, std::int32_t result_dtype) const
{
    std::array<std::int64_t, MAX_DIMENSIONS> result_sizes;
    std::copy_n(sizes, dimensions - 1, result_sizes.begin());
    result_sizes[dimensions - 1] = columns;
    return new_tensor(*this, result_sizes.data(), dimensions, result_dtype);
}

Tensor View::new_matrix(std::int64_t rows, std::int64_t columns, std::int32_t result_dtype) const
{
    const std::array<std::int64_t, 2> result_sizes{rows, columns};
    return new_tensor(*this, result_sizes.data(), 2, result_dtype);
}

Shared* View::take_handle(bool batch_invariant) const
{
    Key key{HGEMM_DEVICE_HOST, nullptr, batch_invariant};
    if (device_type != api.cpu) {
        key.device = device_index;
        if (api.current_stream(key.device, &key.stream))
            return nullptr;
    }
    return Shared::take(key);
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

}  // namespace hgemm_torch
