// What a handle remembers of recent calls: plans by shape, and packed parameters by whole request, so that
// a repeated call looks its kernel up and launches it.
#pragma once

#include "backend.hpp"
#include "hashed_sets.hpp"

namespace hg {

struct Workspace {
    void* ptr;
    size_t bytes;
    // Words that are 0 between kernels, with which the CTAs of a kernel count what they have done and leave
    // sums for each other. A workspace of the user's has none.
    uint32_t* counters;
    size_t counter_words;
    bool operator==(const Workspace&) const = default;
};

// A product as a caller asked for it, before any check: what a repeated call is recognised by. `size` tells
// the kind of call, so that what is right in one is not taken for right in another.
using Request = hgemm_args_t;

class PlanCache {
public:
    // The plan for this shape, pointers left aside but for their alignment, and such a workspace, wherever
    // it lies; null when it is not known.
    const Plan* find_plan(const Problem& problem, const Workspace& workspace) const;
    void keep_plan(const Problem& problem, const Workspace& workspace, const Plan& plan);

    // A launch is a plan with its parameters for one request, pointers included. Requests with a launch
    // were checked.
    struct Launch {
        Request request;
        Workspace workspace;
        Plan plan;
        Packed packed;
    };
    const Launch* find_launch(const Request& request, const Workspace& workspace) const;
    // The place for a new one, which is found once it was kept.
    Launch& place_for(const Request& request, const Workspace& workspace);
    void keep(const Launch& launch);

    // Forget everything: what plans depend on beside the workspace has changed.
    void clear();

private:
    struct Decided {
        Problem shape;
        Workspace workspace;  // without `ptr`
        Plan plan;
    };
    // A model of 80 layers has up to 560 products with weights of their own, beside those of activations; a
    // quarter full, sets hardly ever overflow.
    HashedSets<Launch, 512> launches_;
    HashedSets<Decided, 64> decided_;
};

}  // namespace hg
