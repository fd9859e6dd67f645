#include "arch/common/host/facts.hpp"
#include "arch/common/host/mma_sync_model.hpp"
#include "arch/common/host/pack.hpp"
#include "arch/common/host/settings.hpp"
#include "arch/common/types.hpp"
#include "arch/sm80/choose.hpp"
#include "arch/sm80/config.hpp"
#include "arch/sm80/kernels.hpp"
#include "arch/sm80/model.hpp"
#include "src/plan/backend.hpp"

#include <algorithm>
#include <cstdint>

namespace hg::sm80 {
namespace {

constexpr Offered offered_with_gates{.split = false, .swap_ab = false, .stream_k = false, .pdl = Pdl::Off};

// Where another backend's products have other bits: in batch-invariant mode a result must not depend on
// whether a call runs in parts, which are theirs.
bool is_passed_over(const Device& device, const Options& o)
{
    return device.cc >= 90 && device.cc < 120 && !o.is_forced() && *o.backend == '\0';
}

// A thread stores two neighbouring columns of D's at a time.
bool is_aux_storable(const Problem& p)
{
    return !p.aux.ptr || (p.d.type == p.type_ab && p.columns() % 2 == 0 &&
                          is_vector_aligned(p.aux.ptr, p.aux.ld, p.batch > 1 ? p.aux.batch_stride : 0, 2));
}

const char* refusal_of_gates(const Facts& f)
{
    const Problem& p = f.problem;
    if (p.k == 0 || p.k > INT32_MAX - 512)
        return "k is 0, or 2^31 or more";
    if (p.has_arrays() || p.c.exists() || p.bias.along == BiasAlong::Rows || p.beta_device)
        return "gated kernels have no arrays, no C, no beta in device memory, and no bias of rows";
    if (p.activation == Activation::GeluErf)
        return "gated kernels have no GELU by erf";
    if (f.a.major != Major::K || !f.a.vectors || !f.b.vectors)
        return "gated kernels need an A that is contiguous along K, and A and B that are aligned to 16 "
               "bytes";
    if (f.b.major != Major::K && p.gate.block % 8 != 0)
        return "a block that is no multiple of 8 needs a B that is contiguous along K";
    if (std::max(f.a.line, 2 * f.b.line) > INT32_MAX || std::max({p.m, p.n, p.batch}) > INT32_MAX - 512)
        return "a size or a leading dimension is too large";
    return is_aux_storable(p)
               ? nullptr
               : "gated kernels need an aux of the type of A, B and D, in aligned vectors, and an "
                 "even number of columns of D beside it";
}

// Do the gates of a tile lie together, as do their up elements? Or do they alternate?
bool finds_gates(const Config& c, const Problem& p)
{
    return p.gate.block == 1 || 2 * p.gate.block == p.n || p.gate.block % (c.tile_n / 2) == 0;
}

void write_gated_plan(const Problem& p, const Candidate& candidate, double us, const Options& o,
                      int sm_count, Plan& plan)
{
    plan.refusal = nullptr;
    plan.kernel = candidate.kernel;
    plan.variant =
        major_variant(p.type_ab, p.a, p.b) + (p.is_grouped() ? gated_group_variants : gate_variants);
    plan.split = 1;
    plan.tiles = candidate.tiles;
    plan.grid = o.sm_limit > 0 ? std::min<int64_t>(candidate.tiles, sm_count) : candidate.tiles;
    plan.predicted_us = us;
    plan.why = *o.kernel ? Why::Forced : Why::Model;
}

}  // namespace

bool choose_gated(const Problem& p, const Device& device, const Options& o, Plan& plan)
{
    plan.refusal = is_passed_over(device, o) ? "other backends compute it in parts"
                                             : not_offered(o, offered_with_gates);
    if (!plan.refusal)
        plan.refusal = refusal_of_gates(Facts(p));
    if (plan.refusal)
        return false;
    plan.refusal = "gates lie where tiles do not find them, or what was forced does not fit";
    const int sm_count = o.sm_count(device);
    Problem expected = p.without_gates();
    expected.m = expected_m(p);
    bool found = false;
    for (int i = 0; i < kernel_count; ++i) {
        const Config& c = configs[i];
        const int64_t tiles = count_max_tiles(p, c.tile_m, c.tile_n);
        if (!c.takes_gates() || is_forced_away(o, kernels[i]) || !finds_gates(c, p) || tiles > max_tiles ||
            kernels[i].smem_bytes > device.smem_per_block)
            continue;
        const Candidate candidate{i, tiles, 1};
        const double us = predict_candidate(expected, device, candidate, sm_count, o.sm_limit > 0);
        if (!found || us < plan.predicted_us)
            write_gated_plan(p, candidate, us, o, sm_count, plan);
        found = true;
    }
    return found;
}

}  // namespace hg::sm80
