// Launches of the library's own kernels: problems as its dispatcher would pass them to a backend.
#include "mutation/kernels.hpp"
#include "mutation/products.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/sm100/choose.hpp"
#include "arch/sm100/kernels.hpp"
#include "arch/sm100/pack.hpp"
#include "arch/sm120/choose.hpp"
#include "arch/sm120/kernels.hpp"
#include "arch/sm120/pack.hpp"
#include "arch/sm80/kernels.hpp"
#include "arch/sm80/pack.hpp"
#include "src/driver/driver.hpp"
#include "src/run/handle.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace mutation {
namespace {

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
