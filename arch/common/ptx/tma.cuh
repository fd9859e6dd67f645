// Bulk tensor copies: PTX ISA 9.7.9.27.1. Coordinates are in elements, the contiguous dimension first.
#pragma once

#include <cstdint>

namespace hg::ptx {

// prefetch.tensormap [map];   sm_90
__device__ inline void prefetch_tensormap(const void* map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// cp.async.bulk.prefetch.tensor.3d.L2.global.tile [map, {x, y, z}];   sm_90, PTX ISA 9.7.9.27.1.3
__device__ inline void tma_prefetch_3d(const void* map, int x, int y, int z)
{
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map), "r"(x),
                 "r"(y), "r"(z)
                 : "memory");
}

// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     [dst], [map, {x, y, z}], [bar];   sm_90
__device__ inline void tma_load_3d(uint32_t dst, const void* map, uint32_t bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar)
                 : "memory");
}

// cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes
//     [dst], [map, {x, y, z}], [bar];   sm_90, PTX ISA 8.6. For sm_120 ptxas compiles each load to
// shared::cluster as a test for this CTA's own address and a call for all others.
__device__ inline void tma_load_3d_cta(uint32_t dst, const void* map, uint32_t bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar)
                 : "memory");
}

// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
//     [dst], [map, {x, y, z}], [bar], policy;   sm_90
__device__ inline void tma_load_3d_hint(uint32_t dst, const void* map, uint32_t bar, int x, int y, int z,
                                        uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar), "l"(policy)
                 : "memory");
}

// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
//     .L2::cache_hint [dst], [map, {x, y, z}], [bar], ctas, policy;   sm_90a. Loads to the same offsets
// in each CTA of the mask.
__device__ inline void tma_load_3d_multicast_hint(uint32_t dst, const void* map, uint32_t bar, int x, int y,
                                                  int z, uint16_t ctas, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar), "h"(ctas), "l"(policy)
                 : "memory");
}

// cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     [dst], [map, {x, y, z}], [bar];   sm_100. The barrier may be in the other CTA of the pair.
__device__ inline void tma_load_3d_pair(uint32_t dst, const void* map, uint32_t bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar)
                 : "memory");
}

// cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [map, {x, y, z}], [src];   sm_90
__device__ inline void tma_store_3d(const void* map, uint32_t src, int x, int y, int z)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
        "r"(x), "r"(y), "r"(z), "r"(src)
        : "memory");
}

// cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint [map, {x, y, z}], [src],
//     policy;   sm_90
__device__ inline void tma_store_3d_hint(const void* map, uint32_t src, int x, int y, int z,
                                         uint64_t policy)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%1, %2, %3}], "
        "[%4], %5;" ::"l"(map),
        "r"(x), "r"(y), "r"(z), "r"(src), "l"(policy)
        : "memory");
}

// cp.async.bulk.commit_group;   sm_90
__device__ inline void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// cp.async.bulk.wait_group.read n;   sm_90. Waits until all but the last n groups have read
// their sources.
template <int N>
__device__ inline void bulk_wait_group_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// cp.async.bulk.wait_group n;   sm_90. Waits until all but the last n groups are complete.
template <int N>
__device__ inline void bulk_wait_group()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace hg::ptx
