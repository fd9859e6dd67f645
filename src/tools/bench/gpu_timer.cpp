#include "src/tools/bench/gpu_timer.hpp"

#include "src/tools/bench/statistics.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hg::bench {

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

void GpuTimer::Graph::start()
{
    timer_.cuda_.record(timer_.begin_, timer_.stream_);
    timer_.cuda_.launch(graph_, timer_.stream_);
    timer_.cuda_.record(timer_.end_, timer_.stream_);
}

double GpuTimer::Graph::finish_us()
{
    return timer_.cuda_.milliseconds(timer_.begin_, timer_.end_) * 1e3 / launches_;
}

int GpuTimer::launches_for(double us, size_t sets, int least)
{
    constexpr double min_graph_us = 600, min_us = 0.5;  // nothing on a GPU is faster
    const int wanted = std::max(least, static_cast<int>(std::ceil(min_graph_us / std::max(us, min_us))));
    const int count = static_cast<int>(sets);
    return (wanted + count - 1) / count * count;
}

double GpuTimer::host_us(const std::vector<Operands>& sets, double gpu_us, const Multiply& multiply)
{
    using Clock = std::chrono::steady_clock;
    constexpr double max_gpu_us = 1e4;
    const int calls = std::clamp(static_cast<int>(max_gpu_us / gpu_us), 5, 64);
    std::vector<double> times;
    for (int i = 0; i < calls; ++i) {
        const auto begin = Clock::now();
        multiply(sets[static_cast<size_t>(i) % sets.size()]);
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    wait();
    return median(times);
}

}  // namespace hg::bench
