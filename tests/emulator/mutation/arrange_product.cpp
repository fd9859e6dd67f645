// Launches of the library's own kernels: problems as its dispatcher would pass them to a backend.
#include "mutation/kernels.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm100/choose.hpp"
#include "arch/sm100/kernels.hpp"
#include "arch/sm100/pack.hpp"
#include "arch/sm120/choose.hpp"
#include "arch/sm120/kernels.hpp"
#include "arch/sm120/pack.hpp"
#include "arch/sm80/kernels.hpp"
#include "arch/sm80/pack.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/direct.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "arch/sm90/params.hpp"
#include "src/driver/driver.hpp"
#include "src/run/handle.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace mutation {
namespace {

using hg::Major;
using hg::Type;

// "<kernel>_<type>[_<majors>]", where it is not one for all of them: "<kernel>"
struct Variant {
    bool bf16;
    Major a = Major::K, b = Major::K;
};

Variant variant_of(const std::string& name)
{
    Variant variant{name.find("_bf16") != std::string::npos};
    const std::string majors = name.substr(name.rfind('_') + 1);
    if (majors.size() == 2) {
        variant.a = majors[0] == 'm' ? Major::MN : Major::K;
        variant.b = majors[1] == 'n' ? Major::MN : Major::K;
    } else if (majors == "m") {
        variant.a = Major::MN;
    }
    return variant;
}

template <size_t Count>
const hg::KernelInfo& info_of(const hg::KernelInfo (&kernels)[Count], const std::string& name)
{
    for (const hg::KernelInfo& kernel : kernels)
        if (name == kernel.name || name.rfind(std::string(kernel.name) + "_f16", 0) == 0 ||
            name.rfind(std::string(kernel.name) + "_bf16", 0) == 0)
            return kernel;
    throw std::runtime_error("no kernel for " + name);
}

// What a shape asks for, beside its sizes.
struct Asked {
    Type type_d = Type::F16;
    int64_t padding = 8;      // of each line of D
    bool everything = false;  // C, bias, activation, aux
    bool nothing = false;     // alpha is 0, which only the device knows
    bool biased = false;      // a bias
    bool for_tma = false;     // lines of C are as long as those of D
    Type type_c = Type::F16;
    bool unaligned = false;  // lines of A and B begin anywhere
};

// The dispatcher turns an alpha of 0 that the host knows into k = 0; backends meet it in device memory.
const float* zero_on_device(emu::Machine& machine)
{
    return static_cast<const float*>(std::memset(random_halves(machine, 2, false), 0, sizeof(float)));
}

void add_operand(emu::Machine& machine, hg::Operand& o, Major major, int64_t rows, int64_t k, int64_t batch,
                 bool bf16, bool unaligned)
{
    const int64_t line = ((major == Major::K ? k : rows) + 15) / 8 * 8 + (unaligned ? 1 : 0);
    const int64_t lines = major == Major::K ? rows : k;
    o.row_stride = major == Major::K ? line : 1;
    o.k_stride = major == Major::K ? 1 : line;
    o.batch_stride = line * lines;
    o.ptr = random_halves(machine, static_cast<size_t>(line * lines * batch), bf16);
}

hg::Problem make_problem(emu::Machine& machine, Setup& setup, int64_t m, int64_t n, int64_t k,
                         int64_t batch, const Variant& variant, const Asked& asked)
{
    hg::Problem p{};
    p.m = m, p.n = n, p.k = k, p.batch = batch;
    p.type_ab = variant.bf16 ? Type::BF16 : Type::F16;
    p.alpha = 1.5f;
    if (asked.nothing)
        p.alpha_device = zero_on_device(machine);
    add_operand(machine, p.a, variant.a, m, k, batch, variant.bf16, asked.unaligned);
    add_operand(machine, p.b, variant.b, n, k, batch, variant.bf16, asked.unaligned);
    const int64_t ld = n + asked.padding, bytes = hg::bytes_of(asked.type_d);
    p.d.type = asked.type_d;
    p.d.ld = ld;
    p.d.batch_stride = m * ld;
    p.d.ptr = empty_result(machine, setup, static_cast<size_t>(m * ld * batch * bytes));
    if (asked.biased || asked.everything) {
        p.bias.type = Type::F16;
        p.bias.along = hg::BiasAlong::Columns;
        p.bias.batch_stride = n;
        p.bias.ptr = random_halves(machine, static_cast<size_t>(n * batch), false);
    }
    if (!asked.everything)
        return p;
    p.beta = 0.5f;
    const bool floats = asked.type_c == Type::F32;
    p.c.type = asked.type_c;
    p.c.ld = asked.for_tma ? ld : n + 1;
    p.c.batch_stride = m * p.c.ld;
    p.c.ptr = random_halves(machine, static_cast<size_t>(p.c.batch_stride * batch * (floats ? 2 : 1)),
                            asked.type_c == Type::BF16);
    p.aux.type = asked.type_d;
    p.aux.ld = ld;
    p.aux.batch_stride = m * ld;
    p.aux.ptr = empty_result(machine, setup, static_cast<size_t>(m * ld * batch * bytes));
    p.activation = hg::Activation::Relu;
    return p;
}

// The launch that a plan means.
template <typename Params>
void set_launch(Setup& setup, const hg::KernelInfo& kernel, const hg::Plan& plan, const Params& params)
{
    setup.launch.grid.x = static_cast<uint32_t>(plan.grid);
    setup.launch.cluster.x = static_cast<uint32_t>(std::max(plan.cluster, 1));
    setup.launch.block.x = kernel.threads;
    setup.launch.dynamic_shared = kernel.smem_bytes;
    setup.launch.overlaps = plan.uses_pdl();
    set_parameters(setup, params);
}

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

// What a launch of a kernel of sm100 asks for. Both x and y end in a partial tile.
struct Sm100Shape {
    Asked asked;
    Variant variant;  // majors of x and y
    bool swap_ab;
    int split;
    int64_t batch, tiles_x, tiles_y, k_tiles;
    int clusters;  // that run at once, at most
};

// Shape 0: many tiles of one cluster, f16 by TMA, all rings gone round; of a split kernel one tile. Then
// the other ways to store and all majors, and at last nothing to multiply.
Sm100Shape sm100_shape(const hg::sm100::Config& config, int shape)
{
    const Asked f16{Type::F16, 8, false}, f32{Type::F32, 4, false}, everything{Type::F16, 1, true};
    const Asked nothing{Type::F16, 1, true, true};
    const Variant kk{false}, km{true, Major::K, Major::MN}, mk{false, Major::MN, Major::K},
        mm{true, Major::MN, Major::MN};
    const Sm100Shape persistent[] = {
        {f16, kk, false, 1, 1, 7, 1, config.stages / 2 + 1, 1},
        {f32, mk, false, 1, 3, 2, 1, 2, 2},
        {everything, km, false, 1, 2, 2, 1, 2, 1},
        {f16, mm, true, 1, 2, 1, 2, 2, 1},
        {f32, kk, true, 1, 2, 1, 2, 2, 1},
        {everything, mk, true, 1, 1, 2, 2, 2, 2},
        {nothing, kk, false, 1, 2, 2, 1, 2, 1},
    };
    const Sm100Shape split[] = {
        {f16, kk, false, 1, 1, 1, 1, 2 * config.stages + 1, 1},
        {f32, mk, false, 3, 1, 1, 2, 3 * (config.stages + 1), 2},
        {everything, km, false, 8, 1, 1, 1, 9, 1},
        {f16, mm, true, 2, 2, 1, 1, 5, 2},
        {f32, kk, true, 1, 2, 1, 1, 2, 2},
        {everything, mk, true, 5, 1, 1, 1, 7, 1},
        {nothing, kk, false, 3, 1, 1, 1, 4, 1},
    };
    return config.is_split() ? split[shape] : persistent[shape];
}

}  // namespace

