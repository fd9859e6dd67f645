// The argument checks of hgemm_route(), hgemm_gather_rows(), hgemm_combine_rows(), hgemm_dot_rows() and
// hgemm_clear_rows().
#pragma once

#include "src/base/status.hpp"
#include "src/check/arguments.hpp"
#include "src/check/group_sizes.hpp"
#include "src/plan/experts.hpp"

#include <hgemm.h>

namespace hg {

// On the host it reads the experts, too.
Status check_route(const hgemm_route_args_t& args, Pointers pointers);
Status check_rows(const hgemm_rows_args_t& args, Rows how, Pointers pointers);

// On the host it reads the groups' sizes, too. `sizes`: where it has found them; of no groups, none.
Status check_clear(const hgemm_grouped_args_t& args, Pointers pointers, GroupSizes& sizes);

// Is there nothing to write?
bool is_empty(const hgemm_rows_args_t& args, Rows how);

}  // namespace hg
