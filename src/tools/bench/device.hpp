// What `compare` and `kernels` measure on: the GPU with a timer, the baselines that were found, memory.
#pragma once

#include "src/tools/bench/baseline.hpp"
#include "src/tools/bench/check.hpp"
#include "src/tools/bench/cublas.hpp"
#include "src/tools/bench/cublaslt.hpp"
#include "src/tools/bench/data.hpp"
#include "src/tools/bench/gpu_timer.hpp"
#include "src/tools/bench/measurement.hpp"
#include "src/tools/bench/nvml.hpp"
#include "src/tools/support/memory.hpp"

#include <chrono>
#include <map>

namespace hg::bench {

struct DeviceOptions {
    std::string cublas, cublaslt;  // paths, "" for the usual names
    bool baselines = true;
    std::string baseline = cublas_baseline;  // one of baseline_names
    int max_sets = 32;
    int min_launches = 20;
    double budget_s = 0;  // stop cleanly before so many seconds have passed; 0: no limit
};

class BenchDevice {
public:
    // Throws std::runtime_error if there is no GPU.
    BenchDevice(const char* purpose, const DeviceOptions& options);

    test::Cuda& cuda() { return cuda_; }
    GpuTimer& timer() { return timer_; }
    // Null if there is none, or it cannot serve the product.
    Cublas* cublas_for(const Product& p) { return Cublas::serves(p) ? cublas_.get() : nullptr; }
    CublasLt* cublaslt_for(const Product& p) { return CublasLt::serves(p) ? cublaslt_.get() : nullptr; }
    const Nvml& nvml() const { return nvml_; }
    Machine machine() const;

    // The operands for the next product.
    std::vector<Operands> operands(const Product& product);
    Expectation expect(const Product& product, const Operands& operands);
    Verdict check(const Expectation& expectation, const Operands& operands, int64_t split,
                  const Multiply& multiply, Tanh tanh = Tanh::Exact);
    // In how many slices a library that does not say may have summed k: there are no more steps.
    int64_t max_slices(const Product& product) const;
    // How many launches of each arm a graph needs; the GPU is warm afterwards.
    int launches(const Product& product, const std::vector<Operands>& sets,
                 const std::vector<Multiply>& arms);
    // Is there time for `graph_us` more of work on the GPU?
    bool has_time_for(double graph_us) const;

private:
    using Clock = std::chrono::steady_clock;
    Arena& arena(hgemm_type_t type) { return arenas_.try_emplace(type, memory_, type).first->second; }

    test::Cuda& cuda_;
    test::DeviceMemory memory_;
    GpuTimer timer_;
    DeviceOptions options_;
    Clock::time_point begin_ = Clock::now();
    std::string no_cublas_, no_cublaslt_;
    std::unique_ptr<Cublas> cublas_;
    std::unique_ptr<CublasLt> cublaslt_;
    Nvml nvml_;
    std::map<hgemm_type_t, Arena> arenas_;
    bool warm_ = false;
};

}  // namespace hg::bench
