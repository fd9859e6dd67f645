// cuBLASLt, found at run time: every algorithm that its heuristic proposes for a product can be run.
#pragma once

#include "cuda_driver.hpp"
#include "data.hpp"

#include <memory>
#include <string>

namespace hg::bench {

class CublasLt {
    struct Functions;

public:
    // Null if there is no cuBLASLt; *why then says so. An empty path means the usual names.
    static std::unique_ptr<CublasLt> load(const std::string& path, test::Memory& memory,
                                          CUstream_st* stream, std::string* why);
    ~CublasLt();

    const std::string& version() const { return version_; }

    // It knows no SiLU, and stores the value before the activation for GELU alone, in lines of eights.
    static bool serves(const Product& product);

    // A product with the algorithms for it, the one that the heuristic thinks best first: fp32 compute, 64
    // MiB of workspace. The CublasLt must outlive it.
    class Algorithms {
    public:
        ~Algorithms();
        size_t count() const;
        // Asynchronous. False if the library refuses.
        bool multiply(size_t which, const Operands& operands) const;

    private:
        friend class CublasLt;
        struct Results;
        explicit Algorithms(const CublasLt& lt);
        void describe(const Product& product);
        void describe_batch(const Product& product);
        void describe_epilogue(const Product& product);
        int point_to(const Operands& operands) const;
        void ask(const std::vector<Operands>& sets, int wanted);

        const CublasLt& lt_;
        float beta_ = 0;
        void *operation_ = nullptr, *first_ = nullptr, *second_ = nullptr, *result_ = nullptr;
        std::unique_ptr<Results> results_;
    };
    // At most `wanted` algorithms that can serve all of the sets.
    std::unique_ptr<Algorithms> algorithms(const Product& product, const std::vector<Operands>& sets,
                                           int wanted) const;

private:
    CublasLt() = default;

    std::unique_ptr<Functions> functions_;
    void* handle_ = nullptr;
    CUstream_st* stream_ = nullptr;
    test::Block workspace_;
    std::string version_;
};

}  // namespace hg::bench
