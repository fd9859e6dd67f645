// What an Ampere user gets from NVIDIA, on the GPU at hand: cuBLASLt's own mma.sync kernels.
#pragma once

#include "src/tools/bench/device.hpp"

namespace hg::bench {

struct MmaSync {
    std::unique_ptr<CublasLt::Algorithms> algorithms;
    std::string tried;     // configurations by algorithm id: "21:624 23:0 24:absent"; "" without a search
    std::string why_none;  // there is none of them; else ""
    int fastest = -1;      // of `algorithms`
};

// All configurations of the kernels for the product, none timed. `lt` may be null; `cc` is the GPU's
// compute capability, 90 for 9.0.
MmaSync mma_sync_candidates(const CublasLt* lt, int cc, const Product& product,
                            const std::vector<Operands>& sets);

// ... and the fastest of them that computes what is expected.
MmaSync find_mma_sync(BenchDevice& device, const Product& product, const std::vector<Operands>& sets,
                      const Expectation& expectation);

// Of work on the GPU, at most, to find the fastest for a product whose ideal time is `ideal_us`.
double mma_sync_search_us(double ideal_us);

}  // namespace hg::bench
