#include "src/plan/backend.hpp"

#include "src/base/decimal.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace hg {

// Free prints as off, which is what it means in a plan that set nothing.
const char* name_of(Pdl pdl)
{
    constexpr const char* names[] = {"off", "off", "late", "early"};
    return names[static_cast<int>(pdl)];
}

const char* name_of(Why why)
{
    constexpr const char* names[] = {"model", "tuned", "forced", "network", "tuned-here", "calibrated"};
    return names[static_cast<int>(why)];
}

namespace {

// What a plan has on a GPU only.
void print_launch(const Plan& plan, const KernelInfo& kernel, char* text, size_t length)
{
    std::snprintf(
        text, length, " cluster=%d stages=%d waves=%s pdl=%s predicted_us=%s", std::max(plan.cluster, 1),
        kernel.stages,
        fixed(static_cast<double>(plan.tiles * plan.split) / static_cast<double>(plan.grid), 2).text(),
        name_of(plan.pdl), fixed(plan.predicted_us, 1).text());
}

}  // namespace

void Plan::print(char* text, size_t length) const
{
    const KernelInfo& k = backend->kernels[kernel];
    const char* copies[] = {"", " repack=a", " repack=b", " repack=ab"};
    char launch[768] = "";  // also for the longest numbers
    if (predicted_us > 0)
        print_launch(*this, k, launch, sizeof launch);
    std::snprintf(text, length,
                  "backend=%s kernel=%s tile=%dx%dx%d%s split=%d%s%s%s tiles=%" PRId64 " grid=%" PRId64
                  "%s workspace=%zu why=%s",
                  backend->name, k.name, swap_ab ? k.tile_n : k.tile_m, swap_ab ? k.tile_m : k.tile_n,
                  k.tile_k, swap_ab ? " swap_ab=1" : "", split, sm90.stream_k ? " stream_k=1" : "",
                  sm90.dynamic_schedule ? " schedule=dynamic" : "", copies[repack_a + 2 * repack_b], tiles,
                  grid, launch, workspace, name_of(why));
}

}  // namespace hg
