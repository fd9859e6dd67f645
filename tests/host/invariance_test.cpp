// Batch-invariant mode on the host, through the public functions: the bits of a row of a large product, and
// of the same row in all other products that have it.
#include "hgemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

constexpr int64_t all_rows = 600;

struct InvariantForm {
    hgemm_type_t type;
    hgemm_layout_t layout;
    hgemm_op_t transa, transb;
    int64_t n, k;
};

// op(X) is rows x columns, and its elements (i, j) are those of `values`. Lies at an odd address.
class InvariantMatrix {
public:
    InvariantMatrix(const InvariantForm& f, hgemm_op_t op, int64_t rows, int64_t columns, int64_t gap)
        : by_rows_((f.layout == HGEMM_ROW_MAJOR) == (op == HGEMM_NO_TRANS)),
          ld((by_rows_ ? columns : rows) + gap), memory_(1 + (by_rows_ ? rows : columns) * ld, 0x7fff)
    {
    }
    uint16_t& at(int64_t i, int64_t j) { return memory_[1 + (by_rows_ ? i * ld + j : j * ld + i)]; }
    uint16_t* data() { return memory_.data() + 1; }

private:
    const bool by_rows_;

public:
    const int64_t ld;

private:
    std::vector<uint16_t> memory_;
};

