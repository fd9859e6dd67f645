// One matrix product of the benchmark, or a batch of such.
#pragma once

#include "src/tools/bench/output.hpp"

#include <cstdint>
#include <string>

namespace hg::bench {

// D = A * B with D m x n, row-major, or what `output` makes of it. `layout` says how A and B lie, in the
// letters of column-major BLAS: "t." has A contiguous along k and "n." along m, ".n" has B contiguous along
// k and ".t" along n. So "tn" is D = A * transpose(B) of row-major data.
//
// The problems of a batch follow each other: A, B and D of one end where those of the next begin.
struct Product {
    int64_t m, n, k;
    hgemm_type_t type;
    std::string layout;
    int64_t offset = 0;    // elements between an address of 256-byte alignment and each operand
    int64_t pad = 0;       // elements between the lines of A, B, D and aux
    std::string set = "";  // the list it was taken from
    Output output{};
    int64_t batch = 1;

    hgemm_type_t type_d() const { return output.has(Output::F32) ? HGEMM_F32 : type; }  // of C and aux too
    bool a_along_k() const { return layout[0] == 't'; }
    bool b_along_k() const { return layout[1] == 'n'; }
    int64_t lda() const { return (a_along_k() ? k : m) + pad; }
    int64_t ldb() const { return (b_along_k() ? k : n) + pad; }
    int64_t columns() const { return output.has(Output::Gated) ? n / 2 : n; }  // of D
    int64_t ldd() const { return columns() + pad; }
    int64_t a_stride() const { return (a_along_k() ? m : k) * lda(); }  // elements from problem to problem
    int64_t b_stride() const { return (b_along_k() ? n : k) * ldb(); }
    int64_t d_stride() const { return m * ldd(); }
    int64_t a_span() const { return batch * a_stride(); }  // elements that all of A occupies
    int64_t b_span() const { return batch * b_stride(); }
    int64_t d_span() const { return batch * d_stride(); }
    // The same without gates, which is what other libraries compute.
    Product ungated() const
    {
        Product product = *this;
        product.output = output.ungated();
        return product;
    }
    int64_t rows() const { return batch * m; }  // of all D, lines of ldd() one after the other
    int64_t results() const
    {
        return output.has(Output::Aux) ? 2 : 1;
    }                           // that are stored, each of d_span()
    double flops() const;       // that are needed: half of them where D is symmetric
    double bytes() const;       // what is read and written once, without what lies between lines
    double intensity() const;   // flops a byte
    std::string shape() const;  // MxNxK, with xBATCH, @offset, +pad and the output where they are not plain
    bool operator==(const Product&) const = default;
};

}  // namespace hg::bench
