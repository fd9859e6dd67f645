// Plans of gated kernels. Each runs as another kernel does, of the same tile and cluster, that computes the
// product without gates: the cost model and all other decisions are of that one.
#include "arch/common/host/facts.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/by_kernel.hpp"
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/grouped.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"
#include "arch/sm90/pack.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <utility>

namespace hg::sm90 {
namespace {

// Of GATED kernels; a GATED_GROUPED one runs as the GROUPED one with its number.
constexpr int gated_like[] = {
    kernel_named("sm90_coop_128x256_2x1"),     kernel_named("sm90_coop_128x224"),
    kernel_named("sm90_pingpong_128x176_2x1"), kernel_named("sm90_pingpong_128x128_2x1"),
    kernel_named("sm90_splitk_192x144"),       kernel_named("sm90_splitk_192x112"),
    kernel_named("sm90_splitk_128x144"),       kernel_named("sm90_splitk_128x112_1x2"),
    kernel_named("sm90_splitk_128x112_2x1"),   kernel_named("sm90_splitk_128x96"),
    kernel_named("sm90_splitk_64x144"),        kernel_named("sm90_splitk_64x112_1x2"),
    kernel_named("sm90_splitk_64x96"),         kernel_named("sm90_splitk_64x64"),
    kernel_named("sm90_splitk_128x64_1x2"),    kernel_named("sm90_splitk_64x32_occ2"),
    kernel_named("sm90_splitk_64x16_occ2"),    kernel_named("sm90_splitk_64x8_occ2"),
};
static_assert(std::size(gated_like) == gated_count);

constexpr bool is_like(const Config& gated, const Config& other)
{
    return gated.schedule == other.schedule && gated.tile_m == other.tile_m &&
           gated.tile_n == other.tile_n && gated.cluster_m == other.cluster_m &&
           gated.cluster_n == other.cluster_n && gated.stages == other.stages &&
           gated.consumers == other.consumers && gated.ctas_per_sm == other.ctas_per_sm;
}

static_assert([] {
    bool alike = true;
    for (int i = 0; i < gated_count; ++i)
        alike = alike && is_like(gated_configs[i], configs[gated_like[i]]);
    for (int i = 0; i < grouped_count; ++i)
        alike = alike && is_like(gated_grouped_configs[i], grouped_configs[i]);
    return alike;
}());

const char* refusal_of_gates(const Facts& f)
{
    const Problem& p = f.problem;
    if (p.k == 0)
        return "k is 0";
    if (f.output.reads_c || p.bias.along == BiasAlong::Rows)
        return "gated kernels have no C, and no bias of rows";
    if (p.aux.ptr && !is_vector_aligned(p.aux.ptr, p.aux.ld, p.batch > 1 ? p.aux.batch_stride : 0, 2))
        return "gated kernels need an aux that is aligned to 16 bytes";
    if (p.activation == Activation::GeluErf)
        return "gated kernels have no GELU by erf";
    if (f.a.major != Major::K || !f.a.tma || !f.b.tma)
        return "gated kernels need an A that is contiguous along K, and A and B that are aligned to 16 "
               "bytes";
    return f.output.tma && p.d.type == p.type_ab ? nullptr : "TMA cannot store D in the type of A and B";
}

// A bias is staged before the main loop, and added to the accumulators.
Epilogue epilogue_of(const Problem& p)
{
    return p.bias.along == BiasAlong::None ? Epilogue::Plain : Epilogue::Fused;
}

// Plans are those of a product without aux: it is stored from registers.
Problem product_of(const Problem& p)
{
    Problem product = p.without_gates();
    product.aux = {};
    return product;
}

// Options that force kernel `like`.
Options force(const Options& o, const char* like)
{
    Options forced = o;
    std::snprintf(forced.kernel, sizeof forced.kernel, "%s", like);
    return forced;
}

// Where D's columns lie along M, slices of K have whole rows of D, and there may be several.
bool plan_gated(const Problem& p, int index, const Device& device, const Options& o, Plan& plan)
{
    const KernelInfo& kernel = kernels[first_gated + index];
    const Config& c = gated_configs[index];
    const bool along_m = c.gates == Gates::AlongM;
    if (is_forced_away(o, kernel) || !finds_gates(c, p) || (p.aux.ptr && c.is_split()))
        return false;
    Options like = force(o, kernels[gated_like[index]].name);
    like.swap_ab = along_m ? SwapAb::On : SwapAb::Off;
    like.split = along_m ? o.split : 1;
    if ((o.swap_ab != SwapAb::Free && o.swap_ab != like.swap_ab) || (o.split > 0 && o.split != like.split))
        return false;
    const Problem product = product_of(p);
    if (!choose_gemm(Facts(product), device, like, plan))
        return false;
    plan.kernel = first_gated + index;
    plan.sm90.epilogue = epilogue_of(p);
    plan.sm90.staggered = false;
    // Tiles that overlap would have gates of two blocks.
    (along_m ? plan.sm90.last_m : plan.sm90.last_n) = INT32_MAX;
    return true;
}

// As the kernel without gates is planned or, where its tiles do not find the gates, as the widest whose
// tiles do.
bool plan_gated_groups(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    if (choose_few_rows(p, device, o, plan))
        return true;
    const Problem product = product_of(p);
    const auto plan_as = [&](const Options& like) {
        Plan next = plan;
        if (!choose_many_rows(product, device, like, next) || next.repacks())
            return false;
        const int index = next.kernel - first_grouped;
        if (!finds_gates(gated_grouped_configs[index], p))
            return false;
        plan = next;
        plan.kernel = first_gated_grouped + index;
        plan.sm90.epilogue = epilogue_of(p);
        return true;
    };
    if (!*o.kernel && plan_as(o))
        return true;
    for (int index = grouped_count - 1; index >= 0; --index)
        if (!is_forced_away(o, kernels[first_gated_grouped + index]) &&
            plan_as(force(o, kernels[first_grouped + index].name)))
            return true;
    return false;
}

// With swap_ab a B of more bytes is read more slowly than by a product whose sums are gated in a pass: 16
// rows and B of 357 MB 92 us, in parts 86; 235 MB 58.4 and 58.1; 117 MB 31.8 and 31.9; 50 MB 20.1 and 22.2
// (H200).
bool reads_too_much(const Problem& p, const Config& c)
{
    constexpr int64_t many_bytes = int64_t{1} << 27;
    return c.gates == Gates::AlongM && 2 * p.n * p.k > many_bytes;
}

// What the model expects of kernel `index`, with the best of some numbers of slices.
double expected_us(const Facts& product, int index, const Device& device, int sm_count)
{
    const Config& c = gated_configs[index];
    const bool along_m = c.gates == Gates::AlongM;
    const int64_t m = int64_t{c.tile_m} * c.cluster_m, n = int64_t{c.tile_n} * c.cluster_n;
    const int64_t clusters = count_tiles(product.problem, m, n, along_m);
    const Factors& factors = KernelFactors(device, kernels)[gated_like[index]];
    double best =
        predict(product, {gated_like[index], along_m, 1, false, clusters, false}, sm_count, factors).us;
    for (const int split : {2, 4})
        if (along_m && can_split(c, split))
            best = std::min(best, predict(product, {gated_like[index], true, split, false, clusters, false},
                                          sm_count, factors)
                                      .us);
    return best;
}

// The best of those few that the model likes most. All are planned only if one is forced.
bool plan_best(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    constexpr int few = 3;
    const Problem whole = product_of(p);
    const Facts product(whole);
    std::array<std::pair<double, int>, gated_count> order;
    int count = 0;
    for (int index = 0; index < gated_count; ++index)
        if (*o.kernel || !reads_too_much(p, gated_configs[index]))
            order[static_cast<size_t>(count++)] = {
                *o.kernel ? 0 : expected_us(product, index, device, o.sm_count(device)), index};
    std::sort(order.begin(), order.begin() + count);
    const Plan unplanned = plan;
    int planned = 0;
    for (int i = 0; i < count && planned < few; ++i) {
        Plan next = unplanned;
        if (!plan_gated(p, order[static_cast<size_t>(i)].second, device, o, next))
            continue;
        if (planned == 0 || next.predicted_us < plan.predicted_us)
            plan = next;
        ++planned;
    }
    return planned > 0;
}

}  // namespace

bool choose_gated(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    plan.refusal = refusal_of_gates(Facts(rows_of_groups(p)));
    if (plan.refusal)
        return false;
    if (p.is_grouped() ? !plan_gated_groups(p, device, o, plan) : !plan_best(p, device, o, plan)) {
        plan.refusal = "gates lie where tiles do not find them, or what was forced does not fit";
        return false;
    }
    plan.why = *o.kernel ? Why::Forced : Why::Model;
    return true;
}

}  // namespace hg::sm90
