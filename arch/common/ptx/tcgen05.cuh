// Tensor memory and the MMAs that accumulate in it: PTX ISA 9.7.16. Group is 1, a CTA on its own, or 2, a
// pair of an even CTA of a cluster and the next one. Tensor memory addresses: lane << 16 | column.
#pragma once

#include <cstdint>

namespace hg::ptx {

// tcgen05.alloc.cta_group::G.sync.aligned.shared::cta.b32 [slot], columns;   sm_100f. A whole warp, in a
// pair one of each CTA; waits until columns are free. Writes their address to shared memory.
template <int Group>
__device__ inline void tmem_allocate(uint32_t slot, uint32_t columns)
{
    asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(slot),
                 "r"(columns), "n"(Group)
                 : "memory");
}

// tcgen05.relinquish_alloc_permit.cta_group::G.sync.aligned;   sm_100f. This CTA allocates no more.
template <int Group>
__device__ inline void tmem_stop_allocating()
{
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(Group));
}

// tcgen05.dealloc.cta_group::G.sync.aligned.b32 tmem, columns;   sm_100f
template <int Group>
__device__ inline void tmem_free(uint32_t tmem, uint32_t columns)
{
    asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(tmem), "r"(columns),
                 "n"(Group)
                 : "memory");
}

// tcgen05.fence::before_thread_sync;   sm_100f. Before synchronising with other threads, for earlier
// tcgen05 accesses.
__device__ inline void tmem_fence_before()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// tcgen05.fence::after_thread_sync;   sm_100f. After synchronising with other threads.
__device__ inline void tmem_fence_after()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// tcgen05.mma.cta_group::G.kind::f16 [d], a, b, instruction, accumulate;   sm_100f. One thread, in a pair
// of the even CTA, starts an MMA over 16 K's.
template <int Group>
__device__ inline void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                   bool accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n"
                 "}" ::"r"(d),
                 "l"(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate)), "n"(Group)
                 : "memory");
}

// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];   sm_100f. Arrives once
// all MMAs that this thread has started are complete.
__device__ inline void tcgen05_commit(uint32_t bar)
{
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar)
                 : "memory");
}

// tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], ctas;
// sm_100f. tcgen05_commit() to the barrier at the same offset in each CTA of the mask.
__device__ inline void tcgen05_commit_multicast(uint32_t bar, uint16_t ctas)
{
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
                 "[%0], %1;" ::"r"(bar),
                 "h"(ctas)
                 : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x8.b32 {v ...}, [tmem];   sm_100f. Each thread loads 8 columns of one of
// the 32 lanes of its warp's quarter.
__device__ inline void tmem_load_x8(float* v, uint32_t tmem)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]),
                   "=f"(v[7])
                 : "r"(tmem)
                 : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x32.b32 {v ...}, [tmem];   sm_100f. Each thread loads 32 columns.
__device__ inline void tmem_load_x32(float* v, uint32_t tmem)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
                 "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]),
                   "=f"(v[7]), "=f"(v[8]), "=f"(v[9]), "=f"(v[10]), "=f"(v[11]), "=f"(v[12]), "=f"(v[13]),
                   "=f"(v[14]), "=f"(v[15]), "=f"(v[16]), "=f"(v[17]), "=f"(v[18]), "=f"(v[19]),
                   "=f"(v[20]), "=f"(v[21]), "=f"(v[22]), "=f"(v[23]), "=f"(v[24]), "=f"(v[25]),
                   "=f"(v[26]), "=f"(v[27]), "=f"(v[28]), "=f"(v[29]), "=f"(v[30]), "=f"(v[31])
                 : "r"(tmem)
                 : "memory");
}

// tcgen05.wait::ld.sync.aligned;   sm_100f. Waits until this thread's loads have finished.
__device__ inline void tmem_wait_load() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

}  // namespace hg::ptx
