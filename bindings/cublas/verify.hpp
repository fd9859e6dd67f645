// HGEMM_SHIM=verify: every product is computed by both libraries and the results are compared. The program
// goes on with the real library's, so that differences do not add up.
#pragma once

#include "counts.hpp"
#include "handles.hpp"
#include "real_call.hpp"

#include <string>

namespace hg::shim {

// Runs both. `reason` tells why there was nothing of ours to compare, if so.
// @return the status of the real library.
int verify(Product product, void* handle, const Place& place, const hgemm_args_t& args,
           const RealCall& real_call, Reason& reason);

// Lines of the summary, each with a newline before it: by shape the largest difference found.
std::string differences();

// In a child process, which begins to count anew.
void leave_differences_behind();

}  // namespace hg::shim
