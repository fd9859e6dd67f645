// From a problem to its kernels: plan, pack, launch; and the short cut for repeated calls.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"
#include "src/run/plan_cache.hpp"

namespace hg {

// Runs the request on the handle's stream and sets `status`, if the plan cache has its launch. False if it
// does not, or if calls are logged.
bool repeat(Handle& handle, const Request& request, Status& status);
// Plans the problem of a checked request, and runs it on the handle's stream.
Status execute(Handle& handle, const Request& request, const Problem& problem);
// Fills the plan for a problem, from the cache or anew; plan() logs it as well.
Status decide(Handle& handle, const Problem& problem, Plan& plan);
Status plan(Handle& handle, const Problem& problem, Plan& plan);
Status check_workspace(const Handle& handle, const Plan& plan);
// Packs the problem, and launches the plan's kernels on the handle's stream.
Status run_plan(Handle& handle, const Problem& problem, const Plan& plan);
// Launches a plan's kernels, whose parameters are packed, on the handle's stream.
Status launch_plan(Handle& handle, const Plan& plan, const Packed& packed);

}  // namespace hg
