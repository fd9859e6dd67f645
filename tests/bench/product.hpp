// One matrix product of the benchmark, and the lists of them.
#pragma once

#include "hgemm.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hg::bench {

// D = A * B with D m x n, row-major and of the inputs' type. `layout` says how A and B lie, in the letters
// of column-major BLAS: "t." has A contiguous along k and "n." along m, ".n" has B contiguous along k and
// ".t" along n. So "tn" is D = A * transpose(B) of row-major data.
struct Product {
    int64_t m, n, k;
    hgemm_type_t type;
    std::string layout;

    bool a_along_k() const { return layout[0] == 't'; }
    bool b_along_k() const { return layout[1] == 'n'; }
    int64_t lda() const { return a_along_k() ? k : m; }
    int64_t ldb() const { return b_along_k() ? k : n; }
    double flops() const;
    double bytes() const;  // A, B and D once
    std::string shape() const;
};

// What physics allows on an H200, in microseconds: 800 TFLOP/s, 4.3 TB/s and 2 us for a launch.
double floor_us(const Product& product);

// tiny, gemv, decode, mid, thin-K, deep-K, odd or large.
const char* region_of(const Product& product);

// "MxNxK", several separated by commas.
std::vector<Product> parse_shapes(const std::string& list, hgemm_type_t type, const std::string& layout);

// "square", "llm", "odd" or a file with one MxNxK or M,N,K a line.
std::vector<Product> shape_set(const std::string& name, hgemm_type_t type, const std::string& layout);

}  // namespace hg::bench
