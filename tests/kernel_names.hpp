// The kernels of the library that is loaded, by the names that HGEMM_KERNEL takes.
#pragma once

#include <string>
#include <vector>

namespace hg::test {

std::vector<std::string> kernel_names();

}  // namespace hg::test
