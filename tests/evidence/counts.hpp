// What the build and the emulator know of a kernel: budgets from ptxas, counts from a run.
#pragma once

#include <cstdint>
#include <string>

namespace hg::evidence {

struct Budget {
    int registers = 0, spilled_bytes = 0, stack_bytes = 0;
};

// Of a kernel in the log that the build leaves beside an image; throws where it is not there.
Budget budget_of(const std::string& log, const std::string& kernel);

// One launch on the emulated device: tiles of a cluster's size, f16, both operands contiguous along k.
struct Counts {
    uint64_t ctas = 0, cta_k_tiles = 0;     // k tiles of all CTAs
    uint64_t bulk_bytes = 0, flops = 0;     // of TMA, both ways; of tcgen05.mma
    uint64_t loads = 0, stores = 0;         // TMA instructions
    uint64_t products = 0, tmem_loads = 0;  // tcgen05.mma, tcgen05.ld
    uint64_t waits = 0;                     // mbarrier.try_wait, with those that have to try again
    double bank_degree = 1;                 // passes over shared memory's banks, 1 without conflicts
    size_t hazards = 0;
};
Counts count(const std::string& fatbin, int kernel);

}  // namespace hg::evidence
