// Entry points: one for each line of kernels.def, with its name.
#include "arch/sm100/kernel.cuh"

using namespace hg;

extern __shared__ __align__(1024) unsigned char dynamic_smem[];

#define KERNEL(name, schedule, ...)                                                                        \
    constexpr sm100::Config name##_config{sm100::Schedule::schedule, __VA_ARGS__};                         \
    extern "C" __global__ void __launch_bounds__(name##_config.threads(), 1)                               \
        name(const __grid_constant__ sm100::Params p)                                                      \
    {                                                                                                      \
        sm100::run<name##_config>(p, *reinterpret_cast<sm100::Smem<name##_config>*>(dynamic_smem));        \
    }

#include "arch/sm100/kernels.def"
