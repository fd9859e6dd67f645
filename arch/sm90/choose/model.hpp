// The cost model of sm90: how long a candidate takes.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/config.hpp"
#include "src/backend.hpp"

#include <cstdint>
#include <limits>

namespace hg::sm90 {

// One way to run a problem: a kernel, A and B swapped or not, slices of K, or stream-K. `clusters` counts
// what the scheduler deals out: tiles, or the tiles of a cluster where it has several, times all problems.
// `pdl_off`: it starts when earlier kernels have ended, with its tiles where raster.hpp puts them.
struct Candidate {
    int kernel;
    bool swap_ab;
    int split;
    bool stream_k;
    int64_t clusters;
    bool pdl_off;

    // Clusters of all slices.
    int64_t launched_clusters() const;
};

// How persistent clusters share a problem's tiles with stream-K: the first `tiles` by K tiles.
struct StreamShape {
    int64_t tiles, clusters;
};

// Clusters of so many CTAs that run at a time, with so many CTAs an SM.
int64_t clusters_held(int ctas_per_sm, int cluster, int sm_count);

// How far 128 bytes of an operand may begin behind a line of L2, of its length: such bytes take two lines.
double misalignment(const Operand& operand);

// How the CTAs of a candidate fall on the SMs.
struct Placement {
    double ctas, waves;
    double load;     // CTAs that the fullest one runs in all
    double crowded;  // the same where clusters crowd
    double filled;   // of the places for CTAs, at most 1
};

Placement place(const Config& config, const Candidate& candidate, int sm_count);

StreamShape stream_shape(const Config& config, int64_t tiles, int64_t k, int sm_count);

// Of a batch with less than 140 flops a byte what happens between two tiles decides, which single GEMMs
// hide. predict() has other constants for those.
bool is_low_intensity_batch(const Problem& problem);

struct Prediction {
    double us;
    Pdl pdl;
};

// What takes `limit` microseconds or more need not be worked out to the end: `us` is at least that then.
Prediction predict(const Facts& facts, const Config& config, const Candidate& candidate, int sm_count,
                   double limit = std::numeric_limits<double>::infinity());

}  // namespace hg::sm90
