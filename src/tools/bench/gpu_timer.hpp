// Times a kernel on the GPU as CUDA graphs of many launches over rotating operands.
#pragma once

#include "src/tools/bench/data.hpp"
#include "src/tools/support/cuda_driver.hpp"

#include <functional>
#include <vector>

namespace hg::bench {

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

        int launches() const { return launches_; }
        void start();
        double finish_us();  // of one of the launches that were started
        double time_us()
        {
            start();
            return finish_us();
        }

    private:
        GpuTimer& timer_;
        int launches_;
        CUgraphExec_st* graph_;
    };

    // How many launches of `us` each a graph needs for 600 us in all; a multiple of the number of sets,
    // `least` at the least.
    static int launches_for(double us, size_t sets, int least);

    // Median time that one call takes on the host, in microseconds, if the GPU takes `gpu_us` for it.
    double host_us(const std::vector<Operands>& sets, double gpu_us, const Multiply& multiply);

private:
    test::Cuda& cuda_;
    CUstream_st* stream_;
    CUevent_st *begin_, *end_;
};

}  // namespace hg::bench
