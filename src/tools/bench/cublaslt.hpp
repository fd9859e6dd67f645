// cuBLASLt, found at run time: what its heuristic proposes for a product can be run, and every
// configuration of an algorithm.
#pragma once

#include "src/tools/bench/data.hpp"
#include "src/tools/support/cuda_driver.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hg::bench {
namespace cublaslt {
struct Algorithm;
}

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

    // How an algorithm is to run: ids of cublasLt.h, and into how many slices K is split.
    struct Configuration {
        int id;
        uint32_t tile, stages;
        int32_t split;
        uint32_t swizzle;

        // id21/tile=128x64/stages=64x6/split=4/swizzle=0: the tile's lines are the library's, which
        // computes transpose(D); a stage holds 64 elements of k, and there are 6. Numbers for what has no
        // name here.
        std::string text() const;
    };

    // A product with algorithms for it: fp32 compute, 64 MiB of workspace. The CublasLt must outlive it.
    class Algorithms {
    public:
        ~Algorithms();
        size_t count() const;
        const Configuration& configuration(size_t which) const;  // of what configurations() has found
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
        void enumerate(const Product& product, const std::vector<Operands>& sets, int id);
        void add_if_accepted(const cublaslt::Algorithm& initial, const Configuration& configuration);

        const CublasLt& lt_;
        float beta_ = 0;
        void *operation_ = nullptr, *first_ = nullptr, *second_ = nullptr, *result_ = nullptr;
        std::unique_ptr<Results> results_;
    };
    // At most `wanted` algorithms that can serve all of the sets, the one that the heuristic thinks best
    // first.
    std::unique_ptr<Algorithms> algorithms(const Product& product, const std::vector<Operands>& sets,
                                           int wanted) const;

    // The ids of all algorithms that the library has for operands of the product's types.
    std::vector<int> ids(const Product& product) const;
    // Every tile, number of stages, split and swizzle of these algorithms that cublasLtMatmulAlgoCheck
    // accepts for the product, and that the sets are aligned for.
    std::unique_ptr<Algorithms> configurations(const Product& product, const std::vector<Operands>& sets,
                                               const std::vector<int>& ids) const;

private:
    CublasLt() = default;

    std::unique_ptr<Functions> functions_;
    void* handle_ = nullptr;
    CUstream_st* stream_ = nullptr;
    test::Block workspace_;
    std::string version_;
};

}  // namespace hg::bench
