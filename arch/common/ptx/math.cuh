// Arithmetic of single instructions: PTX ISA 9.7.3.
#pragma once

namespace hg::ptx {

// ex2.approx.ftz.f32 d, a;   sm_20, PTX ISA 9.7.3.21. 2^a within 2 ulp.
__device__ inline float ex2_approx_ftz(float a)
{
    float d;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}

// rcp.approx.ftz.f32 d, a;   sm_20, PTX ISA 9.7.3.13. 1 / a within 1 ulp.
__device__ inline float rcp_approx_ftz(float a)
{
    float d;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}

// min.NaN.f32 d, a, b;   sm_80, PTX ISA 9.7.3.11. NaN if one of them is.
__device__ inline float min_nan(float a, float b)
{
    float d;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}

// max.NaN.f32 d, a, b;   sm_80, PTX ISA 9.7.3.12. NaN if one of them is.
__device__ inline float max_nan(float a, float b)
{
    float d;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}

}  // namespace hg::ptx
