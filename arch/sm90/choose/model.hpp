// The cost model of sm90: how long a candidate takes.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/config.hpp"
#include "src/backend.hpp"
#include "src/calibration.hpp"

#include <cstdint>
#include <limits>

namespace hg::sm90 {

struct Candidate {
    int kernel;
    bool swap_ab;
    int split;  // slices of K
    bool stream_k;
    int64_t clusters;  // cluster tiles of D, of all problems of a batch
    bool pdl_off;      // it starts when earlier kernels have ended, so that tiles can be placed by GPC

    // `clusters` times the slices that are clusters of their own.
    int64_t launched_clusters() const;
};

// Stream-K: `clusters` persistent clusters share the K tiles of the first `tiles` tiles evenly.
struct StreamShape {
    int64_t tiles, clusters;
};

// How many clusters of `cluster` CTAs run at a time.
int64_t resident_clusters(int ctas_per_sm, int cluster, int sm_count);

// The largest offset, as a fraction of 128 bytes, at which a row of an operand begins behind a 128-byte
// line of L2. A TMA request of 128 bytes that is not aligned to such a line reads two.
double misalignment(const Operand& operand);

// How a candidate's CTAs are spread over the SMs.
struct Occupancy {
    double ctas, waves;
    double load;     // CTAs that the fullest SM runs, of all waves
    double crowded;  // `load` with the CTAs that clusters put on one SM although others are idle
    double filled;   // share of the places for CTAs that is taken, at most 1
};

Occupancy occupancy_of(const Config& config, const Candidate& candidate, int sm_count);

StreamShape stream_shape(const Config& config, int64_t tiles, int64_t k, int sm_count);

// A batch with less than 140 flops a byte: its time is mostly that between two tiles, which single GEMMs
// hide. predict() has other constants for it.
bool is_low_intensity_batch(const Problem& problem);

struct Prediction {
    double us;
    Pdl pdl;
};

// Stops early once the time is known to be `limit` microseconds or more; `us` is then a lower bound.
Prediction predict(const Facts& facts, const Config& config, const Candidate& candidate, int sm_count,
                   double limit = std::numeric_limits<double>::infinity(), const Factors& factors = {});

}  // namespace hg::sm90