// Shape 0: edges in m, n and k, the ring gone round twice, 16-byte stores. Shape 1: nothing aligned, C,
// bias, aux and activation, two problems. Shape 2: whole tiles of floats, K in three slices, the ring gone
// round in each.
Setup arrange_sm80(emu::Machine& machine, const std::string& name, int shape)
{
    const hg::KernelInfo& kernel = info_of(hg::sm80::kernels, name);
    const int split = shape == 2 ? 3 : 1;
    const int64_t k = shape == 0   ? (2 * kernel.stages + 1) * kernel.tile_k - 8
                      : shape == 1 ? kernel.tile_k + 5
                                   : split * (kernel.stages + 1) * kernel.tile_k;
    const int64_t m = shape == 2 ? kernel.tile_m : kernel.tile_m + 16;
    const int64_t n = shape == 2 ? 2 * kernel.tile_n : kernel.tile_n + (shape == 0 ? 8 : -3);
    Asked asked[] = {{Type::F16, 8, false}, {Type::F32, 1, true}, {Type::F32, 8, false}};
    asked[shape].unaligned = name.find("unaligned") != std::string::npos;
    Setup setup;
    const hg::Problem p =
        make_problem(machine, setup, m, n, k, shape == 1 ? 2 : 1, variant_of(name), asked[shape]);
    hg::sm80::Params params{};
    params.a = hg::sm80::pack_operand(p.a, p, p.m);
    params.b = hg::sm80::pack_operand(p.b, p, p.n);
    params.output = hg::pack_output(p);
    params.k = p.k;
    params.grid = hg::pack_grid(p, kernel, 2);
    const int64_t tiles = hg::count_tiles(p, kernel);
    params.slices.split = hg::divisor(split);
    params.slices.k_tiles = static_cast<int32_t>(hg::ceil_div(p.k, kernel.tile_k));
    if (split > 1) {
        const size_t words = static_cast<size_t>(tiles) * kernel.threads / 32;
        params.slices.arrivals =
            static_cast<uint32_t*>(empty_result(machine, setup, words * sizeof(uint32_t)));
        std::memset(params.slices.arrivals, 0, words * sizeof(uint32_t));
        params.slices.partials = static_cast<float*>(empty_result(
            machine, setup,
            sizeof(float) * kernel.tile_m * kernel.tile_n * static_cast<size_t>(tiles * split)));
    }
    setup.launch.grid.x = static_cast<uint32_t>(tiles * split);
    setup.launch.block.x = kernel.threads;
    setup.launch.dynamic_shared = kernel.smem_bytes;
    set_parameters(setup, params);
    return setup;
}

