// Green contexts of the driver, for tests: some of a device's SMs, and a stream on them.
#pragma once

#include "src/tools/support/cuda_driver.hpp"

#include <string>

struct CUgreenCtx_st;

namespace hg::test {

class GreenContext {
public:
    // Why there are none here; "" if there are.
    static std::string absent();

    // Of at least so many SMs of a device.
    GreenContext(int device, unsigned sm_count);
    ~GreenContext();
    GreenContext(const GreenContext&) = delete;
    GreenContext& operator=(const GreenContext&) = delete;

    int sm_count() const { return sm_count_; }
    CUstream_st* stream() const { return stream_; }
    CUctx_st* context() const { return context_; }  // to make current

private:
    CUgreenCtx_st* green_ = nullptr;
    CUstream_st* stream_ = nullptr;
    CUctx_st* context_ = nullptr;
    int sm_count_ = 0;
};

int device_count();

}  // namespace hg::test
