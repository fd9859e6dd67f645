// Clusters: ranks, barriers and the shared memory of other CTAs. PTX ISA 10 (special registers),
// 9.7.13.3 (barrier.cluster), 9.7.9.22 (mapa), 9.7.9.12 (st.async).
#pragma once

#include <cstdint>

namespace hg::ptx {

// mov.u32 rank, %cluster_ctarank;   sm_90
__device__ inline uint32_t cluster_ctarank()
{
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// barrier.cluster.arrive.relaxed.aligned;   sm_90. Orders no memory accesses: a fence before it must.
__device__ inline void cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// barrier.cluster.arrive.release.aligned;   sm_90
__device__ inline void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// barrier.cluster.wait.acquire.aligned;   sm_90
__device__ inline void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// mapa.shared::cluster.u32 remote, address, rank;   sm_90. The address of the same variable in another CTA.
__device__ inline uint32_t map_shared(uint32_t address, uint32_t rank)
{
    uint32_t remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

// st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [address], v, [bar];   sm_90. Address and
// barrier are in the same CTA; the bytes complete on the barrier when they have landed.
__device__ inline void store_async_f32x4(uint32_t address, const float (&v)[4], uint32_t bar)
{
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
            address),
        "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(bar)
        : "memory");
}

// st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [address], value, [bar];   sm_90. As above. In
// a launch without clusters it is an illegal instruction.
__device__ inline void store_async_u32(uint32_t address, uint32_t value, uint32_t bar)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(address),
                 "r"(value), "r"(bar)
                 : "memory");
}

// mbarrier.arrive.shared::cluster.b64 _, [bar];   sm_90
__device__ inline void mbarrier_arrive_cluster(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

}  // namespace hg::ptx
