// The kernels of the library that is loaded, by the names that HGEMM_KERNEL takes.
#pragma once

#include <string>
#include <vector>

namespace hg::test {

// HGEMM_TEST_KERNELS=text: only those with that text in their names, to force kernels in several processes.
// Of those for groups of rows, which serve nothing else, there is a list of their own. Those for triangles,
// gates and trees are in neither: DeviceKernels.triangle, DeviceKernels.gated, DeviceKernels.tree.
std::vector<std::string> kernel_names();
std::vector<std::string> grouped_kernel_names();
// Without HGEMM_TEST_KERNELS, so that some of each kind must be there.
bool names_all_kernels();
// Direct kernels do; they sum in an order of their own, and batch-invariant mode leaves them out.
bool shares_k_among_warps(const std::string& kernel);
// Those of fewer than eight y serve no x that is contiguous along k.
bool wants_rows_side_by_side(const std::string& kernel);

}  // namespace hg::test
