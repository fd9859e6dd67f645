// Barriers: mbarrier (PTX ISA 9.7.13.15), named CTA barriers (9.7.13.1) and the fences that go with
// them (9.7.13.4). Shared addresses are 32-bit.
#pragma once

#include <cstdint>

namespace hg::ptx {

// mbarrier.init.shared::cta.b64 [bar], count;   sm_80
__device__ inline void mbarrier_init(uint32_t bar, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

// fence.mbarrier_init.release.cluster;   sm_90
__device__ inline void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// mbarrier.arrive.shared::cta.b64 _, [bar];   sm_80
__device__ inline void mbarrier_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

// mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], bytes;   sm_90
__device__ inline void mbarrier_arrive_expect_tx(uint32_t bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

// mbarrier.try_wait.parity.shared::cta.b64 done, [bar], parity;   sm_90
__device__ inline bool mbarrier_try_wait_parity(uint32_t bar, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

// mbarrier.test_wait.parity.shared::cta.b64 done, [bar], parity;   sm_80
__device__ inline bool mbarrier_test_wait_parity(uint32_t bar, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

// Waits until the phase with this parity has completed.
__device__ inline void mbarrier_wait_parity(uint32_t bar, uint32_t parity)
{
    while (!mbarrier_try_wait_parity(bar, parity)) {
    }
}

// bar.sync id, threads;   sm_20
__device__ inline void bar_sync(uint32_t id, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// bar.red.and.pred all, id, threads, one;   sm_20. Returns whether `one` holds for all threads.
__device__ inline bool bar_red_and(uint32_t id, uint32_t threads, bool one)
{
    uint32_t all;
    asm volatile("{\n"
                 ".reg .pred one, all;\n"
                 "setp.ne.u32 one, %3, 0;\n"
                 "bar.red.and.pred all, %1, %2, one;\n"
                 "selp.u32 %0, 1, 0, all;\n"
                 "}"
                 : "=r"(all)
                 : "r"(id), "r"(threads), "r"(static_cast<uint32_t>(one))
                 : "memory");
    return all;
}

// fence.proxy.async.shared::cta;   sm_90. Generic writes to shared memory become visible to TMA and wgmma.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace hg::ptx
