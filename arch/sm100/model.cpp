// Three things bound a kernel, and are added with a norm since they do not overlap perfectly: the k tiles
// of a multiprocessor, the bytes of memory, the bytes that L2 delivers. Launch and epilogue come on top.
// Constants: published rates of a B200; nothing here was measured.
#include "arch/sm100/model.hpp"

#include "arch/common/pack.hpp"

#include <algorithm>
#include <cmath>

namespace hg::sm100 {
namespace {

constexpr double flops_a_cycle = 8192.0, smem_bytes_a_cycle = 128.0;  // of a multiprocessor
constexpr double cycles_a_us = 1800.0;
constexpr double memory = 7.0e6, memory_of_one = 7.0e4, l2 = 20.0e6;  // bytes/us
constexpr double launch = 3.0;                                        // us, with the first stages' latency
constexpr double sum_of_slices = 1.0;                                 // us
constexpr double store_cycles = 8.0;                                  // a column of an accumulator
constexpr double norm = 2.5;

// Of one k tile: tcgen05.mma, or shared memory, which is written once by TMA and read by each consumer.
double k_tile_cycles(const Config& c)
{
    const double x = operand_bytes(128), y = operand_bytes(y_rows(c)), consumers = c.consumers();
    const double multiply = consumers * 2.0 * 128 * c.y * tile_k / flops_a_cycle;
    return std::max(multiply, (consumers * (x + y) + consumers * x + y) / smem_bytes_a_cycle);
}

}  // namespace

double predict(const Problem& p, const Config& c, const Way& way, int sm_count)
{
    const auto batch = static_cast<double>(p.batch), m = static_cast<double>(p.m),
               n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    const double size = way.split * c.group, ctas = static_cast<double>(way.clusters) * size;
    const double waves = std::ceil(static_cast<double>(way.clusters) / std::max(1.0, sm_count / size));
    const double k_tiles = std::ceil(std::ceil(k / tile_k) / way.split);
    // Only with a second accumulator does the epilogue overlap with the next tile's products.
    const double epilogues = c.accumulators() > 1 ? 1.0 : waves;
    const double compute =
        (waves * k_tiles * k_tile_cycles(c) + epilogues * store_cycles * c.y * c.consumers()) / cycles_a_us;
    const double operands = 2.0 * batch * k * (m + n);
    const double output = static_cast<double>(bytes_of(p.d.type)) * batch * m * n;
    const double bytes =
        std::max((operands + output) / memory, operands / std::min<double>(ctas, sm_count) / memory_of_one);
    const double from_l2 = ctas * k_tiles * (operand_bytes(x_rows(c)) + operand_bytes(y_rows(c))) / l2;
    return launch + (way.split > 1 ? sum_of_slices : 0.0) +
           std::pow(std::pow(compute, norm) + std::pow(bytes, norm) + std::pow(from_l2, norm), 1.0 / norm);
}

}  // namespace hg::sm100
