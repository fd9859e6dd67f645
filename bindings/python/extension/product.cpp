#include "product.hpp"

#include <algorithm>

#include "view.hpp"

namespace hgemm_torch {
namespace {

class Product {
public:
    Product(Tensor a, Tensor b, Tensor added, const Options& options)
        : options_(options), ready_(prepare(a, b) && (added == nullptr || add(added)))
    {
    }

    Tensor run()
    {
        if (!ready_)
            return nullptr;
        return written(a_, options_, allocate(), options_.aux != nullptr ? allocate_aux() : nullptr,
                       [&](hgemm_handle_t handle) { return api.gemm(handle, &args_); });
    }

private:
    bool prepare(Tensor a, Tensor b)
    {
        View y;
        Matrix left, right;
        if (!a_.read(a) || !y.read(b) || !a_.is_beside(y) || a_.dtype != y.dtype || !a_.is_half() ||
            !read_factors(y, left, right) || left.columns != right.rows || left.batch != right.batch)
            return false;

        api.args_init(&args_, sizeof args_);
        args_.layout = HGEMM_ROW_MAJOR;
        args_.type_ab = a_.type();
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

    bool read_factors(const View& y, Matrix& left, Matrix& right) const
    {
        if (options_.has(OUTER)) {
            const bool are_rows = a_.as_rows(left) && y.as_rows(right);
            left = left.transposed();
            return are_rows;
        }
        if (options_.has(LINEAR)) {
            if (y.dimensions != 2 || !a_.as_rows(left))
                return false;
            right = y.matrix().transposed();
            return true;
        }
        if (a_.dimensions != y.dimensions || a_.dimensions != (options_.has(BATCHED) ? 3 : 2))
            return false;
        left = a_.matrix();
        right = y.matrix();
        return true;
    }

    bool add(Tensor added)
    {
        View x;
        if (!x.read(added) || !x.is_beside(a_))
            return false;
        const hgemm_type_t type = x.type();
        if (type != args_.type_ab && type != HGEMM_F32)
            return false;
        if (options_.adds_row && x.dimensions != 1)
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

    // Of the result.
    std::int64_t columns() const { return args_.gate.block != 0 ? args_.n / 2 : args_.n; }

    Owned allocate()
    {
        const std::int32_t dtype = dtype_of(args_.type_d);
        return options_.has(OUTER) ? a_.new_tensor({args_.m, args_.n}, dtype, args_.d)
                                   : a_.new_rows(columns(), dtype, args_.d);
    }

    Owned allocate_aux()
    {
        args_.ldaux = std::max<std::int64_t>(1, args_.n);
        return options_.has(BATCHED) ? nullptr
                                     : a_.new_tensor({args_.m, args_.n}, dtype_of(args_.type_d), args_.aux);
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
