// Chooses a kernel and how many slices K is cut into: legality, then a cost model (model.cpp).
#include "arch/sm80/choose.hpp"

#include "arch/common/host/mma_sync_model.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/repack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/sm80/kernels.hpp"
#include "arch/sm80/model.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <limits>

namespace hg::sm80 {
namespace {

constexpr Offered offered{.split = true, .swap_ab = false, .stream_k = false, .pdl = Pdl::Off};

const char* refusal(const Facts& f, const Device& device, const Config& config, const KernelInfo& kernel)
{
    const Problem& p = f.problem;
    if (p.groups.of_k && !config.takes_k_groups(f.a.major, f.b.major))
        return "the kernel has no entry point for groups of k of such operands";
    if (p.is_grouped() && !config.takes_groups())
        return "the kernel has no entry point for groups";
    if (!config.takes_any() && p.k == 0)
        return "k is 0";
    if (!config.takes_any() && (f.a.line <= 0 || f.b.line <= 0))
        return "A or B is not contiguous in one dimension";
    if (!config.takes_any() && std::max(f.a.line, f.b.line) > INT32_MAX)
        return "A or B has a leading dimension of 2^31 or more";
    if (!config.takes_any() && !config.takes_unaligned() && (!f.a.vectors || !f.b.vectors))
        return "A or B has rows that are not aligned to 16 bytes, or is an array of pointers, and the "
               "workspace has no room for a copy";
    if (!config.takes_any() && !config.takes_majors(f.a.major, f.b.major))
        return config.few_rows() ? "A is not contiguous along K" : "B is not contiguous along K";
    if (!config.takes_any() && p.k > INT32_MAX - 512)
        return "k is 2^31 or more";
    if (kernel.smem_bytes > device.smem_per_block)
        return "the device has too little shared memory";
    if (p.is_grouped() && std::max({p.m, p.n, p.batch, p.groups.of_k ? p.k : 0}) > INT32_MAX - 512)
        return "a size is 2^31 or more";
    if (count_max_tiles(p, kernel.tile_m, kernel.tile_n) > max_tiles)
        return "more than 2^30 tiles";
    return nullptr;
}

int64_t count_k_tiles(const Problem& p, const Config& c) { return ceil_div(p.k, c.tile_k); }

// No slice is empty.
const char* split_refusal(const Problem& p, const Config& c, const Candidate& candidate, const Options& o)
{
    const int64_t split = candidate.split;
    if (split == 1)
        return nullptr;
    if (o.mode == Mode::BatchInvariant)
        return "K is not split in batch-invariant mode";
    if (c.takes_any() || p.is_grouped())
        return "K is not split for groups, nor by kernels that read element by element";
    if (count_k_tiles(p, c) < split || count_k_tiles(p, c) > INT32_MAX / (split + 1))
        return "K has too few or too many K tiles for so many slices";
    if (candidate.tiles * c.warps() > static_cast<int64_t>(o.counters))
        return "the workspace has too few counters: only the handle's own has some";
    // Of slices in several launches some might count themselves, and the others fail to be launched.
    if (o.sm_limit > 0 && candidate.tiles * split > o.sm_limit)
        return "the slices of all tiles are more than the SMs that may be used";
    if (static_cast<size_t>(partials_bytes(c, candidate.tiles, split)) > o.workspace)
        return "the partial sums do not fit the workspace";
    return nullptr;
}

void write_plan(const Problem& p, const Candidate& candidate, double us, int sm_count, const Options& o,
                Plan& plan)
{
    const Config& c = configs[candidate.kernel];
    const int64_t ctas = candidate.tiles * candidate.split;
    plan.refusal = nullptr;
    plan.kernel = candidate.kernel;
    plan.variant = c.takes_any() ? p.type_ab == Type::BF16 : major_variant(p.type_ab, p.a, p.b);
    plan.variant += p.groups.of_k ? k_group_variants : p.is_grouped() ? group_variants : 0;
    plan.split = static_cast<int>(candidate.split);
    plan.tiles = candidate.tiles;
    plan.grid = o.sm_limit > 0 ? std::min<int64_t>(ctas, sm_count) : ctas;
    plan.counts = candidate.split > 1;
    plan.workspace = candidate.split > 1 ? partials_bytes(c, candidate.tiles, candidate.split) : 0;
    plan.predicted_us = us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

// The numbers of slices that are worth a prediction.
constexpr int64_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

// More CTAs than so many for each SM gain nothing.
bool is_too_fine(const Candidate& candidate, int sm_count)
{
    const int64_t most = configs[candidate.kernel].takes_unaligned() ? 8 : 4;
    return candidate.split > 1 && candidate.tiles * candidate.split > most * sm_count;
}

// A problem as the kernels see it: with copies of unaligned operands, if any. A backend that is asked first
// and has a plan, such as sm90, has kernels of its own for unaligned operands, and the times that two
// models predict for such kernels differ too much to be compared.
struct Asked {
    const Facts& facts;
    const Plan& copies;  // repack_a, repack_b, and as `workspace` the bytes of the copies
    double copies_us;

    bool leaves_out(const Config& c, const Options& options) const
    {
        return (copies.repacks() && (c.takes_unaligned() || c.takes_any())) ||
               (options.has_plan && c.takes_unaligned());
    }
};

// Takes a candidate if it is legal and the fastest so far.
bool consider(const Asked& asked, const Device& device, const Options& o, const Candidate& candidate,
              bool found, Plan& plan)
{
    const Problem& p = asked.facts.problem;
    if (const char* why_not = split_refusal(p, configs[candidate.kernel], candidate, o)) {
        plan.refusal = why_not;
        return false;
    }
    const int sm_count = o.sm_count(device);
    const double limit =
        found ? plan.predicted_us - asked.copies_us : std::numeric_limits<double>::infinity();
    Problem expected = p;
    expected.k = expected_k(p);
    expected.m = expected_m(p);
    const double us =
        predict_candidate(expected, device, candidate, sm_count, o.sm_limit > 0, limit) + asked.copies_us;
    if (found && us >= plan.predicted_us)
        return false;
    write_plan(p, candidate, us, sm_count, o, plan);
    plan.repack_a = asked.copies.repack_a;
    plan.repack_b = asked.copies.repack_b;
    plan.workspace += asked.copies.workspace;
    return true;
}

// Considers each kernel with each number of slices; `found`: the plan holds a choice already.
bool choose_kernel(const Asked& asked, const Device& device, const Options& options, bool found, Plan& plan)
{
    for (int i = 0; i < kernel_count; ++i) {
        if (is_forced_away(options, kernels[i]) || asked.leaves_out(configs[i], options))
            continue;
        if (const char* why_not = refusal(asked.facts, device, configs[i], kernels[i])) {
            plan.refusal = why_not;
            continue;
        }
        const int64_t tiles = count_max_tiles(asked.facts.problem, configs[i].tile_m, configs[i].tile_n);
        if (options.split > 0) {
            found |= consider(asked, device, options, {i, tiles, options.split}, found, plan);
            continue;
        }
        for (const int64_t split : splits) {
            const Candidate candidate{i, tiles, split};
            if (!is_too_fine(candidate, options.sm_count(device)))
                found |= consider(asked, device, options, candidate, found, plan);
        }
    }
    return found;
}

}  // namespace

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    plan.refusal = not_offered(options, offered);
    if (plan.refusal)
        return false;
    const Facts facts(p);
    const Plan no_copies = plan;
    bool found = choose_kernel({facts, no_copies, 0.0}, device, options, false, plan);
    constexpr Readable readable{.as_is = &OperandFacts::vectors, .copies_thin = false};
    Plan copies = no_copies;
    if (options.has_plan || p.is_grouped() || p.k == 0 || (facts.a.vectors && facts.b.vectors) ||
        !plan_repack(facts, readable, options.workspace, copies))
        return found;
    Options left = options;
    left.workspace -= copies.workspace;
    const Problem copied = repacked(p, copies, nullptr);
    const double us =
        predict_copies(device, KernelFactors(device, kernels)[0], static_cast<double>(copies.workspace),
                       options.sm_count(device), options.sm_limit > 0);
    return choose_kernel({Facts(copied), copies, us}, device, left, found, plan);
}

}  // namespace hg::sm80
