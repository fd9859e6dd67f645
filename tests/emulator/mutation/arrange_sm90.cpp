// Launches of the library's kernels of sm90, as arrange_product.cpp has those of other backends.
#include "mutation/kernels.hpp"
#include "mutation/products.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/direct.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "arch/sm90/params.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace mutation {
namespace {

// What a launch of a kernel of sm90 asks for. Both x and y end in a partial tile.
struct Sm90Shape {
    Asked asked;
    bool swap_ab;
    int split;
    int64_t batch, tiles_x, tiles_y, k_tiles;
    int clusters;  // that run at once, at most
    bool stream_k = false;
};

// Shape 0: many tiles of one CTA or pair, handed out where clusters can be, 16 bits by TMA, the ring gone
// round so often that a barrier that is one arrival ahead each time ends up a phase ahead. Then the other
// ways to store: f32, everything or as much as the row can, and the same swapped; with nothing to multiply
// between one tile's stores and the next's; tiles that two or three clusters share; a bias, by TMA; at last
// all that TMA moves, with C of either type.
Sm90Shape persistent_shape(const hg::sm90::Config& config, Type own, int shape)
{
    const bool takes_all = hg::sm90::reads_c_by_subtile(config);
    const Asked f16{own, 8, false}, f32{Type::F32, 4, false}, biased{own, 8, false, false, true};
    const Asked everything = takes_all ? Asked{Type::F16, 1, true} : biased;
    const Asked in_place{own, 8, true, false, false, true, own};
    const Asked with_floats{own, 8, true, false, false, true, Type::F32};
    const Asked nothing = takes_all ? Asked{Type::F16, 1, true, true} : Asked{own, 8, false, true, true};
    const int stages_apart = config.ctas() > 2 ? 2 * config.stages : config.stages;
    if (shape == 0 && config.schedule == hg::sm90::Schedule::PingPong)
        return {f16, false, 1, 1, 12, 1, stages_apart + 1, 1};
    const Sm90Shape shapes[] = {
        {f16, false, 1, 1, 3, 1, 2 * config.stages + 1, 1},
        {f32, false, 1, 3, 2, 1, 2, 2},
        {everything, false, 1, 2, 2, 1, 2, 1},
        {f16, true, 1, 2, 1, 2, 2, 1},
        {f32, true, 1, 2, 1, 2, 2, 1},
        {everything, true, 1, 1, 2, 2, 2, 1},
        {nothing, false, 1, 2, 2, 1, 2, 1},
        {nothing, true, 1, 1, 2, 2, 2, 1},
        {f16, false, 1, 1, 3, 1, 3, 2, true},
        {f32, true, 1, 1, 1, 1, 12, 3, true},
        {biased, false, 1, 2, 2, 1, 2, 1},
        {fuses_all(config) ? in_place : biased, false, 1, 2, 2, 1, 2, 1},
        {fuses_all(config) ? with_floats : biased, false, 1, 2, 2, 1, 2, 1},
    };
    return shapes[shape];
}

// Shape 0: no split, the ring gone round six times. The others: a split in `split`, with whole vectors, a
// bias or everything else, plain and swapped, at last without one.
Sm90Shape split_shape(const hg::sm90::Config& config, Type own, int split, int shape)
{
    const Asked f16{own, 8, false}, f32{Type::F32, 4, false}, everything{Type::F16, 1, true};
    const Asked biased{own, 8, false, false, true};
    const Sm90Shape shapes[] = {
        {f16, false, 1, 1, 1, 1, 6 * config.stages + 1, 4},
        {f32, false, split, 1, 1, 2, (config.stages + 2) * split, 4},
        {everything, false, split, 2, 1, 2, 2 * split + 1, 4},
        {biased, true, split, 1, 1, 2, 2 * split + 1, 4},
        {everything, true, split, 1, 2, 1, 2 * split + 1, 4},
        {f32, true, 1, 1, 1, 2, 3, 4},
    };
    return shapes[shape];
}

// The kernels' majors are those of x and y.
hg::Problem make_sm90_problem(emu::Machine& machine, Setup& setup, const hg::sm90::Config& config,
                              const Variant& variant, const Sm90Shape& shape)
{
    const bool edge = shape.asked.everything && !shape.asked.for_tma;
    const int64_t x = shape.tiles_x * config.tile_m * config.cluster_m - (edge ? 27 : 24);
    const int64_t y = shape.tiles_y * config.tile_n * config.cluster_n - (edge                ? 3
                                                                          : config.tile_n > 8 ? 8
                                                                                              : 0);
    const int64_t k = shape.k_tiles * hg::sm90::tile_k - 24;
    Variant majors = variant;
    if (shape.swap_ab)
        std::swap(majors.a, majors.b);
    return make_problem(machine, setup, shape.swap_ab ? y : x, shape.swap_ab ? x : y, k, shape.batch,
                        majors, shape.asked);
}

}  // namespace

