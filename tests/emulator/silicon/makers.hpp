// Makers of the kernels that are more than a list of instructions.
#pragma once

#include "kernel.hpp"

namespace emu::silicon {

Kernel make_mma(Random& random, uint32_t seed);
Kernel make_matrix(Random& random, uint32_t seed);
Kernel make_wgmma(Random& random, uint32_t seed);
Kernel make_tma_load(Random& random, uint32_t seed);
Kernel make_tma_multicast(Random& random, uint32_t seed);
Kernel make_tma_store(Random& random, uint32_t seed);
Kernel make_tma_reduce(Random& random, uint32_t seed);
Kernel make_tma_refused(Random& random, uint32_t seed);
constexpr uint32_t refused_boxes = 15;
Kernel make_bulk(Random& random, uint32_t seed);
Kernel make_cp_async(Random& random, uint32_t seed);
Kernel make_mbarrier(Random& random, uint32_t seed);
Kernel make_remote_barrier(Random& random, uint32_t seed);
Kernel make_cluster_memory(Random& random, uint32_t seed);
Kernel make_atomics(Random& random, uint32_t seed);
Kernel make_control(Random& random, uint32_t seed);
Kernel make_named_barriers(Random& random, uint32_t seed);
Kernel make_special_registers(Random& random, uint32_t seed);

}  // namespace emu::silicon
