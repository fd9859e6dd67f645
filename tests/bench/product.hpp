// One matrix product of the benchmark.
#pragma once

#include "output.hpp"

#include <cstdint>
#include <string>

namespace hg::bench {

// D = A * B with D m x n, row-major, or what `output` makes of it. `layout` says how A and B lie, in the
// letters of column-major BLAS: "t." has A contiguous along k and "n." along m, ".n" has B contiguous along
// k and ".t" along n. So "tn" is D = A * transpose(B) of row-major data.
struct Product {
    int64_t m, n, k;
    hgemm_type_t type;
    std::string layout;
    int64_t offset = 0;    // elements between an address of 256-byte alignment and each operand
    int64_t pad = 0;       // elements between the lines of A, B, D and aux
    std::string set = "";  // the list it was taken from
    Output output{};

    hgemm_type_t type_d() const { return output.has(Output::F32) ? HGEMM_F32 : type; }  // of C and aux too
    bool a_along_k() const { return layout[0] == 't'; }
    bool b_along_k() const { return layout[1] == 'n'; }
    int64_t lda() const { return (a_along_k() ? k : m) + pad; }
    int64_t ldb() const { return (b_along_k() ? k : n) + pad; }
    int64_t ldd() const { return n + pad; }
    int64_t a_span() const { return (a_along_k() ? m : k) * lda(); }  // elements that A occupies
    int64_t b_span() const { return (b_along_k() ? n : k) * ldb(); }
    int64_t d_span() const { return m * ldd(); }
    int64_t results() const
    {
        return output.has(Output::Aux) ? 2 : 1;
    }  // that are stored, each of d_span()
    double flops() const;
    double bytes() const;       // what is read and written once, without what lies between lines
    double intensity() const;   // flops a byte
    std::string shape() const;  // MxNxK, with @offset, +pad and the output where they are not plain
    bool operator==(const Product&) const = default;
};

}  // namespace hg::bench
