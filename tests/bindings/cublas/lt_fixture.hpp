// One cublasLtMatmul, D = 2 * A * B + C, that a test changes before it calls it.
#pragma once

#include "shim_fixture.hpp"

#include <memory>

namespace hg::test {

class LtShim : public Shim {
protected:
    void SetUp() override
    {
        Shim::SetUp();
        cublasLtMatmulDescCreate(&desc_, shim::compute_32f, shim::r_32f);
        const auto layout = [](void** out, const DeviceMatrix& x, int64_t rows, int64_t columns) {
            cublasLtMatrixLayoutCreate(out, shim::r_16f, static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(columns), x.ld());
        };
        layout(&a_, o_.a, o_.size.m, o_.size.k);
        layout(&b_, o_.b, o_.size.k, o_.size.n);
        layout(&c_, o_.c, o_.size.m, o_.size.n);
        layout(&d_, d_matrix_, o_.size.m, o_.size.n);
    }
    void TearDown() override
    {
        cublasLtMatmulDescDestroy(desc_);
        for (void* layout : {a_, b_, c_, d_})
            cublasLtMatrixLayoutDestroy(layout);
        Shim::TearDown();
    }

    template <typename T>
    void set(int attribute, T value)
    {
        ASSERT_EQ(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof value), 0) << attribute;
    }
    template <typename T>
    static void set_layout(void* layout, int attribute, T value)
    {
        ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value), 0)
            << attribute;
    }
    int multiply(const shim::LtAlgorithm* algorithm = nullptr, const Block* workspace = nullptr,
                 void* stream = nullptr) const
    {
        return cublasLtMatmul(handle_, desc_, &o_.alpha, o_.a.ptr(), a_, o_.b.ptr(), b_, &o_.beta,
                              o_.c.ptr(), c_, d_matrix_.ptr(), d_, algorithm,
                              workspace ? workspace->get() : nullptr, workspace ? workspace->bytes() : 0,
                              stream);
    }

    DeviceMemory device_{*Cuda::get()};
    Operands o_{device_, {}};
    DeviceMatrix d_matrix_{device_, HGEMM_F16, o_.size.m, o_.size.n, 1, 4};
    void *desc_ = nullptr, *a_ = nullptr, *b_ = nullptr, *c_ = nullptr, *d_ = nullptr;
};

}  // namespace hg::test
