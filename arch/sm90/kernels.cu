// Entry points: those of each line of kernels.def, named <kernel>_<type>_<majors>. The majors are k or m
// for the contiguous dimension of A, then k or n for that of B; an x stands for either major of A, which
// the parameters then tell. They are xk and xn for a KERNEL and a TREE that split K, and kk, kn, mk and mn
// for all others. For a GROUPED they are kk and kn, where groups are rows, and mn, where they divide K, for
// a TRIANGLE kk and mn, for a GATED and a GATED_GROUPED kk, or kk and kn. For FEW_ROWS, whose A is the B of
// the problem, it is xk, for GATED_FEW_ROWS kk. A DIRECT or GEMV has the major of A alone, k or m.
// sm90_repack serves both types.
//
// Compiled for each type and part (parts.hpp), side by side: HGEMM_TYPE is f16 or bf16, and of the macros
// IN_<part> one is TAKE and the others are SKIP.
#include "arch/sm90/direct/config.hpp"
#include "arch/sm90/direct/gemv.cuh"
#include "arch/sm90/direct/kernel.cuh"
#include "arch/sm90/params.hpp"
#include "arch/sm90/parts.hpp"
#include "arch/sm90/persistent/grouped.cuh"
#include "arch/sm90/persistent/kernel.cuh"
#include "arch/sm90/repack.cuh"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/kernel.cuh"

using namespace hg;

extern __shared__ __align__(1024) unsigned char dynamic_smem[];

#define TAKE(macro, ...) macro(__VA_ARGS__)
#define SKIP(...)
// Two steps, so that a part is its name before it is pasted.
#define IN_(part) IN_##part
#define IN(part)  IN_(part)

template <sm90::Config C, Type T, Major MA, Major MB>
__device__ inline void run(const sm90::Params& p)
{
    auto& smem = *reinterpret_cast<sm90::Smem<C, MB>*>(dynamic_smem);
    if constexpr (C.is_split())
        sm90::run_split<C, T, MA, MB>(p, smem);
    else
        sm90::run_persistent<C, T, MA, MB>(p, smem);
}

template <sm90::Config C, Type T, Major MA, Major MB>
__device__ inline void run_grouped(const sm90::Params& p)
{
    auto& smem = *reinterpret_cast<sm90::Smem<C, MB>*>(dynamic_smem);
    sm90::run_groups<C, T, MA, MB>(p, smem);
}

template <sm90::DirectConfig C, Type T, Major MA>
__device__ inline void run_direct(const sm90::DirectParams& p)
{
    auto& smem = *reinterpret_cast<sm90::DirectSmem<C>*>(dynamic_smem);
    if constexpr (sm90::is_gemv(C))
        sm90::run_gemv<C, T>(p, smem);
    else
        sm90::run_direct<C, T, MA>(p, smem);
}

[[maybe_unused]] constexpr Type f16 = Type::F16, bf16 = Type::BF16;

// Two steps, so that HGEMM_TYPE is its value before it is pasted.
#define NAME_(name, type, majors) name##_##type##_##majors
#define NAME(name, type, majors)  NAME_(name, type, majors)

// ENTRY(kernel, majors, parameters, function that runs it, template arguments after config and type)
#define ENTRY(name, majors, parameters, function, ...)                                                     \
    extern "C" __global__ void __launch_bounds__(name##_config.threads(), name##_config.ctas_per_sm)       \
        NAME(name, HGEMM_TYPE, majors)(const __grid_constant__ sm90::parameters p)                         \
    {                                                                                                      \
        function<name##_config, HGEMM_TYPE, __VA_ARGS__>(p);                                               \
    }

// The entry points of a product's kernel, by its schedule.
#define ENTRIES_ALL_MAJORS(name)                                                                           \
    ENTRY(name, kk, Params, run, Major::K, Major::K)                                                       \
    ENTRY(name, kn, Params, run, Major::K, Major::MN)                                                      \
    ENTRY(name, mk, Params, run, Major::MN, Major::K)                                                      \
    ENTRY(name, mn, Params, run, Major::MN, Major::MN)
#define ENTRIES_EITHER_MAJOR(name)                                                                         \
    ENTRY(name, xk, Params, run, sm90::either_major, Major::K)                                             \
    ENTRY(name, xn, Params, run, sm90::either_major, Major::MN)
#define ENTRIES_Cooperative  ENTRIES_ALL_MAJORS
#define ENTRIES_PingPong     ENTRIES_ALL_MAJORS
#define ENTRIES_SplitK       ENTRIES_EITHER_MAJOR
#define ENTRIES_SplitKGlobal ENTRIES_EITHER_MAJOR

#define KERNEL_ENTRIES(name, schedule, ...)                                                                \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__};                           \
    ENTRIES_##schedule(name)

#define GROUPED_ENTRIES(name, schedule, ...)                                                               \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__};                           \
    ENTRY(name, kk, Params, run_grouped, Major::K, Major::K)                                               \
    ENTRY(name, kn, Params, run_grouped, Major::K, Major::MN)                                              \
    ENTRY(name, mn, Params, run_grouped, Major::MN, Major::MN)

#define TRIANGLE_ENTRIES(name, schedule, ...)                                                              \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__, true};                     \
    ENTRY(name, kk, Params, run, Major::K, Major::K)                                                       \
    ENTRY(name, mn, Params, run, Major::MN, Major::MN)

#define TREE_ENTRIES(name, schedule, ...)                                                                  \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__, false, sm90::Gates::None,  \
                                         true};                                                            \
    ENTRIES_##schedule(name)

