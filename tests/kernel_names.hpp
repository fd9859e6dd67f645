// The kernels of the library that is loaded, by the names that HGEMM_KERNEL takes.
#pragma once

#include <string>
#include <vector>

namespace hg::test {

// HGEMM_TEST_KERNELS=text: only those with that text in their names.
std::vector<std::string> kernel_names();

}  // namespace hg::test
