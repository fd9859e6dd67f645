// The cost model of sm90: how long a way to run a problem takes.
#pragma once

#include "arch/sm90/config.hpp"
#include "src/backend.hpp"

#include <limits>

namespace hg::sm90 {

// One way: a row, its orientation, slices of k, or tiles that the persistent CTAs share evenly. `clusters`
// counts what the scheduler hands out: tiles, or pairs of tiles where a cluster shares y, times all
// problems. `alone`: it starts when the kernels in front have ended, with its tiles where order.hpp puts
// them.
struct Way {
    int row;
    bool swapped;
    int split;
    bool streams;
    int64_t clusters;
    bool alone;

    // Clusters of all slices.
    int64_t launched() const;
};

// How persistent clusters share a problem's tiles when they stream: the first `tiles` by k tiles.
struct StreamShape {
    int64_t tiles, clusters;
};

// Clusters of so many CTAs that run at a time, with so many CTAs a multiprocessor.
int64_t clusters_held(int residents, int cluster, int sm_count);

// How far 128 bytes of an operand may begin behind a line of L2, of its length: such bytes take two lines.
double straddle(const Operand& operand);

// How the CTAs of a way fall on the multiprocessors.
struct Placement {
    double ctas, waves;
    double load;     // CTAs that the fullest one runs in all
    double crowded;  // the same where clusters crowd
    double filled;   // of the places for CTAs, at most 1
};

Placement place(const Config& config, const Way& way, int sm_count);

StreamShape stream_shape(const Config& config, int64_t tiles, int64_t k, int sm_count);

// Of a batch with less than 140 flops a byte the way from tile to tile decides, which single products hide.
// predict() has other constants for those.
bool is_light_batch(const Problem& problem);

struct Prediction {
    double us;
    Overlap overlap;
};

// What takes `limit` microseconds or more need not be worked out to the end: `us` is at least that then.
Prediction predict(const Problem& problem, const Config& config, const Way& way, int sm_count,
                   double limit = std::numeric_limits<double>::infinity());

}  // namespace hg::sm90
