// What the GPU backends share to choose kernels and to fill their parameters.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/sums.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace hg {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline OutputParams pack_output(const Problem& p)
{
    OutputParams o{};
    o.d = base_of<void>(p.d);
    o.d_array = p.d.array;
    o.c = base_of<const void>(p.c);
    o.c_array = const_cast<const void* const*>(p.c.array);
    o.bias = p.bias.ptr;
    o.aux = p.aux.ptr;
    o.ldd = p.d.ld;
    o.ldc = p.c.ld;
    o.ldaux = p.aux.ld;
    o.stride_d = p.d.batch_stride;
    o.stride_c = p.c.batch_stride;
    o.stride_bias = p.bias.batch_stride;
    o.stride_aux = p.aux.batch_stride;
    o.m = p.m;
    o.n = p.n;
    o.alpha_device = p.alpha_device;
    o.beta_device = p.beta_device;
    o.alpha = p.alpha;
    o.beta = p.beta;
    o.type_c = p.c.type;
    o.type_d = p.d.type;
    o.type_bias = p.bias.type;
    o.bias_along = p.bias.along;
    o.activation = p.activation;
    return o;
}

// A problem as the MMA of a kernel sees it: with swap_ab A and B change places, and so do M and N.
struct Mma {
    const Operand &a, &b;
    int64_t m, n;

    Mma(const Problem& p, bool swap_ab)
        : a(swap_ab ? p.b : p.a), b(swap_ab ? p.a : p.b), m(swap_ab ? p.n : p.m), n(swap_ab ? p.m : p.n)
    {
    }
};

// How many entry points a kernel has that comes in f16 and bf16 for each pair of majors.
constexpr int major_variants = 8;

inline int major_variant(Type type, const Operand& a, const Operand& b)
{
    return (type == Type::BF16 ? 4 : 0) + (major_of(a) == Major::MN ? 2 : 0) +
           (major_of(b) == Major::MN ? 1 : 0);
}

inline bool major_symbol(const KernelInfo& kernel, int variant, char (&name)[80])
{
    std::snprintf(name, sizeof name, "%s_%s_%c%c", kernel.name, variant & 4 ? "bf16" : "f16",
                  variant & 2 ? 'm' : 'k', variant & 1 ? 'n' : 'k');
    return true;
}

inline TileGrid pack_grid(const Problem& p, const KernelInfo& kernel, int group)
{
    return tile_grid(static_cast<int32_t>(ceil_div(p.m, kernel.tile_m)),
                     static_cast<int32_t>(ceil_div(p.n, kernel.tile_n)), group);
}

// Tiles are numbered with 32 bits; half of that range leaves room for a grid-stride step.
constexpr int64_t max_tiles = int64_t{1} << 30;

// How many tiles of m x n all problems have, or max_tiles + 1 if that is more than max_tiles.
inline int64_t count_tiles(const Problem& p, int64_t m, int64_t n)
{
    int64_t tiles;
    const bool overflow = __builtin_mul_overflow(ceil_div(p.m, m), ceil_div(p.n, n), &tiles) ||
                          __builtin_mul_overflow(tiles, p.batch, &tiles);
    return overflow || tiles > max_tiles ? max_tiles + 1 : tiles;
}

// The K and the rows of a problem; groups count as having like shares.
inline int64_t expected_k(const Problem& p) { return p.groups.of_k ? ceil_div(p.k, p.batch) : p.k; }
inline int64_t expected_m(const Problem& p) { return p.groups.contiguous() ? ceil_div(p.m, p.batch) : p.m; }

// The most tiles that a problem may have. Only the device knows where contiguous groups end; each may need
// one more tile than its rows would fill.
inline int64_t count_max_tiles(const Problem& p, int64_t m, int64_t n)
{
    if (!p.groups.contiguous())
        return count_tiles(p, m, n);
    Problem rows = p;
    rows.m += std::min(p.batch, p.m) * (m - 1);
    rows.batch = 1;
    return count_tiles(rows, m, n);
}

inline int64_t count_tiles(const Problem& p, const KernelInfo& kernel)
{
    return count_tiles(p, kernel.tile_m, kernel.tile_n);
}

// How many tiles a kernel has that computes the transpose if swap_ab is set.
inline int64_t count_tiles(const Problem& p, int64_t tile_m, int64_t tile_n, bool swap_ab)
{
    return swap_ab ? count_tiles(p, tile_n, tile_m) : count_tiles(p, tile_m, tile_n);
}

inline bool is_forced_away(const Options& options, const KernelInfo& kernel)
{
    return *options.kernel && std::strcmp(options.kernel, kernel.name) != 0;
}

}  // namespace hg
