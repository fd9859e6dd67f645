// `hgemm-bench compare`: the library beside cublasGemmEx on the GPU, both checked first.
#pragma once

#include "product.hpp"

#include <string>
#include <vector>

namespace hg::bench {

struct CompareOptions {
    std::vector<Product> products;
    int pairs;
    std::string csv;     // file to write, "" for none
    std::string cublas;  // path of libcublas, "" for the usual names
};

// Prints a table and a summary; 0 if every result was right.
int compare(const CompareOptions& options);

}  // namespace hg::bench
