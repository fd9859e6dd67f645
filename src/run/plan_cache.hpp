// PlanCache: what a handle keeps of recent calls, so that a repeated call looks its kernel up and launches
// it: plans by shape, and packed parameters by request.
#pragma once

#include "src/base/hashed_sets.hpp"
#include "src/plan/backend.hpp"

namespace hg {

struct Workspace {
    void* ptr;
    size_t bytes;
    // Words that are 0 between kernels: the CTAs of a kernel count arrivals in them and leave partial sums
    // for each other. A workspace of the user's has none.
    uint32_t* counters;
    size_t counter_words;
    // Which lent block it is, 0 for none: addresses of freed ones are used again, for blocks of other
    // parts.
    uint64_t block;
    bool operator==(const Workspace&) const = default;
};

// The arguments of a call before any check: a repeated call is recognised by them. `size` says which kind
// of function was called, since arguments that are right for one may be wrong for another.
using Request = hgemm_args_t;

// What plans depend on of a problem: no scalars, and of each pointer only its alignment and whether it is
// set. Problems of one shape have one plan.
Problem shape_of(const Problem& problem);

class PlanCache {
public:
    // The plan for this shape and this size of workspace; null if it is not known. Pointers count by their
    // alignment only, the workspace's not at all.
    const Plan* find_plan(const Problem& problem, const Workspace& workspace) const;
    void keep_plan(const Problem& problem, const Workspace& workspace, const Plan& plan);

    // A plan with its parameters for one request, pointers included. Requests that have one were checked.
    struct Launch {
        Request request;
        Workspace workspace;
        Plan plan;
        Packed packed;
    };
    const Launch* find_launch(const Request& request, const Workspace& workspace) const;
    // The entry to fill for a new launch. It is found after keep().
    Launch& entry_for(const Request& request, const Workspace& workspace);
    void keep(const Launch& launch);

    // Forgets everything: for when something that plans depend on, other than the workspace, has changed.
    void clear();

private:
    struct Decided {
        Problem shape;
        Workspace workspace;  // without addresses
        Plan plan;
    };
    // A model of 80 layers has up to 560 GEMMs with weights of their own, beside those of activations. Sets
    // that are a quarter full hardly ever overflow.
    HashedSets<Launch, 512> launches_;
    HashedSets<Decided, 64> decided_;
};

}  // namespace hg
