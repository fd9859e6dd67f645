#include "arch/sm90/remap.hpp"

#include "arch/sm90/config.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace hg::sm90 {
namespace {

// SMs of each GPC of an H200, and four pairs of SMs on which only clusters of two run. Observed: an idle
// device fills GPC after GPC with single CTAs, but deals clusters out to the GPCs in turn.
constexpr int gpc_size[] = {8, 16, 16, 16, 16, 16, 18, 18};
constexpr int lone_pairs = 4, gpcs = static_cast<int>(std::size(gpc_size));

}  // namespace

void remap_by_gpc(int ctas, int clusters, uint8_t* remap)
{
    std::array<uint8_t, max_remapped_clusters> gpc{};
    std::array<int, gpcs> room{};
    for (int g = 0; g < gpcs; ++g)
        room[g] = ctas == 1 ? 0 : gpc_size[g] / ctas;
    int i = ctas == 2 ? std::min(lone_pairs, clusters) : 0;
    std::fill_n(gpc.begin(), i, static_cast<uint8_t>(gpcs));
    for (bool any = true; any && i < clusters;) {
        any = false;
        for (int g = 0; g < gpcs && i < clusters; ++g)
            if (room[g] > 0) {
                --room[g];
                gpc[i++] = static_cast<uint8_t>(g);
                any = true;
            }
    }
    uint8_t next = 0;
    for (int g = 0; g <= gpcs; ++g)
        for (int cluster = 0; cluster < clusters; ++cluster)
            if (gpc[cluster] == g)
                remap[cluster] = next++;
}

}  // namespace hg::sm90
