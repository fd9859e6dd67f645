// Problem with groups -> kernel: how many rows each group has is known on the device alone.
#pragma once

#include "src/backend.hpp"
#include "src/problem.hpp"

namespace hg::sm90 {

bool choose_groups(const Problem& problem, const Device& device, const Options& options, Plan& plan);

}  // namespace hg::sm90