// Plan and parameters are the library's own.
Setup arrange_sm90(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm90;
    const hg::KernelInfo& kernel = info_of(hg::sm90::kernels, name);
    const Config& config = configs[&kernel - hg::sm90::kernels];
    const int split = config.tile_n == 8 ? 4 : 3;
    const Type own = variant_of(name).bf16 ? Type::BF16 : Type::F16;
    const Sm90Shape asked =
        config.is_split() ? split_shape(config, own, split, shape) : persistent_shape(config, own, shape);
    Setup setup;
    const hg::Problem p =
        make_sm90_problem(machine, setup, config, in_turn(variant_of(name), name, shape), asked);
    hg::Options options{};
    std::strcpy(options.kernel, kernel.name);
    options.split = asked.split;
    options.swap_ab = asked.swap_ab ? hg::SwapAb::On : hg::SwapAb::Off;
    options.stream_k = asked.stream_k ? hg::StreamK::On : hg::StreamK::Off;
    options.workspace = size_t{1} << 30;
    hg::Device device{};
    device.sm_count = 132;
    options.counters = counter_words(device, options.workspace);
    device.cc = 90;
    device.sm_count = asked.clusters * config.ctas() * asked.split;
    // Of clusters of four, fewer fit than there is room for.
    while (!config.is_split() &&
           resident_clusters(config.ctas_per_sm, config.ctas(), device.sm_count) < asked.clusters)
        ++device.sm_count;
    hg::Plan plan{};
    Params params;
    char symbol[80];
    std::string entry = name;  // as if it served K alone, where it serves either major
    if (serves_either_major(static_cast<int>(&kernel - hg::sm90::kernels)))
        entry[entry.size() - 2] = 'k';
    if (!choose(p, device, options, plan) || pack_gemm(p, plan, params) != hg::ok ||
        !hg::major_symbol(kernel, plan.variant, symbol) || symbol != entry)
        throw std::runtime_error("no launch of " + name);
    const int64_t counted = arrival_words(config, plan.tiles * config.consumers_per_tile());
    const size_t bytes =
        static_cast<size_t>(counted + global_partial_words(config, plan.tiles, plan.split)) *
        sizeof(uint32_t);
    params.arrivals = static_cast<uint32_t*>(empty_result(machine, setup, bytes));
    std::memset(params.arrivals, 0, bytes);
    if (can_schedule_dynamically(config) && shape == 0)
        params.tile_counter = params.arrivals;
    params.partials = plan.sm90.stream_k
                          ? reinterpret_cast<float*>(random_halves(machine, plan.workspace / 2, false))
                          : reinterpret_cast<float*>(params.arrivals + counted);
    // With a single SM a slice waits in vain for those behind it, and gives up.
    if (config.is_global())
        machine.config.sm_count = shape % 2 ? device.sm_count : 1;
    set_launch(setup, kernel, plan, params);
    return setup;
}

// Only this kernel, in its own order of tiles.
static hg::Options forced_options(const hg::KernelInfo& kernel)
{
    hg::Options options{};
    std::strcpy(options.kernel, kernel.name);
    options.stream_k = hg::StreamK::Off;
    options.workspace = size_t{1} << 30;
    return options;
}

static hg::Device sm90_device(int sm_count)
{
    hg::Device device{};
    device.cc = 90;
    device.sm_count = sm_count;
    return device;
}

// Half of a C of its own, of two problems.
static void add_half_of_c(emu::Machine& machine, hg::Problem& p, const Variant& variant)
{
    p.beta = 0.5f;
    p.c = p.d;
    p.c.ptr = random_halves(machine, static_cast<size_t>(2 * p.c.batch_stride), variant.bf16);
}

