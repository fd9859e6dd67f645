// Times a kernel on the GPU as CUDA graphs of many launches over rotating operands.
#pragma once

#include "cuda_driver.hpp"
#include "data.hpp"

#include <functional>
#include <vector>

namespace hg::bench {

// Operand sets of one product: enough of them that none is still in the L2 cache when its turn comes, or
// 32, or what fits.
std::vector<Operands> rotating_operands(test::Cuda& cuda, test::Memory& memory, const Numbers& numbers,
                                        const Product& product);

using Multiply = std::function<void(const Operands&)>;  // asynchronous, on the timer's stream

class GpuTimer {
public:
    explicit GpuTimer(test::Cuda& cuda);
    ~GpuTimer();
    GpuTimer(const GpuTimer&) = delete;
    GpuTimer& operator=(const GpuTimer&) = delete;

    CUstream_st* stream() const { return stream_; }
    void wait() { cuda_.wait(stream_); }

    class Graph {
    public:
        Graph(GpuTimer& timer, const std::vector<Operands>& sets, int launches, const Multiply& multiply);
        ~Graph();
        Graph(const Graph&) = delete;
        Graph& operator=(const Graph&) = delete;

        void launch() { timer_.cuda_.launch(graph_, timer_.stream_); }
        double time_us();  // of one of its launches

    private:
        GpuTimer& timer_;
        int launches_;
        CUgraphExec_st* graph_;
    };

    // How many launches a graph needs for 600 us in all; a multiple of the number of sets, 20 at the least.
    int launches_for(const std::vector<Operands>& sets, const Multiply& multiply);

    // Median time that one call takes on the host, in microseconds.
    double host_us(const std::vector<Operands>& sets, const Multiply& multiply);

private:
    test::Cuda& cuda_;
    CUstream_st* stream_;
    CUevent_st *begin_, *end_;
};

double quantile(std::vector<double> values, double which);
inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace hg::bench
