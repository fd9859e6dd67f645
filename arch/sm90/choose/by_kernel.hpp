// Numbers that were measured kernel by kernel, found by the kernel's name: the lines of costs.def and of
// the networks. A kernel needs none.
#pragma once

#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace hg::sm90 {

// What stands for a line that a kernel does not have: the one of its nearest relative, or -1.
enum class Missing { Nearest, None };

// How far a kernel is from another: the schedule first, then the tile, then the cluster.
constexpr int distance(const Config& a, const Config& b)
{
    const auto apart = [](int x, int y) { return x < y ? y - x : x - y; };
    return 10000 * (a.is_split() != b.is_split()) + 1000 * (a.schedule != b.schedule) +
           10 * (apart(a.tile_m, b.tile_m) + apart(a.tile_n, b.tile_n)) +
           3 * (apart(a.ctas(), b.ctas()) + apart(a.ctas_per_sm, b.ctas_per_sm)) +
           (a.cluster_m != b.cluster_m);
}

consteval int kernel_named(std::string_view name)
{
    for (int kernel = 0; kernel < repack_kernel; ++kernel)
        if (name == kernels[kernel].name)
            return kernel;
    throw "a table of sm90 names a kernel that kernels.def has not";
}

// For each kernel the number of its line in `table`, whose lines begin with a name; those without one are
// not looked at.
template <typename Line, size_t Lines>
consteval std::array<int, gemm_count> lines_of_kernels(const Line (&table)[Lines], Missing missing)
{
    std::array<int, gemm_count> own{}, found{};
    own.fill(-1);
    for (size_t i = 0; i < Lines; ++i)
        if (!table[i].name.empty())
            own[kernel_named(table[i].name)] = static_cast<int>(i);
    found = own;
    for (int kernel = 0; missing == Missing::Nearest && kernel < gemm_count; ++kernel)
        for (int other = 0, best = -1; found[kernel] < 0 || best >= 0; ++other) {
            if (other == gemm_count) {
                found[kernel] = own[best];
                break;
            }
            if (own[other] >= 0 && (best < 0 || distance(configs[kernel], configs[other]) <
                                                    distance(configs[kernel], configs[best])))
                best = other;
        }
    return found;
}

}  // namespace hg::sm90
