// Chooses a kernel: legality, then a cost model.
#include "arch/common/host/pack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/sm80/kernels.hpp"

#include <algorithm>

namespace hg::sm80 {
namespace {

constexpr Offered offered{.split = false, .swap_ab = false, .stream_k = false, .pdl = Pdl::Off};

const char* refusal(const Facts& f, const Device& device, const Config& config, const KernelInfo& kernel)
{
    const Problem& p = f.problem;
    const bool vectors = p.k > 0 && f.a.vectors && f.b.vectors;
    if (!config.general && !vectors)
        return "A or B is not contiguous in one dimension with rows aligned to 16 bytes";
    if (!config.general && p.k > INT32_MAX - 512)
        return "k is 2^31 or more";
    if (kernel.smem_bytes > device.smem_per_block)
        return "the device has too little shared memory";
    if (p.is_grouped() && std::max({p.m, p.n, p.batch}) > INT32_MAX - 512)
        return "a size is 2^31 or more";
    if (count_max_tiles(p, kernel.tile_m, kernel.tile_n) > max_tiles)
        return "more than 2^30 tiles";
    return nullptr;
}

// Microseconds: whole waves of tiles, at the rate of mma.sync (128 x 128) or of shared memory (64 x 64,
// which reads twice the bytes a flop). Kernels that read element by element are slower by `penalty`.
double predict(const Problem& p, int sm_count, const Config& config, int64_t tiles)
{
    const double flops_a_cycle = 2048.0 * (config.m * config.n >= 128 * 128 ? 0.8 : 0.5);
    constexpr double launch = 3.3;  // us
    const double penalty = config.general ? 10.0 : 1.0;
    const double tile_cycles =
        penalty * 2.0 * config.m * config.n * static_cast<double>(p.k) / flops_a_cycle + 1500.0;
    const double waves = static_cast<double>(ceil_div(tiles, sm_count));
    return launch + waves * tile_cycles / 1500.0;
}

}  // namespace

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    plan.refusal = not_offered(options, offered);
    if (plan.refusal)
        return false;
    const int sm_count = options.sm_count(device);
    const Facts facts(p);
    bool found = false;
    for (int i = 0; i < kernel_count; ++i) {
        if (is_forced_away(options, kernels[i]))
            continue;
        if (const char* why_not = refusal(facts, device, configs[i], kernels[i])) {
            plan.refusal = why_not;
            continue;
        }
        const int64_t tiles = count_max_tiles(p, kernels[i].tile_m, kernels[i].tile_n);
        const double us = predict(p, sm_count, configs[i], tiles);
        if (found && us >= plan.predicted_us)
            continue;
        found = true;
        plan.kernel = i;
        plan.variant = configs[i].general ? p.type_ab == Type::BF16 : major_variant(p.type_ab, p.a, p.b);
        plan.variant += p.is_grouped() ? group_variants : 0;
        plan.split = 1;
        plan.tiles = tiles;
        plan.grid = options.sm_limit > 0 ? std::min<int64_t>(tiles, sm_count) : tiles;
        plan.predicted_us = us;
        plan.why = *options.kernel ? Why::Forced : Why::Model;
    }
    return found;
}

}  // namespace hg::sm80
