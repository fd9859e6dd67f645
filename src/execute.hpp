// From a problem to its kernels: plan, pack, launch, and the short cut for what was asked before.
#pragma once

#include "backend.hpp"
#include "handle.hpp"
#include "plan_cache.hpp"
#include "problem.hpp"
#include "status.hpp"

namespace hg {

// If the same was asked lately, run it again on the handle's stream, with `status` for the outcome; false
// if it was not, or is to be logged.
bool repeat(Handle& handle, const Request& request, Status& status);
// Plan the problem that a checked request comes to, and run it on the handle's stream.
Status execute(Handle& handle, const Request& request, const Problem& problem);
// The plan for a problem, from the cache or made; plan() logs it as well.
Status decide(Handle& handle, const Problem& problem, Plan& plan);
Status plan(Handle& handle, const Problem& problem, Plan& plan);
Status check_workspace(const Handle& handle, const Plan& plan);

}  // namespace hg
