// The kernels of the library that is loaded, by the names that HGEMM_KERNEL takes.
#pragma once

#include <string>
#include <vector>

namespace hg::test {

// HGEMM_TEST_KERNELS=text: only those with that text in their names, to force kernels in several processes;
// tests that compare kernels, or want one of each kind, then may fail.
std::vector<std::string> kernel_names();

}  // namespace hg::test
