// How long a product takes on tcgen05 by how its kernel is built: this folder's kernels and published ones,
// so that what predicts the former is held against measurements of the latter (tests/evidence).
#pragma once

#include <cstdint>

namespace hg::sm100 {

// What runs at the same time:
//   Nothing   load, multiply, wait, one k tile after the other
//   Loads     loads run ahead by the stages, but each product is waited for
//   Products  and products follow each other without a wait
enum class Overlap { Nothing, Loads, Products };

// How an accumulator gets to the output:
//   Boxes   through shared memory by TMA, several boxes in flight
//   Rows    from registers
//   Waited  by TMA, each box waited for
enum class Store { Boxes, Rows, Waited };

struct Pipeline {
    int cta_group, tile_m, tile_n, tile_k, stages;  // CTAs that multiply together, the tile that they share
    Overlap overlap;
    bool persistent;   // CTAs stay from tile to tile, and load for the next while they store
    int accumulators;  // two: products go on while the epilogue stores
    Store store;
    int writers = 1;  // accumulators that are stored at once
    int split = 1;    // slices of k, a group each

    constexpr int consumers() const { return tile_m / (128 * cta_group); }
};

struct Work {
    int64_t tiles, k;
    double operand_bytes, output_bytes;  // of memory, each once
};

struct Prediction {
    double cycles, busy;  // until the last tile is stored; the share that tensor cores multiply
    double ghz;           // under that load
    double compute_us, memory_us, us;
    int64_t waves;
};

constexpr double memory_rate = 7.0e12;  // bytes a second

// What a k tile takes of an SM: to multiply, to be loaded from L2, to be read from shared
// memory; and the whole way from one load to the next into the same stage, over the stages.
struct KTile {
    double bytes;  // loaded by a CTA
    double multiply, load, read, round;
    double cycles;  // what follows
};
KTile k_tile(const Pipeline& p);

// From an accumulator's last product until it is stored.
double store_cycles(const Pipeline& p);

Prediction predict(const Pipeline& p, const Work& work, int sm_count);

}  // namespace hg::sm100
