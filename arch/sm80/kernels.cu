// Entry points: one for each line of kernels.def, type and pair of majors, named
// <kernel>_<type>[_<majors>]: k or m for the contiguous dimension of A, then k or n for that of B. Those
// for groups of rows, whose A is K-major, end in _groups, those for groups of K in _k_groups, and those
// with gates, whose A is K-major too, in _gates and _gated_groups. The others, from sm80_repack
// on, serve all types.
#include "arch/common/exchange/add.cuh"
#include "arch/common/exchange/config.hpp"
#include "arch/common/experts/clear.cuh"
#include "arch/common/experts/config.hpp"
#include "arch/common/experts/route.cuh"
#include "arch/common/experts/rows.cuh"
#include "arch/common/gate/apply.cuh"
#include "arch/common/gate/config.hpp"
#include "arch/common/gate/gradient.cuh"
#include "arch/common/repack/config.hpp"
#include "arch/common/repack/copy.cuh"
#include "arch/common/tree/config.hpp"
#include "arch/common/tree/sum.cuh"
#include "arch/common/triangle/config.hpp"
#include "arch/common/triangle/move.cuh"
#include "arch/sm80/any.cuh"
#include "arch/sm80/config.hpp"
#include "arch/sm80/unaligned.cuh"

using namespace hg;

extern __shared__ __align__(128) unsigned char dynamic_smem[];

#define ENTRY(name, config, body)                                                                          \
    extern "C" __global__ void __launch_bounds__((config).threads(), (config).min_ctas())                  \
        name(const __grid_constant__ sm80::Params p)                                                       \
    {                                                                                                      \
        body(p, *reinterpret_cast<sm80::Smem<config>*>(dynamic_smem));                                     \
    }

#define TILE_ENTRY(name, config, type, major_a, major_b, body)                                             \
    ENTRY(name, config, (sm80::body<config, type, Major::major_a, Major::major_b>))
#define GROUPS_ENTRY(name, config, type, major_b)                                                          \
    ENTRY(name, config, (sm80::run_tile<config, type, Major::K, Major::major_b, sm80::GroupedTiles>))

#define ROWS(name, config, type, body)                                                                     \
    TILE_ENTRY(name##_kk, config, type, K, K, body) TILE_ENTRY(name##_kn, config, type, K, MN, body)
#define COLUMNS(name, config, type, body)                                                                  \
    TILE_ENTRY(name##_kk, config, type, K, K, body) TILE_ENTRY(name##_mk, config, type, MN, K, body)
#define TILES(name, config, type, body)                                                                    \
    ROWS(name, config, type, body)                                                                         \
    TILE_ENTRY(name##_mk, config, type, MN, K, body) TILE_ENTRY(name##_mn, config, type, MN, MN, body)

#define Tile_OF(name, config, type)             TILES(name, config, type, run_tile)
#define Rows_OF(name, config, type)             ROWS(name, config, type, run_tile)
#define Columns_OF(name, config, type)          COLUMNS(name, config, type, run_tile)
#define Unaligned_OF(name, config, type)        TILES(name, config, type, run_unaligned_tile)
#define UnalignedRows_OF(name, config, type)    ROWS(name, config, type, run_unaligned_tile)
#define UnalignedColumns_OF(name, config, type) COLUMNS(name, config, type, run_unaligned_tile)
#define GATED_ENTRIES(name, config, type, major_b)                                                         \
    ENTRY(name##_gates, config,                                                                            \
          (sm80::run_tile<config, type, Major::K, Major::major_b, sm80::Gated<sm80::PlainTiles>>))         \
    ENTRY(name##_gated_groups, config,                                                                     \
          (sm80::run_tile<config, type, Major::K, Major::major_b, sm80::Gated<sm80::GroupedTiles>>))
#define Grouped_OF(name, config, type)                                                                     \
    Tile_OF(name, config, type) GROUPS_ENTRY(name##_kk_groups, config, type, K)                            \
        GROUPS_ENTRY(name##_kn_groups, config, type, MN) GATED_ENTRIES(name##_kk, config, type, K)         \
            GATED_ENTRIES(name##_kn, config, type, MN)                                                     \
                ENTRY(name##_mn_k_groups, config,                                                          \
                      (sm80::run_tile<config, type, Major::MN, Major::MN, sm80::KGroupedTiles>))
#define Any_OF(name, config, type)                                                                         \
    ENTRY(name, config, (sm80::run_any_tile<config, type>))                                                \
    ENTRY(name##_groups, config, (sm80::run_any_tile<config, type, sm80::GroupedTiles>))                   \
    ENTRY(name##_k_groups, config, (sm80::run_any_tile<config, type, sm80::KGroupedTiles>))

#define KERNEL(family, name, ...)                                                                          \
    constexpr sm80::Config name##_config{sm80::Family::family, __VA_ARGS__};                               \
    family##_OF(name##_f16, name##_config, Type::F16) family##_OF(name##_bf16, name##_config, Type::BF16)

#include "arch/sm80/kernels.def"

extern "C" __global__ void __launch_bounds__(repack_threads, repack_ctas_per_sm)
    sm80_repack(const __grid_constant__ RepackParams p)
{
    copy_operands(p);
}

extern "C" __global__ void __launch_bounds__(tree_threads, tree_ctas_per_sm)
    sm80_tree(const __grid_constant__ TreeSumParams p)
{
    sum_leaves(p, *reinterpret_cast<TreeShared*>(dynamic_smem));
}

extern "C" __global__ void __launch_bounds__(triangle_threads, triangle_ctas_per_sm)
    sm80_triangle(const __grid_constant__ TriangleParams p)
{
    move_triangle(p, dynamic_smem);
}

extern "C" __global__ void __launch_bounds__(gate_threads, gate_ctas_per_sm)
    sm80_gate(const __grid_constant__ GateParams p)
{
    apply_gates(p);
}

extern "C" __global__ void __launch_bounds__(gate_threads, gate_ctas_per_sm)
    sm80_gate_gradient(const __grid_constant__ GateGradientParams p)
{
    differentiate_gates(p);
}

extern "C" __global__ void __launch_bounds__(exchange_threads)
    sm80_exchange(const __grid_constant__ ExchangeParams p)
{
    exchange(p);
}

extern "C" __global__ void __launch_bounds__(route_threads)
    sm80_route(const __grid_constant__ RouteParams p)
{
    route(p, *reinterpret_cast<RouteShared*>(dynamic_smem));
}

extern "C" __global__ void __launch_bounds__(rows_threads, rows_ctas_per_sm)
    sm80_gather(const __grid_constant__ RowsParams p)
{
    gather_rows(p);
}

extern "C" __global__ void __launch_bounds__(rows_threads, rows_ctas_per_sm)
    sm80_combine(const __grid_constant__ RowsParams p)
{
    combine_rows(p);
}

extern "C" __global__ void __launch_bounds__(rows_threads, dot_ctas_per_sm)
    sm80_dot(const __grid_constant__ RowsParams p)
{
    dot_rows(p);
}

extern "C" __global__ void __launch_bounds__(rows_threads) sm80_clear(const __grid_constant__ ClearParams p)
{
    clear_rows(p);
}