// Plan and parameters are the library's own. Shape 0: three tiles of one CTA, f16 by TMA, the ring gone
// round whole times with each. Then f32; everything but plain; the same with nothing to multiply between
// the stores.
Setup arrange_sm120(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm120;
    const hg::KernelInfo& kernel = info_of(hg::sm120::kernels, name);
    const bool edge = shape >= 2;
    const Asked asked[] = {{}, {Type::F32, 4}, {Type::F16, 1, true}, {Type::F16, 1, true, true}};
    const int64_t m = (shape == 0 ? 3 : 2) * kernel.tile_m - (edge ? 27 : 24),
                  n = kernel.tile_n - (edge ? 3 : 8);
    const int64_t k = (shape == 0 ? 2 * kernel.stages - 1 : kernel.stages) * kernel.tile_k - 24;
    Setup setup;
    const hg::Problem p =
        make_problem(machine, setup, m, n, k, shape == 1 ? 3 : 1, variant_of(name), asked[shape]);
    hg::Options options{};
    std::strcpy(options.kernel, kernel.name);
    options.sm_limit = shape == 1 ? 2 : 1;
    hg::Device device{};
    device.cc = 120;
    device.sm_count = 2;
    hg::Plan plan{};
    Params params;
    char symbol[80];
    if (!choose(p, device, options, plan) || pack_gemm(p, plan, params) != hg::ok ||
        !hg::major_symbol(kernel, plan.variant, symbol) || symbol != name)
        throw std::runtime_error("no launch of " + name);
    set_launch(setup, kernel, plan, params);
    return setup;
}

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
    const hg::Problem p = make_sm90_problem(machine, setup, config, variant_of(name), asked);
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
    if (!choose(p, device, options, plan) || pack_gemm(p, plan, params) != hg::ok ||
        !hg::major_symbol(kernel, plan.variant, symbol) || symbol != name)
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
    if (lower) {
        p.beta = 0.5f;
        p.c = p.d;
        p.c.ptr = random_halves(machine, static_cast<size_t>(2 * p.c.batch_stride), variant.bf16);
    }
    hg::Options options{};
    std::strcpy(options.kernel, kernel.name);
    options.stream_k = streams ? hg::StreamK::On : hg::StreamK::Off;
    options.workspace = size_t{1} << 30;
    hg::Device device{};
    device.cc = 90;
    device.sm_count = streams ? 4 : 2;
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
    hg::Options options{};
    std::strcpy(options.kernel, kernel.name);
    options.split = edge ? 3 : 1;
    options.swap_ab = swap_ab ? hg::SwapAb::On : hg::SwapAb::Off;
    hg::Device device{};
    device.cc = 90;
    device.sm_count = 4;
    hg::Plan plan{};
    if (!choose_direct(p, device, options, DirectFamily::Direct, plan))
        throw std::runtime_error("no launch of " + name);
    DirectParams params;
    pack_direct(p, plan, params);
    set_launch(setup, kernel, plan, params);
    return setup;
}

