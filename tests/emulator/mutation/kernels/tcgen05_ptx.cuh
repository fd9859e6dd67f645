// Instructions of clusters and of sm_100 as device functions: PTX ISA 9.7.13 (barriers), 9.7.16 (tcgen05).
#pragma once

#include <cstdint>

namespace mutation::ptx {

__device__ inline uint32_t cluster_rank()
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ inline void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The address of the same place in the shared memory of another CTA of the cluster.
__device__ inline uint32_t map_rank(uint32_t address, uint32_t rank)
{
    uint32_t mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

__device__ inline void arrive_remote(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Waits for what another CTA has released.
__device__ inline void wait_cluster(uint32_t barrier, uint32_t parity)
{
    uint32_t done;
    do
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    while (!done);
}

__device__ inline void load(uint32_t to, const void* map, uint32_t barrier, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

__device__ inline void load_multicast(uint32_t to, const void* map, uint32_t barrier, int x, int y,
                                      uint16_t mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
                 : "memory");
}

// The barrier may be that of the other CTA of the pair.
__device__ inline void load_pair(uint32_t to, const void* map, uint32_t barrier, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

__device__ inline void store(const void* map, uint32_t from, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(x), "r"(y), "r"(from)
        : "memory");
}

template <int Group>
__device__ inline void tmem_allocate(uint32_t slot, uint32_t columns)
{
    asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(slot),
                 "r"(columns), "n"(Group)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(Group));
}

template <int Group>
__device__ inline void tmem_free(uint32_t tmem, uint32_t columns)
{
    asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(tmem), "r"(columns),
                 "n"(Group));
}

__device__ inline void fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ inline void fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

template <int Group>
__device__ inline void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, bool accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n"
                 "}" ::"r"(d),
                 "l"(a), "l"(b), "r"(shape), "r"(static_cast<int>(accumulate)), "n"(Group)
                 : "memory");
}

template <int Group>
__device__ inline void commit(uint32_t barrier)
{
    asm volatile(
        "tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier),
        "n"(Group)
        : "memory");
}

template <int Group>
__device__ inline void commit_multicast(uint32_t barrier, uint16_t mask)
{
    asm volatile("tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster"
                 ".multicast::cluster.b64 [%0], %1;" ::"r"(barrier),
                 "h"(mask), "n"(Group)
                 : "memory");
}

// The 32 lanes of a warp, 16 columns.
__device__ inline void tmem_load(float (&v)[16], uint32_t tmem)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
                 "%11, %12, %13, %14, %15}, [%16];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]),
                   "=f"(v[7]), "=f"(v[8]), "=f"(v[9]), "=f"(v[10]), "=f"(v[11]), "=f"(v[12]), "=f"(v[13]),
                   "=f"(v[14]), "=f"(v[15])
                 : "r"(tmem)
                 : "memory");
}

__device__ inline void tmem_wait_load() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

}  // namespace mutation::ptx
