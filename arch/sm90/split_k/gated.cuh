// How split-K kernels store a gated D: a tile of floats in shared memory has gates in its first half along
// D's rows, and behind it their up elements.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/bias.cuh"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/staging.cuh"

#include <cstdint>

namespace hg::sm90 {

// A thread's vectors of a tile: one in every step-th row of D. Computed before the main loop: afterwards
// all threads would wait for the parameters.
template <Config C, bool = C.is_gated()>
struct GatedVectors {
    template <Major MB>
    __device__ GatedVectors(const Params&, const Smem<C, MB>&)  // without gates there is nothing
    {
    }
};

template <Config C>
struct GatedVectors<C, true> {
    static constexpr bool along_m = C.gates == Gates::AlongM;
    static constexpr int half = C.gates_of_tile(), vectors = half / epilogue_vector;
    static constexpr int rows = along_m ? C.tile_n : C.tile_m, step = 128 * C.consumers / vectors;
    static constexpr int pitch = staged_pitch(C.tile_m, C.tile_n, along_m);
    static_assert(half % epilogue_vector == 0);

    char* d;  // of the vector in the tile's first row
    int64_t row_bytes;
    int first, end;  // rows of the tile
    int vector;
    Gate gate;
    Activation activation;
    bool biased;

    template <Major MB>
    __device__ GatedVectors(const Params& p, const Smem<C, MB>& smem)
        : row_bytes(2 * p.output.ldd), first(static_cast<int>(threadIdx.x) / vectors),
          vector(static_cast<int>(threadIdx.x) % vectors), gate{0, pinned(p.gate.gate.limit),
                                                                pinned(p.gate.gate.slope),
                                                                pinned(p.gate.gate.offset)},
          activation(static_cast<Activation>(ptx::mov_b32(static_cast<uint32_t>(p.output.activation)))),
          biased(ptx::mov_b32(p.output.bias_along != BiasAlong::None) != 0)
    {
        const TileCoord& at = smem.at;
        const int64_t i = along_m ? at.n : at.m, j = (along_m ? at.m : at.n) / 2 + vector * epilogue_vector;
        d = static_cast<char*>(p.output.d) + 2 * (at.batch * p.output.stride_d + i * p.output.ldd + j);
        const bool exists = j < p.output.n / 2 && first < step;
        end = exists ? static_cast<int>(min(int64_t{rows}, end_of_rows(p, smem) - i)) : 0;
    }

    __device__ static float pinned(float value)
    {
        return __uint_as_float(ptx::mov_b32(__float_as_uint(value)));
    }

    // The bias of the thread's gates and up elements, or what changes no sum.
    struct Bias {
        float gates[8], others[8];

        __device__ Bias(const Params& p, const TileCoord& at, const GatedVectors& vectors)
        {
#pragma unroll
            for (int e = 0; e < 8; ++e)
                gates[e] = others[e] = -0.0f;
            if (!vectors.biased || vectors.end == 0) [[likely]]
                return;
            const GateBias bias(p, at.batch);
            const int64_t j = (along_m ? at.m : at.n) / 2 + vectors.vector * epilogue_vector;
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                gates[e] = bias.load(j + e, 0);
                others[e] = bias.load(j + e, 1);
            }
        }
    };

    // Stores the rows of D that the CTA owns: with gates along N all of them.
    template <Type T>
    __device__ void store(const Params& p, const TileCoord& at, float alpha, const float* staged,
                          const OwnedBlocks& owned) const
    {
        const Bias bias(p, at, *this);
        with_short_gate_function(activation, gate.slope, [&](auto function) {
#pragma unroll 1
            for (int r = first; r < end; r += step) {
                if (along_m && !owned.has(r / 8))
                    continue;
                const float* const sums = staged + r * pitch + vector * epilogue_vector;
                float gates[8], others[8];
                load_vector<T>(gates, sums, Type::F32);
                load_vector<T>(others, sums + half, Type::F32);
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    gates[e] =
                        gated(__fadd_rn(__fmul_rn(alpha, gates[e]), bias.gates[e]),
                              __fadd_rn(__fmul_rn(alpha, others[e]), bias.others[e]), gate, function);
                store_vector<T>(gates, d + r * row_bytes, T);
            }
        });
    }
};

}  // namespace hg::sm90