#define GATED_k(name, function) ENTRY(name, kk, Params, function, Major::K, Major::K)
#define GATED_both(name, function)                                                                         \
    GATED_k(name, function) ENTRY(name, kn, Params, function, Major::K, Major::MN)

#define GATED_ENTRIES(name, majors, gates, schedule, ...)                                                  \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__, false,                     \
                                         sm90::Gates::gates};                                              \
    GATED_##majors(name, run)

#define GATED_GROUPED_ENTRIES(name, majors, schedule, ...)                                                 \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__, false,                     \
                                         sm90::Gates::AlongN};                                             \
    GATED_##majors(name, run_grouped)

#define FEW_ROWS_ENTRIES(name, schedule, ...)                                                              \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__, false,                     \
                                         sm90::Gates::None,        false,       true};                     \
    ENTRY(name, xk, Params, run, sm90::either_major, Major::K)

#define GATED_FEW_ROWS_ENTRIES(name, schedule, ...)                                                        \
    constexpr sm90::Config name##_config{sm90::Schedule::schedule, __VA_ARGS__, false,                     \
                                         sm90::Gates::AlongM,      false,       true};                     \
    ENTRY(name, kk, Params, run, Major::K, Major::K)

#define DIRECT_k(name)    ENTRY(name, k, DirectParams, run_direct, Major::K)
#define DIRECT_m(name)    ENTRY(name, m, DirectParams, run_direct, Major::MN)
#define DIRECT_both(name) DIRECT_k(name) DIRECT_m(name)

#define DIRECT_ENTRIES(name, majors, ...)                                                                  \
    constexpr sm90::DirectConfig name##_config{__VA_ARGS__};                                               \
    DIRECT_##majors(name)

#define REPACK(name)                                                                                       \
    extern "C" __global__ void __launch_bounds__(repack_threads, repack_ctas_per_sm)                       \
        name(const __grid_constant__ RepackParams p)                                                       \
    {                                                                                                      \
        sm90::run_repack(p);                                                                               \
    }

#define KERNEL(name, schedule, tile_m, ...)                                                                \
    IN(PART_OF_##schedule##_##tile_m)(KERNEL_ENTRIES, name, schedule, tile_m, __VA_ARGS__)
#define GROUPED(...)        IN_other(GROUPED_ENTRIES, __VA_ARGS__)
#define TRIANGLE(...)       IN_other(TRIANGLE_ENTRIES, __VA_ARGS__)
#define TREE(...)           IN_other(TREE_ENTRIES, __VA_ARGS__)
#define GATED_GROUPED(...)  IN_other(GATED_GROUPED_ENTRIES, __VA_ARGS__)
#define GATED(...)          IN_other(GATED_ENTRIES, __VA_ARGS__)
#define FEW_ROWS(...)       IN_other(FEW_ROWS_ENTRIES, __VA_ARGS__)
#define GATED_FEW_ROWS(...) IN_other(GATED_FEW_ROWS_ENTRIES, __VA_ARGS__)
#define DIRECT(...)         IN_other(DIRECT_ENTRIES, __VA_ARGS__)
#define GEMV(...)           IN_other(DIRECT_ENTRIES, __VA_ARGS__)

#include "arch/sm90/kernels.def"

IN_other(REPACK, sm90_repack)
