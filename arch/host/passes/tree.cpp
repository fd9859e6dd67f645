#include "arch/host/passes/tree.hpp"

#include "arch/host/epilogue.hpp"

#include <algorithm>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t run_length = 256;  // elements of a row that are added up at a time

// The sum of the branch of `leaves` leaves, a power of two, whose first is at `from`.
void sum_branch(const float* from, int64_t stride, int64_t leaves, int64_t count, float* sum)
{
    if (leaves == 1) {
        std::copy_n(from, count, sum);
        return;
    }
    float right[run_length];
    sum_branch(from, stride, leaves / 2, count, sum);
    sum_branch(from + leaves / 2 * stride, stride, leaves / 2, count, right);
    for (int64_t i = 0; i < count; ++i)
        sum[i] += right[i];
}

}  // namespace

void sum_tree(Pool& pool, const Problem& output, const LeafSums& sums, int threads)
{
    const Epilogue epilogue(output);
    const int64_t rows = output.batch * output.m;
    // Fewer elements are not worth a second thread.
    constexpr int64_t elements_of_part = int64_t{1} << 15;
    const int64_t work = rows * output.n * sums.leaves;
    const auto parts = std::clamp<int64_t>(work / elements_of_part, 1, threads);
    pool.parallel_for(static_cast<int>(parts), rows, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const int64_t z = row / output.m, i = row - z * output.m;
            const float* const from = sums.ptr + z * sums.problem_stride + i * sums.ld;
            for (int64_t j = 0; j < output.n; j += run_length) {
                const int64_t count = std::min(run_length, output.n - j);
                float sum[run_length];
                sum_branch(from + j, sums.leaf_stride, sums.leaves, count, sum);
                epilogue.store(z, i, j, Along::Row, count, sum);
            }
        }
    });
}

}  // namespace hg
