// What becomes of a product: stored as it is, or what an epilogue makes of it.
#pragma once

#include "hgemm.h"

#include <string>
#include <vector>

namespace hg::bench {

// D = activation(A * B + beta * C + bias). Words in one order, joined by '+', are its text; "plain" has
// none.
class Output {
public:
    enum Word : unsigned {
        F32 = 1,    // D and C are fp32, not of the inputs' type
        Beta = 2,   // C, which is D before the call, is added, times 0.5
        Bias = 4,   // a vector over the columns of D is added, of the inputs' type
        Relu = 8,   // the activations exclude each other
        Gelu = 16,  // by tanh
        Silu = 32,
        Aux = 64,         // the value before the activation is stored too, in D's type
        Symmetric = 128,  // B is A, and libhgemm computes one half of D and mirrors it; of others only F32
        Gated = 256       // columns in front gate the others: D is half as wide; beside F32 and activations
    };

    Output() = default;
    // Throws std::runtime_error that names what it does not understand, and what there is.
    explicit Output(const std::string& text);

    std::string text() const;
    bool plain() const { return words_ == 0; }
    // What a library without gates computes instead: the product.
    Output ungated() const;
    bool has(unsigned any_of) const { return (words_ & any_of) != 0; }
    float beta() const { return has(Beta) ? 0.5f : 0.0f; }
    hgemm_activation_t activation() const;
    bool operator==(const Output&) const = default;

private:
    unsigned words_ = 0;
};

}  // namespace hg::bench
