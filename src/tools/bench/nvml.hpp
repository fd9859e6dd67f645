// Clock and power of the GPU, read through NVML if it is there.
#pragma once

#include <memory>
#include <string>

namespace hg::bench {

class Nvml {
public:
    Nvml();
    ~Nvml();

    std::string driver_version() const;  // "" if unknown
    int sm_mhz() const;                  // 0 if unknown
    double watts() const;

private:
    struct Functions;
    std::unique_ptr<Functions> functions_;  // null without NVML
    void* device_ = nullptr;
};

}  // namespace hg::bench