class Invariance : public testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_EQ(hgemm_create_on(&handle_, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        ASSERT_EQ(hgemm_set_mode(handle_, HGEMM_MODE_BATCH_INVARIANT), HGEMM_STATUS_SUCCESS);
    }
    void TearDown() override { hgemm_destroy(handle_); }

    // Rows [first, first + m) of A, times B; elements of D by row and column. `batch` times, all the same.
    std::vector<float> product(const InvariantForm& f, int64_t first, int64_t m, int64_t batch = 1,
                               int64_t gap = 0)
    {
        InvariantMatrix a(f, f.transa, m, f.k, gap), b(f, f.transb, f.k, f.n, gap + 1);
        for (int64_t p = 0; p < f.k; ++p) {
            for (int64_t i = 0; i < m; ++i)
                a.at(i, p) = element(f.type, (first + i) * f.k + p);
            for (int64_t j = 0; j < f.n; ++j)
                b.at(p, j) = element(f.type, 1000003 + j * f.k + p);
        }
        const bool by_rows = f.layout == HGEMM_ROW_MAJOR;
        std::vector<float> d(batch * m * f.n, NAN), sorted;
        hgemm_args_t args;
        hgemm_args_init(&args, sizeof args);
        args.layout = f.layout, args.transa = f.transa, args.transb = f.transb;
        args.type_ab = f.type, args.type_d = HGEMM_F32;
        args.m = m, args.n = f.n, args.k = f.k;
        args.a = a.data(), args.lda = a.ld;
        args.b = b.data(), args.ldb = b.ld;
        args.d = d.data(), args.ldd = by_rows ? f.n : m;
        args.batch_count = batch, args.stride_d = m * f.n;
        EXPECT_EQ(hgemm_gemm_ex(handle_, &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        for (int64_t z = 0; z < batch; ++z)
            for (int64_t i = 0; i < m; ++i)
                for (int64_t j = 0; j < f.n; ++j)
                    sorted.push_back(d[z * m * f.n + (by_rows ? i * f.n + j : j * m + i)]);
        return sorted;
    }

    // Numbers of all sizes between 2^-8 and 2^7.
    static uint16_t element(hgemm_type_t type, int64_t index)
    {
        const uint64_t bits = (static_cast<uint64_t>(index) + 1) * 0x9e3779b97f4a7c15u >> 20;
        return static_cast<uint16_t>(type == HGEMM_F16 ? (7 + bits % 16) << 10 | (bits >> 8 & 0x83ff)
                                                       : (119 + bits % 16) << 7 | (bits >> 8 & 0x807f));
    }

    void expect_rows_of(const InvariantForm& f, const std::vector<float>& whole, int64_t first, int64_t m,
                        int64_t batch = 1, int64_t gap = 0)
    {
        const std::vector<float> part = product(f, first, m, batch, gap);
        for (int64_t z = 0; z < batch; ++z)
            for (int64_t e = 0; e < m * f.n; ++e)
                ASSERT_EQ(part[z * m * f.n + e], whole[first * f.n + e])
                    << m << " rows from " << first << ", n " << f.n << ", k " << f.k << ", problem " << z
                    << ", element " << e;
    }

    hgemm_handle_t handle_ = nullptr;
};

constexpr hgemm_type_t both_types[] = {HGEMM_F16, HGEMM_BF16};

TEST_F(Invariance, EveryNumberOfRows)
{
    for (const hgemm_type_t type : both_types) {
        const InvariantForm f{type, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 37, 1031};
        const std::vector<float> whole = product(f, 0, all_rows);
        for (int64_t m = 1; m <= all_rows; ++m) {
            hgemm_set_sm_count(handle_, 1 + static_cast<int>(m % 2));
            expect_rows_of(f, whole, m % 5 * (all_rows - m) / 4, m, 1, m % 3);
        }
    }
}

TEST_F(Invariance, EveryLayout)
{
    for (const hgemm_type_t type : both_types)
        for (const hgemm_layout_t layout : {HGEMM_ROW_MAJOR, HGEMM_COL_MAJOR})
            for (const hgemm_op_t transa : {HGEMM_NO_TRANS, HGEMM_TRANS})
                for (const hgemm_op_t transb : {HGEMM_NO_TRANS, HGEMM_TRANS})
                    for (const int64_t k : {1, 77, 513}) {
                        // The same numbers in all layouts.
                        const InvariantForm f{type, layout, transa, transb, 45, k};
                        const InvariantForm other{type, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 45,
                                                  k};
                        const std::vector<float> whole = product(other, 0, 200);
                        for (const int64_t m : {1, 2, 8, 9, 33, 200})
                            expect_rows_of(f, whole, 200 - m, m);
                        expect_rows_of(f, whole, 3, 5, 7);
                    }
}

// Columns of B too, down to a matrix times a vector.
TEST_F(Invariance, EveryNumberOfColumns)
{
    for (const hgemm_type_t type : both_types)
        for (const hgemm_layout_t layout : {HGEMM_ROW_MAJOR, HGEMM_COL_MAJOR}) {
            InvariantForm f{type, layout, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 700, 301};
            const std::vector<float> whole = product(f, 0, 130);
            for (const int64_t n : {1, 2, 7, 8, 9, 64, 65, 513}) {
                f.n = n;
                const std::vector<float> part = product(f, 0, 130);
                for (int64_t i = 0; i < 130; ++i)
                    for (int64_t j = 0; j < n; ++j)
                        ASSERT_EQ(part[i * n + j], whole[i * 700 + j])
                            << n << " columns: " << i << ", " << j;
            }
        }
}

TEST_F(Invariance, MatrixTimesVector)
{
    const int64_t m = 333, n = 1025;
    for (const hgemm_type_t type : both_types)
        for (const bool transposed : {false, true})
            for (const int64_t increment : {1, 3}) {
                const int64_t rows = transposed ? n : m, depth = transposed ? m : n;
                std::vector<uint16_t> a(m * n), x(depth * increment), y(rows, 0x7fff), d(rows * 2, 0x7fff),
                    b;
                for (size_t i = 0; i < a.size(); ++i)
                    a[i] = element(type, static_cast<int64_t>(i));
                for (int64_t p = 0; p < depth; ++p)
                    x[p * increment] = element(type, -p - 2), b.push_back(x[p * increment]);
                b.resize(2 * depth, x[0]);
                const auto gemv =
                    type == HGEMM_F16 ? (transposed ? hgemv_t : hgemv_n) : (transposed ? bgemv_t : bgemv_n);
                ASSERT_EQ(gemv(handle_, m, n, 1, a.data(), m, x.data(), increment, 0, y.data(), 1),
                          HGEMM_STATUS_SUCCESS);
                ASSERT_EQ((type == HGEMM_F16 ? hgemm : bgemm)(handle_, HGEMM_COL_MAJOR,
                                                              transposed ? HGEMM_TRANS : HGEMM_NO_TRANS,
                                                              HGEMM_NO_TRANS, rows, 2, depth, 1, a.data(),
                                                              m, b.data(), depth, 0, d.data(), rows),
                          HGEMM_STATUS_SUCCESS);
                for (int64_t i = 0; i < rows; ++i)
                    ASSERT_EQ(y[i], d[i]) << "row " << i;
            }
}

TEST_F(Invariance, Groups)
{
    const InvariantForm f{HGEMM_BF16, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 40, 333};
    const std::vector<float> whole = product(f, 0, 100);
    std::vector<uint16_t> a, b;
    for (int64_t e = 0; e < 100 * f.k; ++e)
        a.push_back(element(f.type, e));
    for (int64_t e = 0; e < f.n * f.k; ++e)
        b.push_back(element(f.type, 1000003 + e));
    for (const std::vector<int64_t>& offsets :
         {std::vector<int64_t>{0, 1, 10, 10, 100}, std::vector<int64_t>{0, 64, 65, 98, 100}}) {
        std::vector<float> d(100 * f.n, NAN);
        hgemm_grouped_args_t args;
        hgemm_grouped_args_init(&args, sizeof args);
        args.type_ab = f.type, args.type_d = HGEMM_F32;
        args.group_count = 4;
        args.m = 100, args.n = f.n, args.k = f.k;
        args.a = a.data(), args.lda = f.k;
        args.b = b.data(), args.ldb = f.k;
        args.d = d.data(), args.ldd = f.n;
        args.offsets = offsets.data();
        ASSERT_EQ(hgemm_grouped_ex(handle_, &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_EQ(d, whole);
    }
}

// A subnormal number or NaN in another row changes which instructions multiply, and not the bits.
TEST_F(Invariance, OtherRowsMayHoldWhatIsRare)
{
    const int64_t n = 50, k = 640;
    std::vector<uint16_t> a(2 * k), b(n * k);
    for (int64_t p = 0; p < k; ++p)
        a[p] = a[k + p] = element(HGEMM_BF16, p);
    for (int64_t e = 0; e < n * k; ++e)
        b[e] = element(HGEMM_BF16, e + 5000);
    std::vector<uint16_t> wanted(2 * n), got(2 * n);
    const auto run = [&](std::vector<uint16_t>& d) {
        EXPECT_EQ(bgemm(handle_, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 2, n, k, 1, a.data(), k,
                        b.data(), k, 0, d.data(), n),
                  HGEMM_STATUS_SUCCESS);
    };
    run(wanted);
    for (const uint16_t rare : {0x0001, 0x807f, 0x7fc0, 0x7f80, 0x0080})
        for (const int64_t place : {0, 511, 639}) {
            const uint16_t usual = std::exchange(a[k + place], rare);
            run(got);
            a[k + place] = usual;
            for (int64_t j = 0; j < n; ++j)
                ASSERT_EQ(got[j], wanted[j]) << "column " << j;
        }
}

}  // namespace
}  // namespace hg::test
