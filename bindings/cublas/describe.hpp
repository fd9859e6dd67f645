// Describes a call in one line, for the log.
#pragma once

#include "route.hpp"

#include <string>

namespace hg::shim {

std::string describe(const GemmCall& call);
std::string describe(const GroupedCall& call);
std::string describe(const LtCall& call);
std::string describe(const hgemm_args_t& args);

}  // namespace hg::shim
