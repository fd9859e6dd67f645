// Problem x Device -> row: legality, then a cost model.
#include "arch/common/pack.hpp"
#include "arch/sm90/rows.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

// Tensor maps have 32-bit coordinates and strides below 2^40 bytes; a tile may start before the end and
// reach past it.
constexpr int64_t max_extent = INT32_MAX - 512, max_stride = int64_t{1} << 39;

bool is_tma_operand(const Operand& o, int64_t batch)
{
    const bool batched = batch > 1;
    return is_vector_operand(o, batch) && line_stride(o) < max_stride &&
           (!batched || (o.batch_stride >= 0 && o.batch_stride < max_stride));
}

const char* refusal(const Problem& p, const Row& row)
{
    if (p.k == 0)
        return "k is 0";
    if (std::max({p.m, p.n, p.k, p.batch}) > max_extent)
        return "a size is 2^31 or more";
    if (!is_tma_operand(p.a, p.batch) || !is_tma_operand(p.b, p.batch))
        return "TMA cannot address A or B: contiguous lines and 16-byte alignment are needed";
    if (p.d.array)
        return "TMA cannot follow arrays of pointers";
    if (count_tiles(p, row) > max_tiles)
        return "more than 2^30 tiles";
    return nullptr;
}

// Time in microseconds: full waves of tiles, each limited by the tensor cores (4,096 flops a cycle, 95 %
// reached) or by shared memory (128 bytes a cycle, read by wgmma and written by TMA), then its epilogue.
double predict(const Problem& p, const Config& c, int64_t waves)
{
    const double k_tiles = static_cast<double>(ceil_div(p.k, c.k));
    const double mma = 2.0 * c.m * c.n * c.k / 4096.0 / 0.95;
    const double smem = 2.0 * c.k * (c.consumers * (64.0 + c.n) + c.m + c.n) / 128.0;
    const double epilogue = c.m * c.n * 2 / 26.0 + 500.0;
    const double clock = 1600.0;
    return 2.0 +
           (static_cast<double>(waves) * k_tiles * std::max(mma, smem) + epilogue * (0.65 + 0.35 * waves)) /
               clock;
}

}  // namespace

bool choose(const Problem& p, const Device& device, const Options& options, Plan& plan)
{
    bool found = false;
    const int sm_count =
        options.sm_limit > 0 ? std::min(options.sm_limit, device.sm_count) : device.sm_count;
    for (int i = 0; i < row_count; ++i) {
        if (is_forced_away(options, rows[i]))
            continue;
        if (const char* why_not = refusal(p, rows[i])) {
            plan.refusal = why_not;
            continue;
        }
        const int64_t tiles = count_tiles(p, rows[i]);
        const int64_t waves = ceil_div(tiles, sm_count);
        const double us = predict(p, configs[i], waves);
        if (found && us >= plan.predicted_us)
            continue;
        found = true;
        plan.row = i;
        plan.variant = major_variant(p);
        plan.split = 1;
        plan.tiles = tiles;
        plan.grid = ceil_div(tiles, waves);  // no more CTAs than keep the number of waves: less power
        plan.predicted_us = us;
        plan.why = *options.kernel ? Why::Forced : Why::Model;
    }
    return found;
}

}  // namespace hg::sm90