// Plan and parameters are the library's own. Shape 0: both halves of D, tiles of all kinds. Then the lower
// half with a C, two problems; both halves by stream-K.
Setup arrange_sm90_triangle(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm90;
    const hg::KernelInfo& kernel = info_of(hg::sm90::kernels, name);
    const Config& config = config_of(static_cast<int>(&kernel - hg::sm90::kernels));
    const Variant variant = variant_of(name);
    const bool lower = shape == 1, streams = shape == 2;
    const int64_t n = 3 * config.tile_n - 24, k = (streams ? 5 : 2) * tile_k - 24;
    Setup setup;
    hg::Problem p = make_problem(machine, setup, n, n, k, lower ? 2 : 1, variant,
                                 {variant.bf16 ? Type::BF16 : Type::F16});
    p.triangle = lower ? hg::Triangle::Lower : hg::Triangle::Upper;
    p.mirrored = !lower;
    if (lower)
        add_half_of_c(machine, p, variant);
    hg::Options options = forced_options(kernel);
    options.stream_k = streams ? hg::StreamK::On : hg::StreamK::Off;
    const hg::Device device = sm90_device(streams ? 4 : 2);
    options.counters = counter_words(device, options.workspace);
    hg::Plan plan{};
    Params params;
    if (!choose(p, device, options, plan) || pack_triangle_product(p, plan, params) != hg::ok)
        throw std::runtime_error("no launch of " + name);
    const size_t bytes = static_cast<size_t>(stream_k_words(config, plan.tiles)) * sizeof(uint32_t);
    params.arrivals = static_cast<uint32_t*>(empty_result(machine, setup, bytes));
    std::memset(params.arrivals, 0, bytes);
    if (streams)
        params.partials = reinterpret_cast<float*>(random_halves(machine, plan.workspace / 2, false));
    set_launch(setup, kernel, plan, params);
    return setup;
}

// Plan and parameters are the library's own. Shape 0: 16 leaves, of which quads and pairs of quads wait, of
// a persistent kernel in the workspace. Then four with a C, two problems. Two slices of a split-K kernel.
Setup arrange_sm90_tree(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm90;
    const hg::KernelInfo& kernel = info_of(hg::sm90::kernels, name);
    const Config& config = config_of(static_cast<int>(&kernel - hg::sm90::kernels));
    const Variant variant = in_turn(variant_of(name), name, shape);
    const bool few = shape == 1;
    // Each slice fills all stages, and some again.
    const int64_t leaves = few ? 4 : 16, leaf_k = (config.is_split() ? 16 : few ? 2 : 1) * tile_k;
    Setup setup;
    hg::Problem p = make_problem(machine, setup, 2 * config.tile_m - 24, config.tile_n + 8, leaves * leaf_k,
                                 few ? 2 : 1, variant, {variant.bf16 ? Type::BF16 : Type::F16});
    p.leaves = leaves;
    if (few) {
        p.alpha = 0.75f;
        add_half_of_c(machine, p, variant);
    }
    hg::Options options = forced_options(kernel);
    options.split = config.is_split() ? 2 : 1;
    hg::Plan plan{};
    Params params;
    if (!choose(p, sm90_device(2), options, plan) || pack_gemm(p, plan, params) != hg::ok)
        throw std::runtime_error("no launch of " + name);
    if (plan.workspace > 0)
        params.partials = reinterpret_cast<float*>(random_halves(machine, plan.workspace / 2, false));
    set_launch(setup, kernel, plan, params);
    return setup;
}

// Plan and parameters are the library's own. Shape 0: all gates in front of a line, tiles of all kinds.
// Then blocks of eight, two problems; gates and others that take turns, an alpha of 0. With swap_ab in two
// slices.
Setup arrange_sm90_gated(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm90;
    const hg::KernelInfo& kernel = info_of(hg::sm90::kernels, name);
    const Config& config = config_of(static_cast<int>(&kernel - hg::sm90::kernels));
    const Variant variant = variant_of(name);
    const bool along_m = config.gates == Gates::AlongM;
    const int64_t lines = (along_m ? config.tile_n : config.tile_m * config.cluster_m) + 5;
    const int64_t columns = 2 * config.gates_of_tile() - 8, block = shape == 0   ? columns
                                                                    : shape == 1 ? 8
                                                                                 : 1;
    Setup setup;
    Asked asked{variant.bf16 ? Type::BF16 : Type::F16};
    asked.nothing = shape == 2;
    // Each slice fills all stages twice, and some again.
    const int64_t k_tiles = (along_m ? 2 : 1) * (2 * stage_count(config, Major::K) + 2);
    hg::Problem p =
        make_problem(machine, setup, lines, 2 * columns, k_tiles * tile_k - (shape == 2 ? 0 : 24),
                     shape == 1 ? 2 : 1, variant, asked);
    constexpr hg::Activation activations[] = {hg::Activation::Silu, hg::Activation::GeluTanh,
                                              hg::Activation::Relu};
    p.activation = activations[shape];
    p.gate = {block, shape == 0 ? 1.5f : std::numeric_limits<float>::infinity(), 1.25f,
              shape == 1 ? 0.5f : -0.0f};
    hg::Options options = forced_options(kernel);
    options.split = along_m ? 2 : 0;
    hg::Plan plan{};
    Params params;
    if (!choose(p, sm90_device(4), options, plan) || pack_gated_product(p, plan, params) != hg::ok)
        throw std::runtime_error("no launch of " + name);
    set_launch(setup, kernel, plan, params);
    return setup;
}

