// Sums in the workspace: what trees and gates have in common.
#pragma once

#include <cstdint>

namespace hg {

constexpr int64_t max_sums = int64_t{1} << 30;  // of a part: kernels number its elements with 31 bits
constexpr int64_t sums_alignment = 256;         // bytes
constexpr int64_t sums_vector = 8;              // elements

constexpr int64_t round_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

}  // namespace hg
