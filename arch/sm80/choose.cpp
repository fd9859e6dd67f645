// Chooses a kernel and how many slices K is cut into: legality, then a cost model (model.cpp).
#include "arch/common/host/pack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/sm80/kernels.hpp"

#include <algorithm>

namespace hg::sm80 {
namespace {

constexpr Offered offered{.split = true, .swap_ab = false, .stream_k = false, .pdl = Pdl::Off};

const char* refusal(const Facts& f, const Device& device, const Config& config, const KernelInfo& kernel)
{
    const Problem& p = f.problem;
    const bool vectors = p.k > 0 && f.a.vectors && f.b.vectors;
    if (!config.general() && !vectors)
        return "A or B is not contiguous in one dimension with rows aligned to 16 bytes";
    if (!config.general() && !config.takes_majors(f.a.major, f.b.major))
        return config.family == Family::Rows ? "A is not contiguous along K"
                                             : "B is not contiguous along K";
    if (!config.general() && p.k > INT32_MAX - 512)
        return "k is 2^31 or more";
    if (kernel.smem_bytes > device.smem_per_block)
        return "the device has too little shared memory";
    if (p.is_grouped() && !config.takes_groups())
        return "the kernel has no entry point for groups";
    if (p.is_grouped() && std::max({p.m, p.n, p.batch}) > INT32_MAX - 512)
        return "a size is 2^31 or more";
    if (count_max_tiles(p, kernel.tile_m, kernel.tile_n) > max_tiles)
        return "more than 2^30 tiles";
    return nullptr;
}

int64_t count_k_tiles(const Problem& p, const Config& c) { return ceil_div(p.k, c.k); }

// No slice is empty.
const char* split_refusal(const Problem& p, const Config& c, const Candidate& candidate, const Options& o)
{
    const int64_t split = candidate.split;
    if (split == 1)
        return nullptr;
    if (o.mode == Mode::BatchInvariant)
        return "K is not split in batch-invariant mode";
    if (c.general() || p.is_grouped())
        return "K is not split for groups, nor by kernels that read element by element";
    if (count_k_tiles(p, c) < split || count_k_tiles(p, c) > INT32_MAX / (split + 1))
        return "K has too few or too many K tiles for so many slices";
    if (candidate.tiles * c.warps() > static_cast<int64_t>(o.counters))
        return "too many tiles to split K";
    if (static_cast<size_t>(partials_bytes(c, candidate.tiles, split)) > o.workspace)
        return "the partial sums do not fit the workspace";
    return nullptr;
}

void fill(const Problem& p, const Candidate& candidate, double us, int sm_count, const Options& o,
          Plan& plan)
{
    const Config& c = configs[candidate.kernel];
    const int64_t ctas = candidate.tiles * candidate.split;
    plan.kernel = candidate.kernel;
    plan.variant = c.general() ? p.type_ab == Type::BF16 : major_variant(p.type_ab, p.a, p.b);
    plan.variant += p.is_grouped() ? group_variants : 0;
    plan.split = static_cast<int>(candidate.split);
    plan.tiles = candidate.tiles;
    plan.grid = o.sm_limit > 0 ? std::min<int64_t>(ctas, sm_count) : ctas;
    plan.workspace = candidate.split > 1 ? partials_bytes(c, candidate.tiles, candidate.split) : 0;
    plan.predicted_us = us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// The numbers of slices worth a prediction: up to four CTAs of work for each SM.
int64_t max_split(const Problem& p, const Config& c, int64_t tiles, int sm_count)
{
    const int64_t ctas = int64_t{4} * sm_count;
    return std::clamp<int64_t>(ctas / tiles, 1,
                               std::min<int64_t>(most_slices, std::max<int64_t>(1, count_k_tiles(p, c))));
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
        const Config& c = configs[i];
        if (is_forced_away(options, kernels[i]))
            continue;
        if (const char* why_not = refusal(facts, device, c, kernels[i])) {
            plan.refusal = why_not;
            continue;
        }
        const int64_t tiles = count_max_tiles(p, c.m, c.n);
        const int64_t first = options.split > 0 ? options.split : 1;
        const int64_t last = options.split > 0 ? options.split : max_split(p, c, tiles, sm_count);
        for (int64_t split = first; split <= last; ++split) {
            const Candidate candidate{i, tiles, split};
            if (const char* why_not = split_refusal(p, c, candidate, options)) {
                plan.refusal = why_not;
                continue;
            }
            const double us = predict(p, device, candidate, sm_count);
            if (found && us >= plan.predicted_us)
                continue;
            found = true;
            fill(p, candidate, us, sm_count, options, plan);
        }
    }
    return found;
}

}  // namespace hg::sm80
