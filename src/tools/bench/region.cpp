#include "src/tools/bench/region.hpp"

#include <algorithm>
#include <cstring>

namespace hg::bench {
namespace {

constexpr Limits sustained{800e12, 4.3e12};
constexpr double launch_us = 2;

double compute_us(const Product& p, const Limits& limits) { return p.flops() / limits.flops * 1e6; }
double memory_us(const Product& p, const Limits& limits) { return p.bytes() / limits.bytes * 1e6; }

// A short m is the natural state of decoding, whatever it is a multiple of.
bool is_odd(const Product& p)
{
    const bool ragged = (p.m > 64 && p.m % 8 != 0) || p.n % 8 != 0 || p.k % 8 != 0;
    return ragged || p.offset % 8 != 0 || p.pad % 8 != 0;
}

bool is_skinny(const Product& p) { return std::min(p.m, p.n) <= 64; }
bool in_region(const Product& p, const char* region) { return !std::strcmp(region_of(p), region); }
bool in_grid(const Product& p, const char* region)
{
    return p.set == "grid" && !is_skinny(p) && in_region(p, region);
}
bool in_llm(const Product& p, int64_t least, int64_t most)
{
    return p.set == "llm" && p.m >= least && p.m <= most;
}

}  // namespace

Limits limits_of(const std::string& device)
{
    // 132 SMs, each 4096 operations a cycle; 5 and 6 stacks of memory with 1024 bits, twice a cycle.
    constexpr double flops = 132 * 4096 * 1.98e9;
    if (device == "NVIDIA H100 80GB HBM3")
        return {flops, 5 * 128 * 2 * 2.619e9};
    if (device == "NVIDIA H200")
        return {flops, 6 * 128 * 2 * 3.201e9};
    return {};
}

double floor_us(const Product& p, const Limits& limits)
{
    return known(limits.flops) ? std::max(compute_us(p, limits), memory_us(p, limits)) : unknown;
}

double ideal_us(const Product& p) { return floor_us(p, sustained) + launch_us; }

const char* bound_of(const Product& p)
{
    return compute_us(p, sustained) > memory_us(p, sustained) ? "compute" : "memory";
}

const char* region_of(const Product& p)
{
    if (is_odd(p))
        return "odd";
    const double ideal = ideal_us(p);
    if (ideal < 3)
        return "tiny";
    if (p.m == 1)
        return "gemv";
    if (p.m <= 64)
        return "decode";
    if (p.k <= 1024 && p.m >= 4096 && p.n >= 4096)
        return "thin-K";
    if (p.m <= 512 && p.n <= 512 && p.k >= 4096)
        return "deep-K";
    return p.m <= 512 || ideal < 30 ? "mid" : "large";
}

const std::vector<Goal>& goals()
{
    static const std::vector<Goal> list = {
        {"llm m 1-64", [](const Product& p) { return in_llm(p, 1, 64); }, 1.07, 1.04, 1},
        {"llm m 65-128", [](const Product& p) { return in_llm(p, 65, 128); }, 1.08, 1.05, 1},
        {"llm m 129-512", [](const Product& p) { return in_llm(p, 129, 512); }, 1.10, 1.06, 1},
        {"llm m >= 1024", [](const Product& p) { return in_llm(p, 1024, INT64_MAX); }, 1.05, 1.00, 1},
        {"grid tiny", [](const Product& p) { return p.set == "grid" && in_region(p, "tiny"); }, 1.20, 1.15,
         1},
        {"grid min(m,n) <= 64",
         [](const Product& p) { return p.set == "grid" && is_skinny(p) && !in_region(p, "tiny"); }, 1.14,
         1.10, 1},
        {"grid mid", [](const Product& p) { return in_grid(p, "mid"); }, 1.12, 1.08, 1},
        {"grid thin-K", [](const Product& p) { return in_grid(p, "thin-K"); }, 1.15, 1.05, 1},
        {"grid deep-K", [](const Product& p) { return in_grid(p, "deep-K"); }, 1.25, 1.20, 1},
        {"grid large", [](const Product& p) { return in_grid(p, "large"); }, 1.01, 0.99, 1},
        {"odd", [](const Product& p) { return p.set == "odd"; }, 1.7, 1.5, 1},
        {"mirror", [](const Product& p) { return p.set == "mirror"; }, 1.02, 1.00, 1},
        {"square, llm, grid",
         [](const Product& p) { return p.set == "square" || p.set == "llm" || p.set == "grid"; }, 1.12,
         1.07, 0.15}};
    return list;
}

}  // namespace hg::bench
