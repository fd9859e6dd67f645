// GemmCase: the description of a GEMM for everything that runs one. It says what hgemm_args_t says, but as
// differences from the simplest call, so that a case needs no addresses.
#pragma once

#include "buffer.hpp"
#include "hgemm.h"

#include <string>

namespace hg::test {

// How a matrix is stored.
struct Place {
    int64_t gap = 0;    // elements between lines: ld - the smallest legal ld
    int64_t shift = 0;  // elements from the last 16-byte boundary
    int64_t step = 1;   // between problems: 0 none; else the matrix's span + |step| - 1, with step's sign
};

enum class Batch { Single, Strided, Arrays };

enum class Data {
    Integers,    // -2 ... 2: every sum is exact in fp32 and independent of its order
    Normal,      // N(0, 1)
    Wide,        // magnitudes from 2^-7 to 2^7
    Cancelling,  // the second half of k takes away nearly all that the first half adds
};

struct GemmCase {
    hgemm_layout_t layout = HGEMM_COL_MAJOR;
    hgemm_op_t transa = HGEMM_NO_TRANS, transb = HGEMM_NO_TRANS;
    hgemm_type_t type_ab = HGEMM_F16, type_c = HGEMM_F16, type_d = HGEMM_F16;
    int64_t m = 1, n = 1, k = 1;
    float alpha = 1, beta = 0;
    bool device_scalars = false;
    bool in_place = true;  // C is D, described by d
    Place a, b, c, d, aux_place;
    // Every line and problem begins at a multiple of 16 bytes, as the fastest kernels need it: leading
    // dimensions and strides are rounded up, shifts are 0.
    bool aligned = false;
    Batch batch = Batch::Single;
    int64_t batch_count = 1;
    hgemm_bias_t bias = HGEMM_BIAS_NONE;
    hgemm_type_t bias_type = HGEMM_F32;
    int64_t bias_step = 0;
    hgemm_activation_t activation = HGEMM_ACTIVATION_NONE;
    bool aux = false;
    // Not NONE: m = n, and the data of B are those of A, so that D without C is symmetric.
    hgemm_uplo_t uplo = HGEMM_UPLO_NONE;
    hgemm_gate_t gate = {};  // with a block D has half as many columns, or rows if it is column-major
    Guard guard = Guard::Pads;
    Data data = Data::Integers;
    uint64_t seed = 1;

    // Are rows of op(A), op(B) or D contiguous (else columns)?
    bool a_by_rows() const { return (layout == HGEMM_ROW_MAJOR) == (transa == HGEMM_NO_TRANS); }
    bool b_by_rows() const { return (layout == HGEMM_ROW_MAJOR) == (transb == HGEMM_NO_TRANS); }
    bool d_by_rows() const { return layout == HGEMM_ROW_MAJOR; }

    bool multiplies() const { return alpha != 0 && k > 0; }
    bool is_gated() const { return gate.block != 0; }

    int64_t rows_of_d() const { return is_gated() && !d_by_rows() ? m / 2 : m; }
    int64_t columns_of_d() const { return is_gated() && d_by_rows() ? n / 2 : n; }

    Extent extent_a() const { return extent(m, k, a_by_rows(), a); }
    Extent extent_b() const { return extent(k, n, b_by_rows(), b); }
    Extent extent_c() const { return extent(m, n, d_by_rows(), c); }
    Extent extent_d() const { return extent(rows_of_d(), columns_of_d(), d_by_rows(), d); }
    Extent extent_aux() const { return extent(m, n, d_by_rows(), aux_place); }
    Extent extent_bias() const;
    int64_t shift(const Place& place) const { return aligned ? 0 : place.shift; }

    // One line of text from which the case can be built again.
    std::string print() const;

private:
    Extent extent(int64_t rows, int64_t columns, bool by_rows, const Place& place) const;
};

const char* name_of(Data data);

}  // namespace hg::test
