// Operands of one product in device memory: small whole numbers, so that every result is exact.
#pragma once

#include "cublas.hpp"
#include "src/tools/support/memory.hpp"
#include "src/tools/support/number.hpp"

#include <functional>
#include <vector>

namespace hg::test {

// A column-major matrix, or several behind one another.
class DeviceMatrix {
public:
    DeviceMatrix(Memory& memory, hgemm_type_t type, int64_t rows, int64_t columns, int64_t batch,
                 uint64_t seed);
    void* ptr(int64_t problem = 0) const;
    Block pointers(Memory& memory) const;  // to all of them, in device memory, the last one first
    int64_t ld() const { return rows_ + 3; }
    int64_t stride() const { return ld() * columns_ + 5; }
    double at(int64_t problem, int64_t row, int64_t column) const;  // what it held at first
    std::vector<unsigned char> now() const;
    double at(const std::vector<unsigned char>& image, int64_t problem, int64_t row, int64_t column) const;

private:
    size_t place(int64_t problem, int64_t row, int64_t column) const;

    hgemm_type_t type_;
    int64_t rows_, columns_, batch_;
    std::vector<unsigned char> image_;
    Block block_;
};

struct Sizes {
    int64_t m = 24, n = 17, k = 40, batch = 1;
};

struct Operands {
    Operands(Memory& memory, const Sizes& sizes, int transa = 0, int transb = 0, int type_ab = shim::r_16f,
             int type_d = shim::r_16f);

    Sizes size;
    int transa, transb, type_ab, type_d;
    DeviceMatrix a, b, c;
    float alpha = 2, beta = 1;
    const uint16_t half_alpha = 0x4000, half_beta = 0x3c00;  // the same

    double sum(int64_t problem, int64_t row, int64_t column) const;  // of op(A) * op(B)
    double expected(int64_t problem, int64_t row, int64_t column) const
    {
        return alpha * sum(problem, row, column) + beta * c.at(problem, row, column);
    }
    // Elements of C that are not factor * expected().
    int64_t wrong(double factor = 1) const;
    // Elements of `d` that are not value(row, column), as near as its type allows.
    int64_t wrong(const DeviceMatrix& d, const std::function<double(int64_t, int64_t)>& value) const;

    int gemm_ex(void* handle, int compute = shim::compute_32f, int algorithm = 99,
                shim::GemmEx<int>* gemm = cublasGemmEx) const;
};

}  // namespace hg::test
