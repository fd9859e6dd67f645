// Registers, addresses and shared memory of a warp.
#pragma once

#include <cstdint>

namespace hg::ptx {

// setmaxnreg.dec.sync.aligned.u32 n;   sm_90a, PTX ISA 9.7.20.5
template <int N>
__device__ inline void setmaxnreg_dec()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

// setmaxnreg.inc.sync.aligned.u32 n;   sm_90a
template <int N>
__device__ inline void setmaxnreg_inc()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// mov.u32 value, %tid.x; and %ctaid.x;   sm_20. Read here: threadIdx and blockIdx may be kept from before.
__device__ inline uint32_t read_thread()
{
    uint32_t value;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(value));
    return value;
}
__device__ inline uint32_t read_block()
{
    uint32_t value;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(value));
    return value;
}

// The 32-bit shared address of a generic pointer into shared memory.
__device__ inline uint32_t shared_address(const void* pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ld.shared.u32 value, [address];   sm_20
__device__ inline uint32_t load_shared_u32(uint32_t address)
{
    uint32_t value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

// ld.shared.v4.f32 v, [address];   sm_20
__device__ inline float4 load_shared_f32x4(uint32_t address)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}

// cvta.to.shared.u64 + cvt.u32.u64;   sm_20. shared_address(), computed once: volatile keeps the compiler
// from computing it again inside a loop, from special registers that are slow to read.
__device__ inline uint32_t shared_address_once(const void* pointer)
{
    uint32_t address;
    asm volatile("{\n"
                 ".reg .u64 wide;\n"
                 "cvta.to.shared.u64 wide, %1;\n"
                 "cvt.u32.u64 %0, wide;\n"
                 "}"
                 : "=r"(address)
                 : "l"(pointer));
    return address;
}

// mov.b32 value, value;   sm_20. Returns `value`; volatile keeps the compiler from computing it again
// inside a loop, and from computing earlier what follows from it.
__device__ inline uint32_t mov_b32(uint32_t value)
{
    asm volatile("mov.b32 %0, %0;" : "+r"(value));
    return value;
}

// ld.shared.v2.f32 v, [address];   sm_20
__device__ inline float2 load_shared_f32x2(uint32_t address)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
    return v;
}

// st.shared.v2.f32 [address], {x, y};   sm_20
__device__ inline void store_shared_f32x2(uint32_t address, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}

// mov.f32 copy, value;   sm_20. Volatile keeps the compiler from replacing branches by selects.
__device__ inline float mov_f32(float value)
{
    float copy;
    asm volatile("mov.f32 %0, %1;" : "=f"(copy) : "f"(value));
    return copy;
}

// mov.u32 lane, %laneid;   sm_20
__device__ inline uint32_t lane_id()
{
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// elect.sync _|elected, 0xffffffff;   sm_90, PTX ISA 9.7.13.14. One lane of a whole warp.
__device__ inline bool elect_one()
{
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(elected));
    return elected != 0;
}

}  // namespace hg::ptx
