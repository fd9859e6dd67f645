// Matrix fragments between shared memory and registers: PTX ISA 9.7.14.5.15 and 9.7.14.5.16.
#pragma once

#include <cstdint>

namespace hg::ptx {

// ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r0, r1, r2, r3}, [address];   sm_75
__device__ inline void ldmatrix_x4(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {r0, r1, r2, r3}, [address];   sm_75
__device__ inline void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// stmatrix.sync.aligned.m8n8.x4.shared.b16 [address], {r0, r1, r2, r3};   sm_90
__device__ inline void stmatrix_x4(uint32_t address, const uint32_t (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

// stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [address], {r0, r1, r2, r3};   sm_90
__device__ inline void stmatrix_x4_trans(uint32_t address, const uint32_t (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

// stmatrix.sync.aligned.m8n8.x2.shared.b16 [address], {r0, r1};   sm_90
__device__ inline void stmatrix_x2(uint32_t address, uint32_t r0, uint32_t r1)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(r0), "r"(r1)
                 : "memory");
}

// stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [address], {r0, r1};   sm_90
__device__ inline void stmatrix_x2_trans(uint32_t address, uint32_t r0, uint32_t r1)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(r0),
                 "r"(r1)
                 : "memory");
}

}  // namespace hg::ptx
