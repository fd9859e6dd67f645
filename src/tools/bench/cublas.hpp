// cublasGemmEx, for a batch cublasGemmStridedBatchedEx, found at run time: nothing of cuBLAS is needed to
// build.
#pragma once

#include "src/tools/bench/data.hpp"
#include "src/tools/support/cuda_driver.hpp"

#include <memory>
#include <string>

namespace hg::bench {

class Cublas {
public:
    // Null if there is no cuBLAS; *why then says so. An empty path means the usual names.
    static std::unique_ptr<Cublas> load(const std::string& path, test::Memory& memory, CUstream_st* stream,
                                        std::string* why);
    ~Cublas();

    // It counts in ints, and stores nothing but alpha * A * B + beta * C.
    static bool serves(const Product& product);
    // Default algorithm, fp32 compute, 64 MiB of workspace.
    void multiply(const Product& product, const Operands& operands);
    const std::string& version() const { return version_; }

private:
    struct Functions;
    Cublas() = default;

    std::unique_ptr<Functions> functions_;
    void* handle_ = nullptr;
    test::Block workspace_;
    std::string version_;
};

}  // namespace hg::bench
