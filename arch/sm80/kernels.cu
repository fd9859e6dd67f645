// Entry points: one for each line of kernels.def, type and pair of majors, named
// <kernel>_<type>[_<majors>]: k or m for the contiguous dimension of A, then k or n for that of B. Those
// for groups of rows, whose A is K-major, end in _groups.
#include "arch/sm80/general.cuh"

using namespace hg;

extern __shared__ __align__(128) unsigned char dynamic_smem[];

// At least one CTA per SM: without a bound ptxas spills to fit one more.
#define ENTRY(name, config, body)                                                                          \
    extern "C" __global__ void __launch_bounds__((config).threads(), 1)                                    \
        name(const __grid_constant__ sm80::Params p)                                                       \
    {                                                                                                      \
        body(p, *reinterpret_cast<sm80::Smem<config>*>(dynamic_smem));                                     \
    }

#define TILE_MAJORS(name, config, type)                                                                    \
    ENTRY(name##_kk, config, (sm80::run_tile<config, type, Major::K, Major::K>))                           \
    ENTRY(name##_kn, config, (sm80::run_tile<config, type, Major::K, Major::MN>))                          \
    ENTRY(name##_mk, config, (sm80::run_tile<config, type, Major::MN, Major::K>))                          \
    ENTRY(name##_mn, config, (sm80::run_tile<config, type, Major::MN, Major::MN>))                         \
    ENTRY(name##_kk_groups, config,                                                                        \
          (sm80::run_tile<config, type, Major::K, Major::K, sm80::GroupedTiles>))                         \
    ENTRY(name##_kn_groups, config,                                                                        \
          (sm80::run_tile<config, type, Major::K, Major::MN, sm80::GroupedTiles>))

#define TILE(name, ...)                                                                                    \
    constexpr sm80::Config name##_config{__VA_ARGS__, false};                                              \
    TILE_MAJORS(name##_f16, name##_config, Type::F16)                                                      \
    TILE_MAJORS(name##_bf16, name##_config, Type::BF16)

#define ANY_OF(name, config, type)                                                                         \
    ENTRY(name, config, (sm80::run_general_tile<config, type>))                                            \
    ENTRY(name##_groups, config, (sm80::run_general_tile<config, type, sm80::GroupedTiles>))

#define ANY(name, ...)                                                                                     \
    constexpr sm80::Config name##_config{__VA_ARGS__, true};                                               \
    ANY_OF(name##_f16, name##_config, Type::F16)                                                           \
    ANY_OF(name##_bf16, name##_config, Type::BF16)

#include "arch/sm80/kernels.def"
