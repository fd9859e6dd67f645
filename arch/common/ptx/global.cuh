// Global memory: words by which CTAs synchronise or exchange sums (PTX ISA 9.7.9.8, 9.7.9.11, 9.7.13.5),
// prefetch (9.7.9.15).
#pragma once

#include <cstdint>

namespace hg::ptx {

// ld.acquire.gpu.global.u32 value, [word];   sm_70
__device__ inline uint32_t load_acquire_gpu(const uint32_t* word)
{
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

// atom.add.acq_rel.gpu.global.u32 before, [word], value;   sm_70
__device__ inline uint32_t atomic_add_acq_rel_gpu(uint32_t* word, uint32_t value)
{
    uint32_t before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(word), "r"(value)
                 : "memory");
    return before;
}

// ld.relaxed.gpu.global.u32 value, [word];   sm_70
__device__ inline uint32_t load_relaxed_gpu(const uint32_t* word)
{
    uint32_t value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

// st.relaxed.gpu.global.u32 [word], value;   sm_70
__device__ inline void store_relaxed_gpu(uint32_t* word, uint32_t value)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// st.global.v4.u32 [words], value;   sm_20. Always one instruction; nvcc may store a struct with four.
__device__ inline void store_global_v4(uint4* words, const uint4& v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(words), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

// ld.global.cg.v4.u32 value, [words];   sm_20 (9.7.9.8). Bypasses L1: for data that is read once.
__device__ inline uint4 load_global_cg_v4(const void* words)
{
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(words)
                 : "memory");
    return v;
}

// ld.relaxed.gpu.global.v4.u32 value, [words];   sm_70. Each of the four words is atomic by itself.
__device__ inline uint4 load_relaxed_gpu_v4(const uint4* words)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(words)
                 : "memory");
    return v;
}

// st.relaxed.gpu.global.v4.u32 [words], value;   sm_70. Each of the four words is atomic by itself.
__device__ inline void store_relaxed_gpu_v4(uint4* words, const uint4& v)
{
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(words), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}

// atom.add.relaxed.gpu.global.u32 before, [word], value;   sm_70
__device__ inline uint32_t atomic_add_relaxed_gpu(uint32_t* word, uint32_t value)
{
    uint32_t before;
    asm volatile("atom.add.relaxed.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(word), "r"(value)
                 : "memory");
    return before;
}

// atom.cas.relaxed.gpu.global.b32 before, [word], expected, value;   sm_70
__device__ inline uint32_t atomic_cas_relaxed_gpu(uint32_t* word, uint32_t expected, uint32_t value)
{
    uint32_t before;
    asm volatile("atom.cas.relaxed.gpu.global.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(word), "r"(expected), "r"(value)
                 : "memory");
    return before;
}

// prefetch.global.L2 [address];   sm_50
__device__ inline void prefetch_l2(const void* address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

}  // namespace hg::ptx