// Plan and parameters are the library's own.
Setup arrange_sm100(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace hg::sm100;
    const hg::KernelInfo& kernel = info_of(hg::sm100::kernels, name);
    const Config& config = configs[&kernel - hg::sm100::kernels];
    const Sm100Shape asked = sm100_shape(config, shape);
    const bool edge = asked.asked.everything;
    const int64_t x = asked.tiles_x * config.tile_m - (edge ? 27 : 24);
    const int64_t y = asked.tiles_y * config.tile_n - (edge ? 3 : 8), k = asked.k_tiles * tile_k - 24;
    Variant majors = asked.variant;
    if (asked.swap_ab)
        std::swap(majors.a, majors.b);
    Setup setup;
    const hg::Problem p = make_problem(machine, setup, asked.swap_ab ? y : x, asked.swap_ab ? x : y, k,
                                       asked.batch, majors, asked.asked);
    hg::Options options{};
    std::strcpy(options.kernel, kernel.name);
    options.split = asked.split;
    options.swap_ab = asked.swap_ab ? hg::SwapAb::On : hg::SwapAb::Off;
    hg::Device device{};
    device.cc = 100;
    machine.config.sm_count = device.sm_count = asked.clusters * config.cta_group * asked.split;
    hg::Plan plan{};
    Params params;
    if (!choose(p, device, options, plan) || pack_gemm(p, plan, device.sm_count, params) != hg::ok)
        throw std::runtime_error("no launch of " + name);
    set_launch(setup, kernel, plan, params);
    return setup;
}

}  // namespace mutation

// What pack.cpp asks the driver for.
hg::Status hg::driver::encode_tensor_map(const TensorMapRequest& r, void* map)
{
    mutation::make_map({r.base,
                        r.type == Type::F32,
                        r.type == Type::BF16,
                        {r.size[0], r.size[1], r.size[2]},
                        {r.stride_bytes[0], r.stride_bytes[1]},
                        {r.box[0], r.box[1], r.box[2]},
                        r.span_bytes},
                       map);
    return ok;
}
