#include "gpu_timer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hg::bench {
namespace {

constexpr double least_graph_us = 600;
constexpr int least_launches = 20;
constexpr int most_sets = 32;

}  // namespace

std::vector<Operands> rotating_operands(test::Cuda& cuda, test::Memory& memory, const Numbers& numbers,
                                        const Product& product)
{
    const double wanted = std::max(180e6, 3 * static_cast<double>(cuda.l2_bytes()));
    const double fitting = 0.8 * static_cast<double>(cuda.free_bytes());
    const double count =
        std::min(std::ceil(wanted / product.bytes()), std::floor(fitting / product.bytes()));
    std::vector<Operands> sets;
    for (int i = 0; i < std::clamp(static_cast<int>(count), 1, most_sets); ++i)
        sets.emplace_back(memory, numbers, product, i);
    return sets;
}

GpuTimer::GpuTimer(test::Cuda& cuda)
    : cuda_(cuda), stream_(cuda.create_stream()), begin_(cuda.create_event()), end_(cuda.create_event())
{
}

GpuTimer::~GpuTimer()
{
    cuda_.destroy(begin_);
    cuda_.destroy(end_);
    cuda_.destroy(stream_);
}

GpuTimer::Graph::Graph(GpuTimer& timer, const std::vector<Operands>& sets, int launches,
                       const Multiply& multiply)
    : timer_(timer), launches_(launches), graph_(timer.cuda_.capture(timer.stream_, [&] {
          for (int i = 0; i < launches; ++i)
              multiply(sets[static_cast<size_t>(i) % sets.size()]);
      }))
{
}

GpuTimer::Graph::~Graph() { timer_.cuda_.destroy(graph_); }

double GpuTimer::Graph::time_us()
{
    timer_.cuda_.record(timer_.begin_, timer_.stream_);
    launch();
    timer_.cuda_.record(timer_.end_, timer_.stream_);
    return timer_.cuda_.milliseconds(timer_.begin_, timer_.end_) * 1e3 / launches_;
}

int GpuTimer::launches_for(const std::vector<Operands>& sets, const Multiply& multiply)
{
    Graph trial(*this, sets, least_launches, multiply);
    trial.time_us();
    const int wanted =
        std::max(least_launches, static_cast<int>(std::ceil(least_graph_us / trial.time_us())));
    const int count = static_cast<int>(sets.size());
    return (wanted + count - 1) / count * count;
}

double GpuTimer::host_us(const std::vector<Operands>& sets, const Multiply& multiply)
{
    using Clock = std::chrono::steady_clock;
    std::vector<double> times;
    for (size_t i = 0; i < 64; ++i) {
        const auto begin = Clock::now();
        multiply(sets[i % sets.size()]);
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    wait();
    return median(times);
}

double quantile(std::vector<double> values, double which)
{
    std::sort(values.begin(), values.end());
    const double position = which * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(position);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace hg::bench
