// One matrix product of the benchmark.
#pragma once

#include "hgemm.h"

#include <cstdint>
#include <string>

namespace hg::bench {

// D = A * B with D m x n, row-major and of the inputs' type. `layout` says how A and B lie, in the letters
// of column-major BLAS: "t." has A contiguous along k and "n." along m, ".n" has B contiguous along k and
// ".t" along n. So "tn" is D = A * transpose(B) of row-major data.
struct Product {
    int64_t m, n, k;
    hgemm_type_t type;
    std::string layout;
    int64_t offset = 0;    // elements between an address of 256-byte alignment and A, B and D
    int64_t pad = 0;       // elements between the lines of A, B and D
    std::string set = "";  // the list it was taken from

    bool a_along_k() const { return layout[0] == 't'; }
    bool b_along_k() const { return layout[1] == 'n'; }
    int64_t lda() const { return (a_along_k() ? k : m) + pad; }
    int64_t ldb() const { return (b_along_k() ? k : n) + pad; }
    int64_t ldd() const { return n + pad; }
    int64_t a_span() const { return (a_along_k() ? m : k) * lda(); }  // elements that A occupies
    int64_t b_span() const { return (b_along_k() ? n : k) * ldb(); }
    int64_t d_span() const { return m * ldd(); }
    double flops() const;
    double bytes() const;       // A, B and D once, without what lies between lines
    double intensity() const;   // flops a byte
    std::string shape() const;  // MxNxK, with @offset and +pad where they are not 0
    bool operator==(const Product&) const = default;
};

}  // namespace hg::bench
