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

// Counts a call: served, passed on, or refused in strict mode. Returns whether it is the first one that was
// refused for that reason.
bool count(Product product, Reason reason, bool is_half, bool refused);
void reset_counts();

// Several lines, without the last newline; empty if nothing was called.
std::string summary();

}  // namespace hg::shim
