// Problem x Device -> row: legality, then measured exceptions, then a cost model (model.cpp).
#include "arch/common/settings.hpp"
#include "arch/common/tma.hpp"
#include "arch/sm120/rows.hpp"

#include <algorithm>
#include <string_view>

namespace hg::sm120 {
namespace {

constexpr Offered offered{.split = false, .swapped = false, .stream = false, .overlap = hg::Overlap::Late};

const char* refusal(const Problem& p, const Options& o)
{
    if (p.k == 0)
        return "k is 0";
    if (std::max({p.m, p.n, p.k, p.batch}) > max_tma_extent)
        return "a size is 2^31 or more";
    if (!is_tma_operand(p.a, p.batch) || !is_tma_operand(p.b, p.batch))
        return "TMA cannot address A or B: contiguous lines and 16-byte alignment are needed";
    return not_offered(o, offered);
}

bool is_allowed(const Problem& p, const Options& o, int row)
{
    return !is_forced_away(o, rows[row]) && count_tiles(p, rows[row]) <= max_tiles;
}

consteval int row_named(std::string_view name)
{
    for (int row = 0; row < row_count; ++row)
        if (name == rows[row].name)
            return row;
    throw "tuned.def names an unknown kernel";
}

// What measurements say of a product without batch, both operands contiguous along k; -1: nothing.
int tuned_row(const Problem& p, const Device& device, const Options& o)
{
    [[maybe_unused]] const auto is_measured = [&](int sm_count, int64_t n, int64_t k, int64_t over,
                                                  int64_t m) {
        return device.cc / 10 == 12 && device.sm_count == sm_count && o.sm_limit == 0 && p.batch == 1 &&
               major_of(p.a) == Major::K && major_of(p.b) == Major::K && p.n == n && p.k == k &&
               p.m > over && p.m <= m;
    };
#define TUNED(sm_count, n, k, over, m, name, us, model)                                                    \
    if (is_measured(sm_count, n, k, over, m) && is_allowed(p, o, row_named(#name)))                        \
        return row_named(#name);
#include "arch/sm120/tuned.def"
#undef TUNED
    return -1;
}

int modelled_row(const Problem& p, const Device& device, const Options& o, int sm_count)
{
    int best = -1;
    double least = 0;
    for (int row = 0; row < row_count; ++row) {
        if (!is_allowed(p, o, row))
            continue;
        const double us = predict(p, device, configs[row], count_tiles(p, rows[row]), sm_count);
        if (best >= 0 && us >= least)
            continue;
        best = row;
        least = us;
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
    const int tuned = tuned_row(p, device, o);
    const int row = tuned >= 0 ? tuned : modelled_row(p, device, o, sm_count);
    if (row < 0) {
        plan.refusal = "more than 2^30 tiles";
        return false;
    }
    // Under a limit of multiprocessors nothing says that two CTAs would share one.
    const int residents = o.sm_limit > 0 ? 1 : configs[row].residents;
    plan.row = row;
    plan.variant = major_variant(p.type_ab, p.a, p.b);
    plan.split = 1;
    plan.overlaps = o.overlap != hg::Overlap::None;
    plan.tiles = count_tiles(p, rows[row]);
    plan.grid = std::min(plan.tiles, int64_t{sm_count} * residents);
    plan.predicted_us = predict(p, device, configs[row], plan.tiles, sm_count);
    plan.why = *o.kernel ? Why::Forced : tuned >= 0 ? Why::Tuned : Why::Model;
    return true;
}

}  // namespace hg::sm120
