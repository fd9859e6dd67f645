// XLA's handlers of grouped products, as matmul.cpp has those of others.
//
// Arguments: a, b and ends, int32, which say where each group ends; results: d and a workspace. Attributes,
// all int32: of_k, transpose_b and batch_invariant. Groups are of rows: a is m x k, b has a matrix for each
// group, and d is m x n. Or of_k: d_g is a^T * b over the rows of group g, which a and b have one group
// behind the other.
#include "call.hpp"
#include "handles.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>

namespace hg::xla {
namespace {

// Grouped products, for each index of the leading dimensions. These are as many in every array, and where
// an array has length 1, it is shared.
struct GroupedCall {
    Matrices a, b, d, ends;
    bool of_k, transpose_b, batch_invariant;

    explicit GroupedCall(const CallFrame& frame);
    std::span<const int64_t> leading() const { return d.dims.first(ends.dims.size() - 1); }
    std::span<const int64_t> own(const Matrices& array) const
    {
        return array.dims.subspan(leading().size());
    }
};

void check_dims(const GroupedCall& call, const Matrices& array, const char* name,
                std::initializer_list<int64_t> wanted)
{
    if (!std::ranges::equal(call.own(array), wanted))
        refuse(std::string(name) + ": its shape does not fit those of the other arrays");
    for (size_t i = 0; i < call.leading().size(); ++i)
        if (array.dims[i] != 1 && array.dims[i] != call.leading()[i])
            refuse(std::string(name) + ": its leading dimensions do not fit those of the result");
}

void check_rank(const Matrices& array, const char* name, size_t rank)
{
    if (array.dims.size() != rank)
        refuse(std::string(name) + ": has " + std::to_string(array.dims.size()) +
               " dimensions, must have " + std::to_string(rank) + " beside those of ends");
}

GroupedCall::GroupedCall(const CallFrame& frame)
{
    if (frame.arguments.size != 3 || frame.results.size != 2)
        refuse("must have the arguments a, b and ends, and the results d and a workspace");
    a = matrices_of(frame.arguments, 0, "a");
    b = matrices_of(frame.arguments, 1, "b");
    ends = integers_of(frame.arguments, 2, "ends");
    d = matrices_of(frame.results, 0, "d");
    if (a.type == HGEMM_F32 || b.type != a.type)
        refuse("b: a and b must both be float16 or both bfloat16");
    of_k = attribute(frame, "of_k") != 0;
    transpose_b = attribute(frame, "transpose_b") != 0;
    batch_invariant = attribute(frame, "batch_invariant") != 0;
    if (of_k && transpose_b)
        refuse("transpose_b: must be 0 for groups of k");
    const size_t rank = ends.dims.size();
    if (rank == 0)
        refuse("ends: has 0 dimensions, must have 1 or more");
    check_rank(a, "a", rank + 1);
    check_rank(b, "b", of_k ? rank + 1 : rank + 2);
    check_rank(d, "d", of_k ? rank + 2 : rank + 1);
    const int64_t rows = own(a)[0], columns = own(a)[1], n = d.dims.back(), groups = ends.dims.back();
    if (rows > std::numeric_limits<int32_t>::max())
        refuse("a: has " + std::to_string(rows) + " rows, must have fewer than 2^31");
    check_dims(*this, a, "a", {rows, columns});
    check_dims(*this, ends, "ends", {groups});
    if (of_k) {
        check_dims(*this, b, "b", {rows, n});
        check_dims(*this, d, "d", {groups, columns, n});
        return;
    }
    transpose_b ? check_dims(*this, b, "b", {groups, n, columns})
                : check_dims(*this, b, "b", {groups, columns, n});
    check_dims(*this, d, "d", {rows, n});
}

hgemm_grouped_args_t arguments_of(const GroupedCall& call)
{
    hgemm_grouped_args_t args;
    hgemm_grouped_args_init(&args, sizeof args);
    const int64_t rows = call.own(call.a)[0], columns = call.own(call.a)[1];
    args.grouping = call.of_k ? HGEMM_GROUPED_K : HGEMM_GROUPED_CONTIGUOUS;
    args.transa = call.of_k ? HGEMM_TRANS : HGEMM_NO_TRANS;
    args.transb = call.transpose_b ? HGEMM_TRANS : HGEMM_NO_TRANS;
    args.type_ab = call.a.type;
    args.type_d = call.d.type;
    args.group_count = call.ends.dims.back();
    args.m = call.of_k ? columns : rows;
    args.n = call.d.dims.back();
    args.k = call.of_k ? rows : columns;
    args.lda = std::max<int64_t>(1, columns);
    args.ldb = std::max<int64_t>(1, call.b.dims.back());
    args.ldd = std::max<int64_t>(1, args.n);
    if (call.of_k)
        args.stride_d = args.m * args.n;
    else
        args.stride_b = args.k * args.n;
    return args;
}

int64_t product_of(std::span<const int64_t> dims)
{
    int64_t product = 1;
    for (const int64_t length : dims)
        product *= length;
    return product;
}

// What the array has for the index-th grouped product.
void* part_of(const GroupedCall& call, const Matrices& array, int64_t index)
{
    const std::span<const int64_t> leading = call.leading();
    int64_t first = 0, step = product_of(call.own(array));
    for (size_t i = leading.size(); i-- > 0; index /= leading[i]) {
        first += array.dims[i] == 1 ? 0 : index % leading[i] * step;
        step *= array.dims[i];
    }
    const int64_t bytes = array.type == HGEMM_F16 || array.type == HGEMM_BF16 ? 2 : 4;
    return first == 0 ? array.data : static_cast<char*>(array.data) + first * bytes;
}

void multiply_groups(const CallFrame& frame, bool on_gpu)
{
    const GroupedCall call(frame);
    const Lent handle = lend(frame, on_gpu, call.batch_invariant);
    hgemm_grouped_args_t args = arguments_of(call);
    const int64_t count = product_of(call.leading());
    for (int64_t i = 0; i < count; ++i) {
        args.a = part_of(call, call.a, i);
        args.b = part_of(call, call.b, i);
        args.d = part_of(call, call.d, i);
        args.ends_i32 = static_cast<const int32_t*>(part_of(call, call.ends, i));
        require(hgemm_grouped_ex(handle, &args));
    }
}

}  // namespace
}  // namespace hg::xla

extern "C" __attribute__((visibility("default"))) hg::xla::Error*
hgemm_xla_grouped_host(const hg::xla::CallFrame* frame)
{
    return hg::xla::answer(*frame, false, hg::xla::multiply_groups);
}

extern "C" __attribute__((visibility("default"))) hg::xla::Error*
hgemm_xla_grouped_cuda(const hg::xla::CallFrame* frame)
{
    return hg::xla::answer(*frame, true, hg::xla::multiply_groups);
}
