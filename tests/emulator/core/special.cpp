// Special registers. Clocks count the machine's warp instructions.
#include "core/special.hpp"

#include <algorithm>

namespace emu {
namespace {

using Value = uint64_t (*)(Exec& x, int lane);

struct Special {
    std::string_view name;
    uint8_t bits;
    Value value;
};

uint32_t thread(const Exec& x, int lane) { return static_cast<uint32_t>(x.warp.index * warp_lanes + lane); }

uint64_t sm(const Exec& x)
{
    const auto count = x.grid.multiprocessors->used.size();
    return (x.cta.cluster->slot * x.cta.cluster->ctas.size() + x.cta.rank) % count;
}

// Position of the CTA in its cluster, and of the cluster in the grid.
template <int Axis>
uint32_t axis(const Dim3& d)
{
    return Axis == 0 ? d.x : Axis == 1 ? d.y : d.z;
}

template <int Axis>
uint64_t tid(Exec& x, int lane)
{
    const Dim3& block = x.grid.launch.block;
    const uint32_t t = thread(x, lane);
    return Axis == 0 ? t % block.x : Axis == 1 ? t / block.x % block.y : t / (block.x * block.y);
}

template <int Axis>
uint64_t ntid(Exec& x, int)
{
    return axis<Axis>(x.grid.launch.block);
}

template <int Axis>
uint64_t ctaid(Exec& x, int)
{
    return x.cta.id[Axis];
}

template <int Axis>
uint64_t nctaid(Exec& x, int)
{
    return axis<Axis>(x.grid.launch.grid);
}

template <int Axis>
uint64_t clusterid(Exec& x, int)
{
    return x.cta.id[Axis] / axis<Axis>(x.grid.launch.cluster);
}

template <int Axis>
uint64_t nclusterid(Exec& x, int)
{
    return axis<Axis>(x.grid.launch.grid) / axis<Axis>(x.grid.launch.cluster);
}

template <int Axis>
uint64_t cluster_ctaid(Exec& x, int)
{
    return x.cta.id[Axis] % axis<Axis>(x.grid.launch.cluster);
}

template <int Axis>
uint64_t cluster_nctaid(Exec& x, int)
{
    return axis<Axis>(x.grid.launch.cluster);
}

uint64_t lane_bit(int lane) { return uint64_t{1} << lane; }

constexpr Value clock_value = [](Exec& x, int) -> uint64_t { return x.machine.steps; };
constexpr Value clock_high = [](Exec& x, int) -> uint64_t { return x.machine.steps >> 32; };
constexpr Value zero = [](Exec&, int) -> uint64_t { return 0; };

constexpr Special specials[] = {
    {"", 32, nullptr},  // special_shared_address
    {"%tid.x", 32, tid<0>},
    {"%tid.y", 32, tid<1>},
    {"%tid.z", 32, tid<2>},
    {"%ntid.x", 32, ntid<0>},
    {"%ntid.y", 32, ntid<1>},
    {"%ntid.z", 32, ntid<2>},
    {"%ctaid.x", 32, ctaid<0>},
    {"%ctaid.y", 32, ctaid<1>},
    {"%ctaid.z", 32, ctaid<2>},
    {"%nctaid.x", 32, nctaid<0>},
    {"%nctaid.y", 32, nctaid<1>},
    {"%nctaid.z", 32, nctaid<2>},
    {"%clusterid.x", 32, clusterid<0>},
    {"%clusterid.y", 32, clusterid<1>},
    {"%clusterid.z", 32, clusterid<2>},
    {"%nclusterid.x", 32, nclusterid<0>},
    {"%nclusterid.y", 32, nclusterid<1>},
    {"%nclusterid.z", 32, nclusterid<2>},
    {"%cluster_ctaid.x", 32, cluster_ctaid<0>},
    {"%cluster_ctaid.y", 32, cluster_ctaid<1>},
    {"%cluster_ctaid.z", 32, cluster_ctaid<2>},
    {"%cluster_nctaid.x", 32, cluster_nctaid<0>},
    {"%cluster_nctaid.y", 32, cluster_nctaid<1>},
    {"%cluster_nctaid.z", 32, cluster_nctaid<2>},
    {"%cluster_ctarank", 32, [](Exec& x, int) -> uint64_t { return x.cta.rank; }},
    {"%cluster_nctarank", 32, [](Exec& x, int) -> uint64_t { return x.grid.launch.cluster.count(); }},
    {"%is_explicit_cluster", 1, [](Exec& x, int) -> uint64_t { return x.grid.explicit_cluster; }},
    {"%laneid", 32, [](Exec&, int lane) -> uint64_t { return lane; }},
    {"%warpid", 32, [](Exec& x, int) -> uint64_t { return x.warp.index; }},
    {"%nwarpid", 32, [](Exec&, int) -> uint64_t { return 64; }},
    {"%smid", 32, [](Exec& x, int) -> uint64_t { return sm(x); }},
    {"%nsmid", 32, [](Exec& x, int) -> uint64_t { return x.grid.multiprocessors->used.size(); }},
    {"%gridid", 64, zero},
    {"%lanemask_eq", 32, [](Exec&, int lane) -> uint64_t { return lane_bit(lane); }},
    {"%lanemask_lt", 32, [](Exec&, int lane) -> uint64_t { return lane_bit(lane) - 1; }},
    {"%lanemask_le", 32, [](Exec&, int lane) -> uint64_t { return 2 * lane_bit(lane) - 1; }},
    {"%lanemask_gt", 32, [](Exec&, int lane) -> uint64_t { return uint32_t(~(2 * lane_bit(lane) - 1)); }},
    {"%lanemask_ge", 32, [](Exec&, int lane) -> uint64_t { return uint32_t(~(lane_bit(lane) - 1)); }},
    {"%clock", 32, clock_value},
    {"%clock_hi", 32, clock_high},
    {"%clock64", 64, clock_value},
    {"%globaltimer", 64, clock_value},
    {"%globaltimer_lo", 32, clock_value},
    {"%globaltimer_hi", 32, clock_high},
    {"%dynamic_smem_size", 32, [](Exec& x, int) -> uint64_t { return x.grid.launch.dynamic_shared; }},
    {"%total_smem_size", 32, [](Exec& x, int) -> uint64_t { return x.cta.shared.size(); }},
    {"%aggr_smem_size", 32, [](Exec& x, int) -> uint64_t { return x.cta.shared.size() + shared_base; }},
    {"%reserved_smem_offset_begin", 32, zero},
    {"%reserved_smem_offset_end", 32, [](Exec&, int) -> uint64_t { return shared_base; }},
    {"%reserved_smem_offset_cap", 32, [](Exec&, int) -> uint64_t { return shared_base; }},
    {"%current_graph_exec", 64, zero},
};

}  // namespace

int find_special(std::string_view name)
{
    const auto* found = std::find_if(std::begin(specials) + 1, std::end(specials),
                                     [&](const Special& s) { return s.name == name; });
    return found == std::end(specials) ? -1 : static_cast<int>(found - std::begin(specials));
}

int special_bits(int special) { return specials[special].bits; }

uint64_t special_value(Exec& x, const Arg& arg, int lane)
{
    if (arg.special == special_shared_address)
        return uint64_t{x.cta.rank} << rank_shift | (shared_base + arg.constant);
    const uint64_t value = specials[arg.special].value(x, lane);
    return specials[arg.special].bits == 64 ? value : value & 0xffffffff;
}

}  // namespace emu
