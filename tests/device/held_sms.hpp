// A kernel that takes SMs and keeps them, as kernels do that wait for others, of a communication library
// for example; and what can be seen beside it.
#pragma once

#include "gpu.hpp"

#include <cstdint>
#include <vector>

namespace hg::test {

enum class Priority { Lowest, Highest };

// A stream that does not wait for the default stream.
class PriorityStream {
public:
    explicit PriorityStream(Priority priority);
    ~PriorityStream() { Cuda::get()->destroy(stream_); }
    PriorityStream(const PriorityStream&) = delete;
    PriorityStream& operator=(const PriorityStream&) = delete;
    operator CUstream_st*() const { return stream_; }

    // Has all work on the stream ended within so many seconds?
    bool ends_within(double seconds) const;

private:
    CUstream_st* stream_ = nullptr;
};

using Sms = std::vector<uint32_t>;  // numbers as %smid gives them; 2 i and 2 i + 1 are a pair, a TPC

// Holds all SMs of an idle device but those of `free`. They are given back after half a minute, whatever
// happens.
class HeldSms {
public:
    explicit HeldSms(const Sms& free, Priority priority = Priority::Lowest);
    ~HeldSms();
    HeldSms(const HeldSms&) = delete;
    HeldSms& operator=(const HeldSms&) = delete;

    // Why no kernel can hold SMs while another runs; "" if it can.
    static std::string unavailable();

    void release();  // and waits for its end

private:
    int count() const;  // of SMs that are held

    PriorityStream stream_;
    void* device_;  // the number of CTAs that have begun; for each SM whether it is free
    volatile uint32_t* host_ = nullptr;  // whether to end; for each SM whether it is held
};

// One cluster whose CTAs fill an SM each, say which, and end.
class ProbeCluster {
public:
    explicit ProbeCluster(int ctas);
    ~ProbeCluster();
    ProbeCluster(const ProbeCluster&) = delete;
    ProbeCluster& operator=(const ProbeCluster&) = delete;

    void start(CUstream_st* stream);
    Sms sms() const;  // once it has ended
    // Where one runs on an idle device: SMs of one GPC.
    static Sms places(int ctas);

private:
    int ctas_;
    void* device_;
};

}  // namespace hg::test
