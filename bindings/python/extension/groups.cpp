#include "groups.hpp"

#include <algorithm>

namespace hgemm_torch {

bool read_ends(Tensor ends, const View& beside, hgemm_grouped_args_t& args)
{
    View x;
    if (!x.read(ends) || !x.is_beside(beside) || x.dimensions != 1 || !x.is_contiguous() ||
        (x.dtype != api.i32 && x.dtype != api.i64))
        return false;
    args.group_count = x.sizes[0];
    if (x.dtype == api.i32)
        args.ends_i32 = static_cast<const std::int32_t*>(x.data);
    else
        args.ends = static_cast<const std::int64_t*>(x.data);
    return true;
}

namespace {

std::int64_t at_least_one(std::int64_t length) { return std::max<std::int64_t>(1, length); }

// Rows as kernels of GPUs read them fast.
bool is_aligned(const Matrix& x, const void* data)
{
    return x.column_stride == 1 && x.row_stride >= x.columns && x.row_stride % 8 == 0 &&
           reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

class GroupedProduct {
public:
    GroupedProduct(Tensor a, Tensor b, Tensor ends, Tensor bias, const Options& options)
        : options_(options), ready_(read(a, b, ends) && (options.has(OF_K) ? of_k() : of_rows(bias)))
    {
    }

    Tensor run()
    {
        if (!ready_)
            return nullptr;
        return written(a_, options_, allocate(), options_.aux != nullptr ? allocate_aux() : nullptr,
                       [&](hgemm_handle_t handle) {
                           return api.grouped(handle, &args_) ||
                                  (options_.has(CLEAR) && api.clear_rows(handle, &args_));
                       });
    }

private:
    bool read(Tensor a, Tensor b, Tensor ends)
    {
        api.grouped_args_init(&args_, sizeof args_);
        if (!a_.read(a) || !b_.read(b) || !a_.is_beside(b_) || a_.dtype != b_.dtype || !a_.is_half() ||
            a_.dimensions != 2 || b_.dimensions != (options_.has(OF_K) ? 2 : 3) ||
            !read_ends(ends, a_, args_))
            return false;
        left_ = a_.matrix();
        right_ = b_.matrix();
        args_.type_ab = a_.type();
        args_.type_d = options_.has(WIDE) ? HGEMM_F32 : args_.type_ab;
        args_.m = left_.rows;
        args_.n = right_.columns;
        args_.k = left_.columns;
        args_.a = a_.data;
        args_.b = b_.data;
        args_.activation = options_.activation();
        args_.gate = options_.gate;
        args_.ldd = at_least_one(columns());
        return left_.columns == right_.rows;
    }

    bool of_rows(Tensor bias)
    {
        args_.lda = leading(left_);
        read_operand(right_, args_.transb, args_.ldb);
        args_.stride_b = right_.batch_stride;
        return args_.lda != 0 && args_.ldb != 0 && args_.group_count == right_.batch &&
               (!options_.has(ADDED) || add(bias));
    }

    bool add(Tensor bias)
    {
        View x;
        if (!x.read(bias) || !x.is_beside(a_) || x.dimensions != 2 || !x.is_contiguous())
            return false;
        args_.bias = x.data;
        args_.bias_type = x.type();
        args_.stride_bias = args_.n;
        return (x.dtype == a_.dtype || x.dtype == api.f32) && x.sizes[0] == args_.group_count &&
               x.sizes[1] == args_.n;
    }

    // Where an operand is stored in both orders, it is said to be in that which GPUs are fast with.
    bool of_k()
    {
        const Matrix columns_of_a = left_.transposed();
        if (a_.device_type != api.cpu &&
            (!is_aligned(columns_of_a, a_.data) || !is_aligned(right_, b_.data)))
            return false;
        args_.grouping = HGEMM_GROUPED_K;
        args_.stride_d = args_.m * args_.n;
        const bool is_there = read_operand(columns_of_a, args_.transa, args_.lda) &&
                              read_operand(right_, args_.transb, args_.ldb);
        args_.transa = args_.transa == HGEMM_TRANS ? HGEMM_NO_TRANS : HGEMM_TRANS;
        return is_there;
    }

    // Of the result.
    std::int64_t columns() const { return args_.gate.block != 0 ? args_.n / 2 : args_.n; }

    Owned allocate()
    {
        const std::int32_t dtype = dtype_of(args_.type_d);
        return options_.has(OF_K) ? a_.new_tensor({args_.group_count, args_.m, args_.n}, dtype, args_.d)
                                  : a_.new_tensor({args_.m, columns()}, dtype, args_.d);
    }

    Owned allocate_aux()
    {
        args_.ldaux = at_least_one(args_.n);
        return a_.new_tensor({args_.m, args_.n}, dtype_of(args_.type_d), args_.aux);
    }

    const Options& options_;
    View a_, b_;
    Matrix left_, right_;
    hgemm_grouped_args_t args_;
    const bool ready_;
};

}  // namespace

Tensor grouped_product(Tensor a, Tensor b, Tensor ends, Tensor bias, const Options& options)
{
    return GroupedProduct(a, b, ends, bias, options).run();
}

}  // namespace hgemm_torch
