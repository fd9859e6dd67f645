// A position in a ring of stages, and the parity of the barrier phase that belongs to it. Writers start
// with all stages free (parity 1 of a fresh barrier counts as completed), readers with all stages empty.
#pragma once

#include <cstdint>

namespace hg {

template <int Stages>
struct Ring {
    uint32_t stage = 0;
    uint32_t phase;

    __device__ static Ring writer() { return {0, 1}; }
    __device__ static Ring reader() { return {0, 0}; }

    __device__ void advance()
    {
        if (++stage == Stages) {
            stage = 0;
            phase ^= 1;
        }
    }

    // Skips `count` stages.
    __device__ void advance(uint32_t count)
    {
        const uint32_t sum = stage + count;
        phase ^= sum / Stages & 1;
        stage = sum % Stages;
    }
};

}  // namespace hg
