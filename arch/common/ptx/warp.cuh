// Registers and addresses of a warp.
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

// The 32-bit shared address of a generic pointer into shared memory.
__device__ inline uint32_t shared_address(const void* pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace hg::ptx
