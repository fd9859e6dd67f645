// Inputs of the instructions that an NVIDIA H200 has executed for us, made again from their seed, and the
// hashes of inputs and of the H200's outputs. Eight classes of numbers: normal, wide exponents, cancelling,
// huge accumulators, subnormal, overflowing, infinities and NaN, integers.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace emu::golden {

enum Form { bf16, f16, f16_result };  // of operands and result: bf16 -> f32, f16 -> f32, f16 -> f16

uint64_t hash(const void* data, size_t bytes);  // FNV-1a

class Inputs {
public:
    explicit Inputs(unsigned seed) : random_(seed) {}

    // One warp a case: 10 registers for each lane, A 4, B 2, C 4.
    static constexpr int mma_cases = 1536;
    std::vector<uint32_t> mma(Form form);

    // m64n128k16, one CTA a case: 48 KiB of shared memory, A in the first 16, each; then 64 registers of
    // accumulators for each of 128 threads. Per case two descriptors, each followed by an offset.
    static constexpr int wgmma_cases = 32, wgmma_shared = 49152;
    struct Wgmma {
        std::vector<uint8_t> memory;
        std::vector<uint64_t> descriptors;  // A's, offset, B's, offset
    };
    Wgmma wgmma(Form form, bool a_transposed, bool b_transposed);

private:
    uint16_t element(bool bf16, int kind);
    float accumulator(int kind);
    uint32_t two_accumulators(int kind);
    float normal();

    std::mt19937 random_;
};

// Input and output, by seed in the order of hardware: 11, 12.
struct Hashes {
    uint64_t input, output;
};
constexpr unsigned seeds[] = {11, 12};
extern const Hashes mma_hashes[2][3];
extern const Hashes wgmma_hashes[2][3][4];  // A and B transposed: 00, 01, 10, 11

// TMA loads: by rank 2 and 3, swizzle none, 32, 64 and 128, full and narrow box.
extern const uint64_t tma_hashes[2][4][2];

}  // namespace emu::golden
