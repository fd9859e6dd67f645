// The configurations of kernels.def by name: host and device.
#pragma once

#include "arch/sm80/config.hpp"

namespace hg::sm80 {

#define KERNEL(family, name, ...) constexpr Config name##_config{Family::family, __VA_ARGS__};
#include "arch/sm80/kernels.def"
#undef KERNEL

}  // namespace hg::sm80
