// Which clusters share a GPC.
#pragma once

#include <cstdint>

namespace hg::sm90 {

// Renumbers clusters of `ctas` CTAs: remap[i] is the number of the cluster launched as i-th, such that
// clusters of one GPC have consecutive numbers.
void remap_by_gpc(int ctas, int clusters, uint8_t* remap);

}  // namespace hg::sm90
