#include "src/tools/bench/device.hpp"

#include "src/tools/bench/data.hpp"
#include "src/tools/bench/region.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <stdexcept>

namespace hg::bench {
namespace {

test::Cuda& gpu_for(const char* purpose)
{
    test::Cuda* cuda = test::Cuda::get();
    if (!cuda)
        throw std::runtime_error(std::string(purpose) + " needs a GPU: " + test::Cuda::absent());
    return *cuda;
}

// A library that is there and does not start counts as absent.
template <typename Library>
std::unique_ptr<Library> load(const std::string& path, test::Memory& memory, CUstream_st* stream,
                              std::string* why)
{
    try {
        return Library::load(path, memory, stream, why);
    } catch (const std::runtime_error& error) {
        *why = error.what();
        return nullptr;
    }
}

}  // namespace

BenchDevice::BenchDevice(const char* purpose, const DeviceOptions& options)
    : cuda_(gpu_for(purpose)), memory_(cuda_), timer_(cuda_), options_(options)
{
    if (!options.baselines) {
        no_cublas_ = no_cublaslt_ = "not wanted";
        return;
    }
    cublas_ = load<Cublas>(options.cublas, memory_, timer_.stream(), &no_cublas_);
    cublaslt_ = load<CublasLt>(options.cublaslt, memory_, timer_.stream(), &no_cublaslt_);
}

Machine BenchDevice::machine() const
{
    const int version = cuda_.driver_version();
    Machine machine{{"cublas", cublas_ ? cublas_->version() : "none: " + no_cublas_},
                    {"cublaslt", cublaslt_ ? cublaslt_->version() : "none: " + no_cublaslt_},
                    {"cuda", fmt::format("{}.{}", version / 1000, version % 1000 / 10)},
                    {"date", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))},
                    {"device", cuda_.name()},
                    {"driver", nvml_.driver_version()},
                    {"idle", fmt::format("{} MHz, {:.0f} W", nvml_.sm_mhz(), nvml_.watts())},
                    {"library", hgemm_build_info()}};
    if (options_.baseline != cublas_baseline)
        machine["baseline"] = options_.baseline;
    return machine;
}

std::vector<Operands> BenchDevice::operands(const Product& product)
{
    const int sets = rotating_sets(product, cuda_.l2_bytes(), cuda_.free_bytes(), options_.max_sets);
    return arena(product.type).operands(product, sets);
}

Expectation BenchDevice::expect(const Product& product, const Operands& operands)
{
    return {arena(product.type).numbers(), product, operands, arithmetic_of(cuda_.cc())};
}

Verdict BenchDevice::check(const Expectation& expectation, const Operands& operands, int64_t split,
                           const Multiply& multiply, Tanh tanh)
{
    const auto run = [&] {
        multiply(operands);
        timer_.wait();
    };
    return expectation.check(memory_, split, run, tanh);
}

int64_t BenchDevice::max_slices(const Product& product) const
{
    const int64_t step = arithmetic_of(cuda_.cc()).step;
    return (product.k + step - 1) / step;
}

// A second of work before the first measurement, a hundredth before every other.
int BenchDevice::launches(const Product& product, const std::vector<Operands>& sets,
                          const std::vector<Multiply>& arms)
{
    const int trial = std::clamp(static_cast<int>(600 / ideal_us(product)), 1, options_.min_launches);
    int count = 0;
    for (const Multiply& multiply : arms) {
        GpuTimer::Graph graph(timer_, sets, trial, multiply);
        graph.time_us();
        const auto until = Clock::now() + std::chrono::milliseconds(warm_ ? 10 : 1000);
        double us = graph.time_us();
        while (&multiply == &arms.front() && Clock::now() < until)
            us = graph.time_us();
        warm_ = true;
        count = std::max(count, GpuTimer::launches_for(us, sets.size(), options_.min_launches));
    }
    return count;
}

// With the rest of a measurement, as on the host, taken as a quarter of a second.
bool BenchDevice::has_time_for(double graph_us) const
{
    const double passed = std::chrono::duration<double>(Clock::now() - begin_).count();
    return options_.budget_s <= 0 || passed + 0.25 + 1.5e-6 * graph_us < options_.budget_s;
}

}  // namespace hg::bench
