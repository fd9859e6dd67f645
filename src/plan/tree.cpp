#include "src/plan/tree.hpp"

#include <cinttypes>
#include <cstdint>

namespace hg {
namespace {

// Kernels number the elements of a part with 31 bits.
constexpr int64_t max_elements = int64_t{1} << 30;
constexpr int64_t sums_alignment = 256;  // bytes

// The address of an element that is so many elements further; of what is absent null.
template <typename T>
T* displaced(T* first, int64_t elements, int64_t bytes)
{
    return first ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(first) +
                                        static_cast<uintptr_t>(elements * bytes))
                 : nullptr;
}

Operand operand_of(const Operand& o, int64_t elements)
{
    Operand moved = o;
    moved.ptr = displaced(o.ptr, elements, 2);
    return moved;
}

Matrix matrix_of(const Matrix& x, const TreePart& part)
{
    Matrix moved = x;
    moved.ptr = displaced(x.ptr, part.problem * x.batch_stride + part.row * x.ld, bytes_of(x.type));
    return moved;
}

bool has_arrays(const Problem& p) { return p.a.array || p.b.array || p.c.array || p.d.array; }

const char* refusal(const Problem& p)
{
    if (p.is_grouped())
        return "groups whose sizes are in device memory";
    if (has_arrays(p))
        return "a batch of pointer arrays";
    if (p.folded > 0)
        return "an activation that folds columns";
    return nullptr;
}

}  // namespace

Status plan_tree(const Problem& p, size_t room, Tree& tree)
{
    if (const char* const why_not = refusal(p))
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "tree mode does not serve %s with k = %" PRId64, why_not,
                    p.k);
    if (p.k > max_tree_k || p.n > max_elements / 2)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "tree mode does not serve a row-major D of %" PRId64 " columns with k = %" PRId64, p.n,
                    p.k);
    constexpr int64_t vector = 8;
    tree.leaves = count_leaves(p.k);
    tree.leaf_k = p.k / tree.leaves;
    tree.ld = (p.n + vector - 1) / vector * vector;
    const int64_t row_bytes = tree.leaves * tree.ld * int64_t{sizeof(float)};
    const int64_t units = static_cast<int64_t>(room / sums_alignment);
    const int64_t rows =
        std::max<int64_t>(1, std::min(units * sums_alignment / row_bytes, max_elements / tree.ld));
    const int64_t problems = rows / p.m;
    // Launches of either way: products and sums. The second way has whole problems in a part.
    tree.by_leaf = problems > 1 && p.batch > 1 &&
                   (p.batch + problems - 1) / problems * (tree.leaves + 1) < p.batch * 2;
    tree.problems = tree.by_leaf ? std::min(problems, p.batch) : 1;
    tree.rows = std::min(rows, p.m);
    tree.sums_bytes = static_cast<size_t>((tree.problems * tree.rows * row_bytes + sums_alignment - 1) /
                                          sums_alignment * sums_alignment);
    return ok;
}

Problem product_of_leaves(const Problem& p, const Tree& tree, const TreePart& part, int64_t index,
                          const LeafSums& sums)
{
    Problem leaves{};
    leaves.m = part.rows;
    leaves.n = p.n;
    leaves.k = tree.leaf_k;
    leaves.type_ab = p.type_ab;
    leaves.alpha = p.alpha;
    leaves.alpha_device = p.alpha_device;
    const int64_t k = index * tree.leaf_k;
    leaves.a =
        operand_of(p.a, part.problem * p.a.batch_stride + part.row * p.a.row_stride + k * p.a.k_stride);
    leaves.b = operand_of(p.b, part.problem * p.b.batch_stride + k * p.b.k_stride);
    float* const to = sums.ptr + index * sums.leaf_stride;
    if (tree.by_leaf) {
        leaves.batch = part.problems;
        leaves.d = {to, nullptr, sums.ld, sums.problem_stride, Type::F32};
    } else {
        leaves.batch = tree.leaves;
        leaves.a.batch_stride = tree.leaf_k * p.a.k_stride;
        leaves.b.batch_stride = tree.leaf_k * p.b.k_stride;
        leaves.d = {to, nullptr, sums.ld, sums.leaf_stride, Type::F32};
    }
    return leaves;
}

Problem output_of(const Problem& p, const TreePart& part)
{
    Problem output = p;
    output.batch = part.problems;
    output.m = part.rows;
    output.a = output.b = {};
    output.alpha = 1.0f;
    output.alpha_device = nullptr;
    output.c = matrix_of(p.c, part);
    output.d = matrix_of(p.d, part);
    output.aux = matrix_of(p.aux, part);
    const int64_t row = p.bias.along == BiasAlong::Rows ? part.row : 0;
    output.bias.ptr =
        displaced(p.bias.ptr, part.problem * p.bias.batch_stride + row, bytes_of(p.bias.type));
    return output;
}

}  // namespace hg
