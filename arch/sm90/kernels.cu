// Entry points: one for each row of kernels.def and pair of majors, named <row>_<type>_<xy> with k or m for
// the contiguous dimension of x and k or n for that of y. Before them sm90_repack, behind them those of
// grouped.def, whose x is contiguous along k, and of direct.def, where y has no letter.
//
// Compiled once for each type, as HGEMM_TYPE = f16 or bf16: two images are compiled in half the time.
#include "arch/sm90/direct_lines.cuh"
#include "arch/sm90/groups.cuh"
#include "arch/sm90/repack.cuh"
#include "arch/sm90/split.cuh"

using namespace hg;

extern __shared__ __align__(1024) unsigned char dynamic_smem[];

extern "C" __global__ void __launch_bounds__(sm90::repack_threads, sm90::repack_residents)
    sm90_repack(const __grid_constant__ sm90::RepackParams p)
{
    sm90::run_repack(p);
}

template <sm90::Config C, Type T, Major MX, Major MY>
__device__ inline void run(const sm90::Params& p)
{
    auto& smem = *reinterpret_cast<sm90::Smem<C, MY>*>(dynamic_smem);
    if constexpr (C.is_split())
        sm90::run_split<C, T, MX, MY>(p, smem);
    else
        sm90::run_persistent<C, T, MX, MY>(p, smem);
}

template <sm90::DirectConfig C, Type T, Major M>
__device__ inline void run(const sm90::DirectParams& p)
{
    auto& smem = *reinterpret_cast<sm90::DirectSmem<C>*>(dynamic_smem);
    if constexpr (sm90::takes_lines(C))
        sm90::run_direct_lines<C, T>(p, smem);
    else
        sm90::run_direct<C, T, M>(p, smem);
}

#define ENTRY(name, config, type, major_x, major_y)                                                        \
    extern "C" __global__ void __launch_bounds__((config).threads(), (config).residents)                   \
        name(const __grid_constant__ sm90::Params p)                                                       \
    {                                                                                                      \
        run<config, type, major_x, major_y>(p);                                                            \
    }

[[maybe_unused]] constexpr Type f16 = Type::F16, bf16 = Type::BF16;

#define MAJORS(name, config, type)                                                                         \
    ENTRY(name##_kk, config, type, Major::K, Major::K)                                                     \
    ENTRY(name##_kn, config, type, Major::K, Major::MN)                                                    \
    ENTRY(name##_mk, config, type, Major::MN, Major::K)                                                    \
    ENTRY(name##_mn, config, type, Major::MN, Major::MN)

#define MAJORS_OF_TYPE(name, type) MAJORS(name##_##type, name##_config, type)
#define MAJORS_OF(name, type)      MAJORS_OF_TYPE(name, type)

#define KERNEL(name, kind, ...)                                                                            \
    constexpr sm90::Config name##_config{sm90::Kind::kind, __VA_ARGS__};                                   \
    MAJORS_OF(name, HGEMM_TYPE)

#include "arch/sm90/kernels.def"

#define GROUPED_ENTRY(name, config, type, major_y)                                                         \
    extern "C" __global__ void __launch_bounds__((config).threads(), (config).residents)                   \
        name(const __grid_constant__ sm90::Params p)                                                       \
    {                                                                                                      \
        auto& smem = *reinterpret_cast<sm90::Smem<config, major_y>*>(dynamic_smem);                        \
        sm90::run_groups<config, type, Major::K, major_y>(p, smem);                                        \
    }

#define GROUPED_OF_TYPE(name, type)                                                                        \
    GROUPED_ENTRY(name##_##type##_kk, name##_config, type, Major::K)                                       \
    GROUPED_ENTRY(name##_##type##_kn, name##_config, type, Major::MN)
#define GROUPED_OF(name, type) GROUPED_OF_TYPE(name, type)

#define GROUPED(name, kind, ...)                                                                           \
    constexpr sm90::Config name##_config{sm90::Kind::kind, __VA_ARGS__};                                   \
    GROUPED_OF(name, HGEMM_TYPE)

#include "arch/sm90/grouped.def"

#define DIRECT_ENTRY(name, config, type, major_x)                                                          \
    extern "C" __global__ void __launch_bounds__((config).threads(), (config).residents)                   \
        name(const __grid_constant__ sm90::DirectParams p)                                                 \
    {                                                                                                      \
        run<config, type, major_x>(p);                                                                     \
    }

#define DIRECT_K_OF_TYPE(name, type) DIRECT_ENTRY(name##_##type##_k, name##_config, type, Major::K)
#define DIRECT_M_OF_TYPE(name, type) DIRECT_ENTRY(name##_##type##_m, name##_config, type, Major::MN)
#define DIRECT_K_OF(name, type)      DIRECT_K_OF_TYPE(name, type)
#define DIRECT_M_OF(name, type)      DIRECT_M_OF_TYPE(name, type)

#define DIRECT_K(name, ...)                                                                                \
    constexpr sm90::DirectConfig name##_config{__VA_ARGS__};                                               \
    DIRECT_K_OF(name, HGEMM_TYPE)

#define DIRECT_M(name, ...)                                                                                \
    constexpr sm90::DirectConfig name##_config{__VA_ARGS__};                                               \
    DIRECT_M_OF(name, HGEMM_TYPE)

#define DIRECT(name, ...)                                                                                  \
    DIRECT_K(name, __VA_ARGS__)                                                                            \
    DIRECT_M_OF(name, HGEMM_TYPE)

#include "arch/sm90/direct.def"
