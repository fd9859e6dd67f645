// Published measurements of B200 kernels, and what the model says of each.
#pragma once

#include "arch/sm100/model.hpp"

#include <string>
#include <vector>

namespace hg::evidence {

constexpr int sm_count = 148;  // of a B200

struct Rung {
    const char *source, *name, *technique;
    int64_t size;  // m = n = k
    double published_us;
    sm100::Pipeline pipeline;
    // What the model lacks, where it cannot say anything of this kernel; else null.
    const char* outside;
    bool fitted = false;  // constants of the model come from it

    sm100::Prediction predicted() const;
    double predicted_us() const { return predicted().us; }
    double error() const { return predicted_us() / published_us - 1; }
};

const std::vector<Rung>& rungs();

// From a profiler: how busy tensor cores were, and the clock. Null where a source does not say.
struct Load {
    const char *source, *name;
    double busy, ghz;
};
const Load* load_of(const Rung& rung);

// The rung of the same source and size that a technique was added to; null for the first.
const Rung* before(const Rung& rung);
// Of the gain over it: predicted against published.
double step_error(const Rung& rung, const Rung& earlier);

sm100::Work square(const sm100::Pipeline& pipeline, int64_t size);

}  // namespace hg::evidence
