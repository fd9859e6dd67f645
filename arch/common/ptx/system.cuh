// Words by which GPUs synchronise (PTX ISA 9.7.9.8, 9.7.13.4 to 9.7.13.6), and the device's clock (10.26).
#pragma once

#include <cstdint>

namespace hg::ptx {

// ld.acquire.sys.global.u32 value, [word];   sm_70
__device__ inline uint32_t load_acquire_system(const uint32_t* word)
{
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

// red.release.sys.global.add.u32 [word], value;   sm_70. Needs no answer, so that no round trip is waited
// for where the word lies in a peer.
__device__ inline void add_release_system(uint32_t* word, uint32_t value)
{
    asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// mov.u64 now, %globaltimer;   sm_30. Nanoseconds, in steps of up to a microsecond.
__device__ inline uint64_t nanoseconds()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

}  // namespace hg::ptx
