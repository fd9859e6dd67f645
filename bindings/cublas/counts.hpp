// Counts served and passed-on calls, by function and reason, and prints the summary.
#pragma once

#include "route.hpp"

#include <string>

namespace hg::shim {

enum class Product {
#define HGEMM_REAL(library, name, type) name,
#include "products.def"
#undef HGEMM_REAL
    count
};

const char* name_of(Product product);

// What became of a call.
struct Outcome {
    Reason reason;
    bool refused;         // in strict mode, or failed
    bool left_to_cublas;  // a half-precision product in batch-invariant mode with cuBLAS's bits
};

// Returns whether it is the first one that was refused for its reason.
bool count(Product product, const Outcome& outcome);
void reset_counts();

// Several lines, without the last newline; empty if nothing was called.
std::string summary();

}  // namespace hg::shim
