// What a handle remembers of recent calls: plans by shape, and packed parameters by whole problem, so that
// a repeated call looks its kernel up and launches it.
#pragma once

#include "backend.hpp"

namespace hg {

struct Workspace {
    void* ptr;
    size_t bytes;
    // Words with which the CTAs of a kernel that uses `ptr` count what they have done: 0 between kernels.
    // A workspace of the user's has none.
    uint32_t* counters;
    bool operator==(const Workspace&) const = default;
};

class PlanCache {
public:
    // The plan for this shape, pointers left aside but for their alignment, and such a workspace, wherever
    // it lies; null when it is not known.
    const Plan* find_plan(const Problem& problem, const Workspace& workspace) const;
    void keep_plan(const Problem& problem, const Workspace& workspace, const Plan& plan);

    // A launch is a plan with its parameters for one problem, pointers included.
    struct Launch {
        bool used;
        Problem problem;
        Workspace workspace;
        Plan plan;
        Packed packed;
    };
    const Launch* find_launch(const Problem& problem, const Workspace& workspace) const;
    // The place for a new one, which takes that of an older one; it counts once `used` is set.
    Launch& place_for(const Problem& problem, const Workspace& workspace);

    // Forget everything: what plans depend on beside the workspace has changed.
    void clear();

private:
    struct Decided {
        bool used;
        Problem shape;
        Workspace workspace;  // without `ptr`
        Plan plan;
    };
    static constexpr size_t plans = 128, launches = 64;
    Decided decided_[plans] = {};
    Launch launches_[launches] = {};
};

}  // namespace hg