// Plan and parameters are the library's own. Groups that fill tiles, overfill them or are empty, and tiles
// that are none. Shape 0: D in whole vectors, the ring gone round six times. Then by element, with a bias,
// if there are no gates; an alpha of 0.
Setup arrange_sm90_few_rows(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm90;
    const hg::KernelInfo& kernel = info_of(hg::sm90::kernels, name);
    const Config& config = config_of(static_cast<int>(&kernel - hg::sm90::kernels));
    const bool gated = config.is_gated();
    Variant variant = in_turn(variant_of(name), name, shape);
    std::swap(variant.a, variant.b);  // the kernel's A is B
    const int32_t rows = config.tile_n, ends[] = {rows, rows, 2 * rows + 1, 2 * rows + 4};
    const int64_t groups = std::size(ends),
                  columns = gated ? 2 * config.gates_of_tile() - 8 : config.tile_m + 8;
    Setup setup;
    Asked asked{variant.bf16 ? Type::BF16 : Type::F16};
    asked.biased = shape == 1;
    asked.nothing = shape == 2;
    asked.padding = shape == 1 && !gated ? 1 : 8;
    const int stages = stage_count(config, Major::K);
    const int64_t k = (shape == 0 ? 6 * stages + 1 : 2 * stages + 2) * tile_k - 24;
    hg::Problem p = make_problem(machine, setup, 2 * rows + 4, gated ? 2 * columns : columns, k, groups,
                                 variant, asked);
    p.a.batch_stride = p.d.batch_stride = 0;
    auto* const sizes = random_halves(machine, 2 * std::size(ends), false);
    std::memcpy(sizes, ends, sizeof ends);
    p.groups = {reinterpret_cast<const int64_t*>(sizes), hg::GroupsBy::Ends, 1, 0, 0};
    if (gated) {
        p.activation = hg::Activation::Silu;
        p.gate = {columns, 1.5f, 1.25f, 0.5f};
    }
    hg::Plan plan{};
    Params params;
    if (!choose(p, sm90_device(4), forced_options(kernel), plan) ||
        pack_few_rows(p, plan, params) != hg::ok)
        throw std::runtime_error("no launch of " + name);
    set_launch(setup, kernel, plan, params);
    return setup;
}

// Plan and parameters are the library's own. Shape 0: whole steps of aligned vectors, two of each warp.
// Then three slices of k with nothing aligned, stored by element; the same with everything but plain,
// swapped.
Setup arrange_sm90_direct(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm90;
    const hg::KernelInfo& kernel = info_of(hg::sm90::kernels, name);
    const Variant variant = variant_of(name);
    const DirectConfig& config = direct_configs[&kernel - hg::sm90::kernels - first_direct];
    const int round = direct_step(config, variant.a) * direct_sharers(config, variant.a);
    const Asked asked[] = {{variant.bf16 ? Type::BF16 : Type::F16},
                           {variant.bf16 ? Type::BF16 : Type::F16, 3},
                           {Type::F16, 1, true}};
    const bool edge = shape > 0, swap_ab = shape == 2;
    const int64_t x = 2 * config.tile_m - (edge ? 5 : 0), y = config.tile_n - (edge ? 3 : 0),
                  k = edge ? 4 * round + 5 : 2 * round;
    Variant majors = variant;
    if (swap_ab)
        std::swap(majors.a, majors.b);
    Setup setup;
    hg::Problem p = make_problem(machine, setup, swap_ab ? y : x, swap_ab ? x : y, k, edge ? 2 : 1, majors,
                                 asked[shape]);
    for (hg::Operand* o : {&p.a, &p.b})
        o->ptr = static_cast<const uint16_t*>(o->ptr) + (edge ? 1 : 0);
    hg::Options options = forced_options(kernel);
    options.split = edge ? 3 : 1;
    options.swap_ab = swap_ab ? hg::SwapAb::On : hg::SwapAb::Off;
    hg::Plan plan{};
    if (!choose_direct(p, sm90_device(4), options, DirectFamily::Direct, plan))
        throw std::runtime_error("no launch of " + name);
    DirectParams params;
    pack_direct(p, plan, params);
    set_launch(setup, kernel, plan, params);
    return setup;
}

}  // namespace mutation
