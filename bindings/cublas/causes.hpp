// Why an element of cuBLAS's result differs from libhgemm's, as far as the shim can tell: what is known of
// cuBLAS (DIFFERENCES.md), beside the call and both values.
#pragma once

#include "counts.hpp"

#include <array>
#include <vector>

namespace hg::shim {

enum class Cause { Pointers, Alpha, RoundsTwice, HalfSums, Gelu, Misaligned, Unknown, count };
constexpr size_t cause_count = static_cast<size_t>(Cause::count);
const char* text_of(Cause cause);

// Of each cause, the elements that differ.
using CauseCounts = std::array<uint64_t, cause_count>;

// One element of both results.
struct Pair {
    size_t problem;
    float ours, theirs;
};

// Is C in the place of D, beta = 1 and D of 16 bits, so that cuBLAS may have rounded twice?
bool may_round_twice(const hgemm_args_t& args);
// round(product + c), where the product has been rounded before.
float round_again(const hgemm_args_t& args, float product, float c);

class Causes {
public:
    // Reads pointer arrays and an alpha that lie on the device.
    Causes(Product product, const hgemm_args_t& args, void* stream);
    Cause of(const Pair& pair, bool rounds_twice) const;

private:
    void read_device(void* stream);

    const hgemm_args_t& args_;
    bool half_sums_, misaligned_, alpha_is_0_ = false;
    std::vector<bool> off_;  // which problems of pointer arrays have one that TMA cannot address
};

}  // namespace hg::shim
