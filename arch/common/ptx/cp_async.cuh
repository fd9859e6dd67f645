// Asynchronous copies of sm_80: PTX ISA 9.7.9.25.3.
#pragma once

#include <cstdint>

namespace hg::ptx {

// cp.async.cg.shared.global [dst], [src], 16, ignore_src;   sm_80. Writes 16 zeros, and reads nothing, if
// it does not exist.
__device__ inline void cp_async_cg_16_or_zeros(bool exists, uint32_t dst, const void* src)
{
    asm volatile("{\n"
                 ".reg .pred absent;\n"
                 "setp.eq.u32 absent, %2, 0;\n"
                 "cp.async.cg.shared.global [%0], [%1], 16, absent;\n"
                 "}" ::"r"(dst),
                 "l"(src), "r"(static_cast<uint32_t>(exists))
                 : "memory");
}

// cp.async.cg.shared.global [dst], [src], 16, src_bytes;   sm_80. The rest of the 16 bytes is zeroed. Takes
// six instructions more.
__device__ inline void cp_async_cg_16(uint32_t dst, const void* src, int src_bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(src_bytes)
                 : "memory");
}

// cp.async.commit_group;   sm_80
__device__ inline void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// cp.async.wait_group n;   sm_80
template <int N>
__device__ inline void cp_async_wait_group()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace hg::ptx
