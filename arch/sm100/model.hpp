// The cost model of sm100: predicts the time of a GEMM on tcgen05 from how its kernel is built. It
// describes published kernels too, so that predictions can be compared with their measurements
// (tests/evidence).
#pragma once

#include "arch/sm100/config.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"

#include <cstdint>
#include <limits>

namespace hg::sm100 {

// What overlaps:
//   Nothing   load, multiply, wait, one K tile after the other
//   Loads     loads run ahead by the stages, but the MMA of each K tile is waited for
//   Products  loads run ahead, and MMAs follow each other without a wait
enum class Overlap { Nothing, Loads, Products };

// How an accumulator gets to the output:
//   Boxes   through shared memory by TMA, several boxes in flight
//   Rows    from registers
//   Waited  by TMA, each box waited for
enum class Store { Boxes, Rows, Waited };

struct Pipeline {
    int cta_group, tile_m, tile_n, tile_k, stages;  // CTAs that multiply together, the tile that they share
    Overlap overlap;
    bool persistent;   // a CTA computes several tiles, and loads for the next one while it stores
    int accumulators;  // two: the next tile is multiplied while the epilogue stores
    Store store;
    int writers = 1;  // accumulators that are stored at the same time
    int split = 1;    // slices of K, one cta_group each

    constexpr int consumers() const { return tile_m / (128 * cta_group); }
};

struct Work {
    int64_t tiles, k;
    double operand_bytes, output_bytes;  // of memory, each read or written once
};

struct Prediction {
    double cycles, busy;  // until the last tile is stored; the share that tensor cores multiply
    double ghz;           // under that load
    double compute_us, memory_us, us;
    int64_t waves;
};

constexpr double memory_rate = 7.0e12;  // bytes a second

// Cycles of a K tile on an SM.
struct KTile {
    double bytes;                 // loaded by a CTA
    double multiply, load, read;  // the MMA; the load from L2; what the MMA reads of shared memory
    double round;                 // from one load of a stage to the next, divided by the stages
    double cycles;                // the result, from all of these
};
KTile k_tile(const Pipeline& p, const Factors& factors = {});

// From the last MMA into an accumulator until that is stored.
double store_cycles(const Pipeline& p);

// `us` may be infinite from `limit` on, which takes less time.
Prediction predict_pipeline(const Pipeline& p, const Work& work, int sm_count, const Factors& factors = {},
                            double limit = std::numeric_limits<double>::infinity());

struct Candidate {
    int kernel;
    bool swap_ab;
    int split;         // slices of K
    int64_t clusters;  // tiles of D, of all problems of a batch
};

Pipeline pipeline_of(const Config& config, int split);

// Microseconds that a candidate takes. May be infinite from `limit` on.
double predict_candidate(const Problem& problem, const Device& device, const Candidate& candidate,
                         int sm_count, double limit = std::numeric_limits<double>::infinity());

// Backend::predict_plan.
double predict_plan(const Problem& problem, const Device& device, const Plan& plan, int sm_count);

}  // namespace hg::sm100
