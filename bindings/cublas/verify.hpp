// HGEMM_SHIM=verify: both libraries compute every GEMM, and the results are compared. The program gets the
// real library's result, so that differences do not add up.
#pragma once

#include "counts.hpp"
#include "handles.hpp"
#include "real_call.hpp"

#include <optional>
#include <span>
#include <string>

namespace hg::shim {

// Runs both.
// @return the real library's status; nothing if it was not called. Then D is libhgemm's result, or `reason`
// says why there is none.
std::optional<int> verify(Product product, void* handle, const Place& place,
                          std::span<const hgemm_args_t> products, const RealCall& real_call,
                          Reason& reason);

// Lines of the summary, each with a newline before it: the largest difference of each shape.
std::string differences();

// Forgets all differences in a forked child.
void leave_differences_behind();

}  // namespace hg::shim
