// Chooses a kernel: legality, then measured exceptions, then a cost model (model.cpp).
#include "arch/sm120/choose.hpp"

#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/sm120/kernels.hpp"
#include "arch/sm120/model.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

namespace hg::sm120 {
namespace {

constexpr Offered offered{.split = false, .swap_ab = false, .stream_k = false, .pdl = Pdl::Late};

const char* refusal(const Problem& p, const Options& o)
{
    if (p.k == 0)
        return "k is 0";
    const char* const why_not = tma_refusal(p);
    return why_not ? why_not : not_offered(o, offered);
}

bool is_legal(const Problem& p, const Options& o, int kernel)
{
    return !is_forced_away(o, kernels[kernel]) && count_tiles(p, kernels[kernel]) <= max_tiles;
}

consteval int kernel_named(std::string_view name)
{
    for (int kernel = 0; kernel < kernel_count; ++kernel)
        if (name == kernels[kernel].name)
            return kernel;
    throw "tuned.def names an unknown kernel";
}

// The kernel of a row of tuned.def, for a problem without batch, both operands contiguous along K; else -1.
int tuned_kernel(const Problem& p, const Device& device, const Options& o)
{
    [[maybe_unused]] const auto is_measured = [&](int sm_count, int64_t n, int64_t k, int64_t m_above,
                                                  int64_t m_max) {
        return device.cc / 10 == 12 && device.sm_count == sm_count && o.sm_limit == 0 && p.batch == 1 &&
               major_of(p.a) == Major::K && major_of(p.b) == Major::K && p.n == n && p.k == k &&
               p.m > m_above && p.m <= m_max;
    };
#define TUNED(sm_count, n, k, m_above, m_max, name, us, model)                                             \
    if (is_measured(sm_count, n, k, m_above, m_max) && is_legal(p, o, kernel_named(#name)))                \
        return kernel_named(#name);
#include "arch/sm120/tuned.def"
#undef TUNED
    return -1;
}

int modelled_kernel(const Problem& p, const Device& device, const Options& o, int sm_count)
{
    int best = -1;
    double best_us = 0;
    for (int kernel = 0; kernel < kernel_count; ++kernel) {
        if (!is_legal(p, o, kernel))
            continue;
        const double limit = best >= 0 ? best_us : std::numeric_limits<double>::infinity();
        const double us =
            predict_kernel(p, device, kernel, count_tiles(p, kernels[kernel]), sm_count, limit);
        if (best >= 0 && us >= best_us)
            continue;
        best = kernel;
        best_us = us;
    }
    return best;
}

}  // namespace

bool choose(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    if (const char* why_not = refusal(p, o)) {
        plan.refusal = why_not;
        return false;
    }
    const int sm_count = o.sm_count(device);
    const int tuned = KernelFactors(device, kernels).are_measured() ? -1 : tuned_kernel(p, device, o);
    const int kernel = tuned >= 0 ? tuned : modelled_kernel(p, device, o, sm_count);
    if (kernel < 0) {
        plan.refusal = "more than 2^30 tiles";
        return false;
    }
    // Under a limit of SMs one CTA an SM: the hardware may put a second one on an SM of its own.
    const int ctas_per_sm = o.sm_limit > 0 ? 1 : configs[kernel].ctas_per_sm;
    plan.kernel = kernel;
    plan.variant = major_variant(p.type_ab, p.a, p.b);
    plan.split = 1;
    plan.pdl = o.pdl == Pdl::Off ? Pdl::Off : Pdl::Late;
    plan.tiles = count_tiles(p, kernels[kernel]);
    plan.grid = std::min(plan.tiles, int64_t{sm_count} * ctas_per_sm);
    plan.predicted_us = predict_kernel(p, device, kernel, plan.tiles, sm_count);
    plan.why = *o.kernel ? Why::Forced : tuned >= 0 ? Why::Tuned : Why::Model;
    return true;
}

}  // namespace hg::sm120
