// The cost model of kernels whose warps multiply by mma.sync, for sm80 and sm120.
#pragma once

#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"

#include <cstdint>
#include <limits>

namespace hg {

struct MmaSyncKernel {
    int tile_m, tile_n, tile_k;    // of a CTA
    int warps, warp_m, warp_n;     // that multiply, and the part of the tile of each
    int stages;                    // of shared memory
    int ctas_per_sm;               // that an SM has room for
    bool persistent;               // as many CTAs as there is room for, each computes several tiles
    bool a_launch_a_wave = false;  // under a limit of SMs: each wave of CTAs is a launch of its own
};

// What a backend's main loop costs.
struct MmaSyncCosts {
    double mma_cycles;                // of an SM for each mma.sync, beside those of its tensor cores
    double step_cycles, tile_cycles;  // that one CTA alone does not hide: for 16 of K, for a K tile
    double vector_cycles;  // of an SM for each 16 bytes that threads put together; 0: they do not
    double launch_us;
};

// CTAs for which an SM has shared memory, registers and threads; a warp computes warp_m x warp_n.
int count_resident_ctas(const Device& device, int smem_bytes, int threads, int warp_m, int warp_n);

// Microseconds that a kernel takes which copies operands to `bytes` bytes of the workspace, on `sm_count`
// SMs, all of the device or, if `limited`, as many as the caller allows.
double predict_copies(const Device& device, const Factors& factors, double bytes, int sm_count,
                      bool limited);

// Microseconds that `tiles` tiles take whose K is cut into `split` slices, on `sm_count` SMs. Infinite, in
// less time, where that is found to be `limit` or more.
double predict_mma_sync(const Problem& problem, const Device& device, const MmaSyncKernel& kernel,
                        const MmaSyncCosts& costs, const Factors& factors, int64_t tiles, int64_t split,
                        int sm_count, double limit = std::numeric_limits<double>::infinity());

}  // namespace hg
