// Entry points: one for each line of kernels.def, type and pair of majors, named <kernel>_<type>_<majors>:
// k or m for the contiguous dimension of A, then k or n for that of B.
#include "arch/sm120/kernel.cuh"

using namespace hg;

extern __shared__ __align__(1024) unsigned char dynamic_smem[];

#define ENTRY(name, config, type, major_a, major_b)                                                        \
    extern "C" __global__ void __launch_bounds__((config).threads(), (config).ctas_per_sm)                 \
        name(const __grid_constant__ sm120::Params p)                                                      \
    {                                                                                                      \
        sm120::run<config, type, major_a, major_b>(p,                                                      \
                                                   *reinterpret_cast<sm120::Smem<config>*>(dynamic_smem)); \
    }

#define MAJORS(name, config, type)                                                                         \
    ENTRY(name##_kk, config, type, Major::K, Major::K)                                                     \
    ENTRY(name##_kn, config, type, Major::K, Major::MN)                                                    \
    ENTRY(name##_mk, config, type, Major::MN, Major::K)                                                    \
    ENTRY(name##_mn, config, type, Major::MN, Major::MN)

#define KERNEL(name, ...)                                                                                  \
    constexpr sm120::Config name##_config{__VA_ARGS__};                                                    \
    MAJORS(name##_f16, name##_config, Type::F16)                                                           \
    MAJORS(name##_bf16, name##_config, Type::BF16)

#include "arch/sm120/kernels.def"
