#include "arch/sm90/model.hpp"

#include "arch/common/pack.hpp"

#include <algorithm>

namespace hg::sm90 {
namespace {

constexpr double clock_mhz = 1600.0;

// Cycles for one k tile of a CTA: the tensor cores (4,096 flops a cycle, 95 % reached), shared memory (128
// bytes a cycle, read by wgmma and written by TMA) and what L2 delivers to one multiprocessor.
double k_tile_cycles(const Config& c)
{
    const int consumers = c.kind == Kind::PingPong ? 1 : c.consumers;
    const double mma = 2.0 * c.x * std::max(c.y, 32) * tile_k / 4096.0 / 0.95;
    const double smem = 2.0 * tile_k * (c.blocks() * consumers * (64.0 + c.y) + c.x + c.y) / 128.0;
    const double l2 = 2.0 * tile_k * (c.x + static_cast<double>(c.y) / c.cluster) / 45.0;
    return std::max({mma, smem, l2}) + 8.0;
}

}  // namespace

double predict(const Problem& p, const Config& c, bool swapped, int split, int64_t tiles, int sm_count)
{
    (void)swapped;
    const double k_tiles = static_cast<double>(ceil_div(ceil_div(p.k, tile_k), split));
    const double work = k_tiles * k_tile_cycles(c);
    const double epilogue = c.x * c.y * 2 / 26.0 + 500.0;
    const double bytes = 2.0 * static_cast<double>(p.batch) *
                         (static_cast<double>(p.m) * static_cast<double>(p.k) +
                          static_cast<double>(p.n) * static_cast<double>(p.k) +
                          static_cast<double>(p.m) * static_cast<double>(p.n));
    const int64_t ctas = tiles * split * c.cluster;
    const double filled = std::min(1.0, static_cast<double>(ctas) / 100.0);
    const double dram = bytes / (4.3e6 * filled);
    double compute;
    if (c.is_split()) {
        const auto per_sm = static_cast<double>(ceil_div(ctas, sm_count));
        compute = (std::max(per_sm, 1.0) * (work + 0.5 * epilogue) + 0.5 * epilogue) / clock_mhz;
        if (split > 1)
            compute += 0.8 + split * c.x * c.y * 4 / 200.0 / clock_mhz / split;
    } else {
        const auto waves = static_cast<double>(ceil_div(tiles * c.cluster, sm_count));
        compute = c.kind == Kind::PingPong ? (waves * work + epilogue) / clock_mhz
                                           : (waves * work + epilogue * (0.65 + 0.35 * waves)) / clock_mhz;
    }
    return (c.is_split() ? 1.3 : 2.0) + std::max(compute, dram);
}

}  // namespace hg::sm90
