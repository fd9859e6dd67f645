// How split-K kernels store a gated D: a tile of floats in shared memory has gates in its first half along
// D's rows, and behind it what they gate.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// A thread's vectors of a tile: one in every step-th row of D.
template <Config C>
struct GatedVectors {
    static constexpr bool along_m = C.gates == Gates::AlongM;
    static constexpr int half = C.gates_of_tile(), vectors = half / epilogue_vector;
    static constexpr int rows = along_m ? C.tile_n : C.tile_m, step = 128 * C.consumers / vectors;
    static constexpr int pitch = staged_pitch(C.tile_m, C.tile_n, along_m);
    static_assert(half % epilogue_vector == 0);

    int64_t i0, j;
    int first, end, vector;

    __device__ GatedVectors(const Params& p, const TileCoord& at)
        : i0(along_m ? at.n : at.m), first(static_cast<int>(threadIdx.x) / vectors),
          vector(static_cast<int>(threadIdx.x) % vectors)
    {
        j = (along_m ? at.m : at.n) / 2 + vector * epilogue_vector;
        const bool exists = j < p.output.n / 2 && first < step;
        end = exists ? static_cast<int>(min(int64_t{rows}, p.output.m - i0)) : 0;
    }
};

// Stores the rows of D that the CTA owns: with gates along N all of them.
template <Config C, Type T>
__device__ inline void store_gated_rows(const Params& p, const Scalars& s, const float* staged,
                                        const OwnedBlocks& owned, const TileCoord& at)
{
    using V = GatedVectors<C>;
    const V own(p, at);
    const int64_t row_bytes = 2 * p.output.ldd;
    char* const d =
        static_cast<char*>(p.output.d) + 2 * (at.batch * p.output.stride_d + own.j) + own.i0 * row_bytes;
    with_short_gate_function(p.output.activation, p.gate.gate.slope, [&](auto activation) {
#pragma unroll 1
        for (int r = own.first; r < own.end; r += V::step) {
            if (V::along_m && !owned.has(r / 8))
                continue;
            const float* const sums = staged + r * V::pitch + own.vector * epilogue_vector;
            float gates[8], others[8];
            load_vector<T>(gates, sums, Type::F32);
            load_vector<T>(others, sums + V::half, Type::F32);
#pragma unroll
            for (int e = 0; e < 8; ++e)
                gates[e] = gated(__fmul_rn(s.alpha, gates[e]), __fmul_rn(s.alpha, others[e]), p.gate.gate,
                                 activation);
            store_vector<T>(gates, d + r * row_bytes, T);
        }
    });
}

}  // namespace hg::sm90
