#include "src/plan/backend.hpp"

#include "src/base/decimal.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>

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

// What sm90 decides beside: the order of tiles, prefetched K tiles, L2 policies, the epilogue. A, B, M and N are those
// of row-major D; in the plan they are the MMA's.
std::string describe_details(const Plan& plan)
{
    constexpr const char* epilogues[] = {"plain", "fused", "general"};
    const Plan::Sm90& details = plan.sm90;
    std::string text;
    if (details.raster_group > 0) {
        text += details.raster_along_n != plan.swap_ab ? " raster=n" : " raster=m";
        text += std::to_string(details.raster_group) + (details.remapped ? "/gpc" : "");
        text += " prefetch=" + std::to_string(details.prefetched);
    }
    if (details.a_once || details.b_once || details.d_once) {
        text += " evict_first=";
        text += (plan.swap_ab ? details.b_once : details.a_once) ? "a" : "";
        text += (plan.swap_ab ? details.a_once : details.b_once) ? "b" : "";
        text += details.d_once ? "d" : "";
    }
    if (details.persistent)
        text += std::string(" epilogue=") + epilogues[static_cast<int>(details.epilogue)];
    return text;
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
                  "%s%s workspace=%zu why=%s",
                  backend->name, k.name, swap_ab ? k.tile_n : k.tile_m, swap_ab ? k.tile_m : k.tile_n,
                  k.tile_k, swap_ab ? " swap_ab=1" : "", split, sm90.stream_k ? " stream_k=1" : "",
                  sm90.dynamic_schedule ? " schedule=dynamic" : "", copies[repack_a + 2 * repack_b], tiles,
                  grid, launch, describe_details(*this).c_str(), workspace, name_of(why));
}

}  // namespace hg
