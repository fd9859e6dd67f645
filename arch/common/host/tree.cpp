#include "arch/common/host/tree.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/pack.hpp"

namespace hg {

TreeSumParams pack_tree_sum(const Problem& output, const LeafSums& sums, int64_t ctas)
{
    // A thread that loads fewer leaves would wait as long for memory.
    constexpr int64_t least_branch = tree_leaves_at_once / 2;
    const int64_t elements = output.m * output.n;
    TreeSumParams p{};
    p.output = pack_output(output);
    p.sums = sums.ptr;
    p.leaf_stride = sums.leaf_stride;
    p.problem_stride = sums.problem_stride;
    p.ld = sums.ld;
    p.leaves = static_cast<int32_t>(sums.leaves);
    while (p.log2_members < max_log2_tree_members && sums.leaves >> p.log2_members >= 2 * least_branch &&
           output.batch * elements << p.log2_members < ctas * tree_threads)
        ++p.log2_members;
    const int64_t chunks = ceil_div(elements, tree_threads >> p.log2_members);
    p.elements = static_cast<int32_t>(elements);
    p.chunks = static_cast<int32_t>(chunks * output.batch);
    p.chunks_of_problem = divisor(static_cast<int32_t>(chunks));
    p.columns = divisor(static_cast<int32_t>(output.n));
    return p;
}

}  // namespace hg
