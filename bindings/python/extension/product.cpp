#include "product.hpp"

#include <algorithm>
#include <array>

#include "handles.hpp"

namespace hgemm_torch {
namespace {

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

    bool read(Tensor tensor)
    {
        return !(api.get_dim(tensor, &dimensions) || api.get_sizes(tensor, &sizes) ||
                 api.get_strides(tensor, &strides) || api.get_dtype(tensor, &dtype) ||
                 api.get_device_type(tensor, &device_type) || api.get_device_index(tensor, &device_index) ||
                 api.get_data_ptr(tensor, &data));
    }

    bool is_beside(const View& other) const
    {
        return device_type == other.device_type && device_index == other.device_index;
    }

    // The last two dimensions, and one before them as a batch.
    Matrix matrix() const
    {
        const std::int64_t last = dimensions - 1;
        Matrix result{sizes[last - 1], sizes[last], strides[last - 1], strides[last]};
        if (dimensions == 3) {
            result.batch = sizes[0];
            result.batch_stride = strides[0];
        }
        return result;
    }

    // All dimensions before the last as rows; false if they have no common stride.
    bool as_rows(Matrix& result) const
    {
        const std::int64_t last = dimensions - 1;
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
};

// The leading dimension of a row-major matrix as BLAS stores it; 0: it is not stored so.
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

hgemm_type_t type_of(std::int32_t dtype)
{
    if (dtype == api.f16)
        return HGEMM_F16;
    if (dtype == api.bf16)
        return HGEMM_BF16;
    return dtype == api.f32 ? HGEMM_F32 : hgemm_type_t{};
}

bool is_half(hgemm_type_t type) { return type == HGEMM_F16 || type == HGEMM_BF16; }

class Product {
public:
    Product(Tensor a, Tensor b, Tensor added, const Options& options)
        : options_(options), ready_(prepare(a, b) && (added == nullptr || add(added)))
    {
    }

    Tensor run()
    {
        Key key;
        if (!ready_ || !find(key))
            return nullptr;
        Shared* shared = Shared::take(key);
        if (shared == nullptr)
            return nullptr;
        Tensor result = allocate();
        if (result != nullptr && (api.get_data_ptr(result, &args_.d) || api.gemm(shared->handle, &args_))) {
            api.delete_tensor(result);
            result = nullptr;
        }
        shared->give_back();
        return result;
    }

private:
    bool prepare(Tensor a, Tensor b)
    {
        View y;
        Matrix left, right;
        if (!a_.read(a) || !y.read(b) || !a_.is_beside(y) || a_.dtype != y.dtype ||
            !is_half(type_of(a_.dtype)))
            return false;
        if (options_.has(LINEAR)) {
            if (a_.dimensions < 1 || a_.dimensions > MAX_DIMENSIONS || y.dimensions != 2 ||
                !a_.as_rows(left))
                return false;
            right = y.matrix().transposed();
        } else {
            if (a_.dimensions != y.dimensions || a_.dimensions != (options_.has(BATCHED) ? 3 : 2))
                return false;
            left = a_.matrix();
            right = y.matrix();
        }
        if (left.columns != right.rows || left.batch != right.batch)
            return false;

        api.args_init(&args_, sizeof args_);
        args_.layout = HGEMM_ROW_MAJOR;
        args_.type_ab = type_of(a_.dtype);
        args_.type_c = args_.type_d = options_.has(WIDE) ? HGEMM_F32 : args_.type_ab;
        args_.m = left.rows;
        args_.n = right.columns;
        args_.k = left.columns;
        args_.alpha = static_cast<float>(options_.alpha);
        args_.a = a_.data;
        args_.b = y.data;
        args_.gate = options_.gate;
        args_.ldd = std::max<std::int64_t>(1, columns());
        args_.activation = options_.activation();
        args_.uplo = options_.has(SYMMETRIC) ? HGEMM_BOTH : HGEMM_UPLO_NONE;
        args_.batch_count = left.batch;
        args_.stride_a = left.batch_stride;
        args_.stride_b = right.batch_stride;
        args_.stride_d = options_.has(BATCHED) ? args_.m * columns() : 0;
        return read_operand(left, args_.transa, args_.lda) && read_operand(right, args_.transb, args_.ldb);
    }

    bool add(Tensor added)
    {
        View x;
        if (!x.read(added) || !x.is_beside(a_))
            return false;
        const hgemm_type_t type = type_of(x.dtype);
        if (type != args_.type_ab && type != HGEMM_F32)
            return false;
        if (x.dimensions == 1 && options_.beta == 1) {
            args_.bias_mode = HGEMM_BIAS_N;
            args_.bias_type = type;
            args_.bias = x.data;
            return x.sizes[0] == args_.n && (args_.n == 1 || x.strides[0] == 1);
        }
        if (options_.has(LINEAR) || options_.beta == 0 || x.dimensions != a_.dimensions)
            return false;
        const Matrix c = x.matrix();
        args_.type_c = type;
        args_.beta = static_cast<float>(options_.beta);
        args_.c = x.data;
        args_.ldc = leading(c);
        args_.stride_c = c.batch_stride;
        return c.rows == args_.m && c.columns == args_.n && c.batch == args_.batch_count && args_.ldc != 0;
    }

    // On which device and stream.
    bool find(Key& key) const
    {
        key = {HGEMM_DEVICE_HOST, nullptr, options_.has(BATCH_INVARIANT)};
        if (a_.device_type == api.cpu)
            return true;
        key.device = a_.device_index;
        return !api.current_stream(key.device, &key.stream);
    }

    // Of the result.
    std::int64_t columns() const { return args_.gate.block != 0 ? args_.n / 2 : args_.n; }

    Tensor allocate() const
    {
        std::array<std::int64_t, MAX_DIMENSIONS> sizes, strides;
        const std::int64_t last = a_.dimensions - 1;
        std::copy_n(a_.sizes, last, sizes.begin());
        sizes[last] = columns();
        std::int64_t step = 1;
        for (std::int64_t i = last; i >= 0; --i) {
            strides[i] = step;
            step *= std::max<std::int64_t>(1, sizes[i]);
        }
        Tensor result = nullptr;
        const Failed failed = api.empty_strided(a_.dimensions, sizes.data(), strides.data(),
                                                options_.has(WIDE) ? api.f32 : a_.dtype, a_.device_type,
                                                a_.device_index, &result);
        return failed ? nullptr : result;
    }

    const Options& options_;
    View a_;
    hgemm_args_t args_;
    const bool ready_;
};

}  // namespace

Tensor product(Tensor a, Tensor b, Tensor added, const Options& options)
{
    return Product(a, b, added, options).run();
}

}  // namespace hgemm_torch
