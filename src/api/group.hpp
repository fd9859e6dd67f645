// One group of a grouped GEMM as a GEMM of its own.
#pragma once

#include "hgemm.h"
#include "src/check/group_sizes.hpp"
#include "src/plan/problem.hpp"

#include <cstdint>

namespace hg {

inline bool is_masked(const hgemm_grouped_args_t& g) { return g.grouping == HGEMM_GROUPED_MASKED; }
inline bool is_of_k(const hgemm_grouped_args_t& g) { return g.grouping == HGEMM_GROUPED_K; }
inline int64_t bytes_of_d(const hgemm_grouped_args_t& g) { return bytes_of(static_cast<Type>(g.type_d)); }

// The arguments of a GEMM over some rows of a group, or over some K of a group of K.
hgemm_args_t args_of(const hgemm_grouped_args_t& g, int64_t group, GroupSizes::Rows range);

}  // namespace hg
