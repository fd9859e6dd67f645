// Finds what was measured of each kernel (costs.def, network_*.def) by the kernel's name. No kernel needs
// such an entry.
#pragma once

#include "arch/sm90/config.hpp"
#include "arch/sm90/kernels.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace hg::sm90 {

// A kernel without an entry takes that of the nearest kernel, or gets -1.
enum class Missing { Nearest, None };

// How much two kernels differ: the schedule counts most, then the tile, then the cluster.
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
    throw "a table of sm90 names a kernel that kernels.def does not have";
}

// Index of an entry for each kernel; -1: none.
using EntryOfKernel = std::array<int, gemm_count>;

consteval int nearest_with_entry(int kernel, const EntryOfKernel& entries)
{
    int best = -1;
    for (int other = 0; other < gemm_count; ++other)
        if (entries[other] >= 0 && (best < 0 || distance(configs[kernel], configs[other]) <
                                                    distance(configs[kernel], configs[best])))
            best = other;
    return best;
}

// For each kernel the index of its entry in `table`. Entries with an empty name are skipped.
template <typename Entry, size_t Entries>
consteval EntryOfKernel entries_by_kernel(const Entry (&table)[Entries], Missing missing)
{
    EntryOfKernel own{};
    own.fill(-1);
    for (size_t i = 0; i < Entries; ++i)
        if (!table[i].name.empty())
            own[kernel_named(table[i].name)] = static_cast<int>(i);
    EntryOfKernel found = own;
    for (int kernel = 0; missing == Missing::Nearest && kernel < gemm_count; ++kernel)
        if (own[kernel] < 0)
            found[kernel] = own[nearest_with_entry(kernel, own)];
    return found;
}

}  // namespace hg::sm90
