// The argument checks of hgemm_route(), hgemm_gather_rows() and hgemm_combine_rows().
#pragma once

#include "src/base/status.hpp"
#include "src/check/arguments.hpp"
#include "src/plan/experts.hpp"

#include <hgemm.h>

namespace hg {

// On the host it reads the experts, too.
Status check_route(const hgemm_route_args_t& args, Pointers pointers);
Status check_rows(const hgemm_rows_args_t& args, Rows how, Pointers pointers);

}  // namespace hg
