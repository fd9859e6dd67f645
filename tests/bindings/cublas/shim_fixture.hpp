// A cuBLAS handle on the emulated device, with the shim between the test and the fake libraries.
#pragma once

#include "hgemm_shim.h"
#include "operands.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hg::test {

class Shim : public testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_TRUE(Cuda::get()) << Cuda::absent();
        memory_ = std::make_unique<DeviceMemory>(*Cuda::get());
        ASSERT_EQ(hgemm_shim_set_mode("on"), 0);
        fake_set_nested(0);
        fake_set_error(1);
        ASSERT_EQ(cublasCreate_v2(&handle_), 0);
        calls();
        served_ = hgemm_shim_served();
        passed_on_ = hgemm_shim_passed_on();
    }
    void TearDown() override
    {
        if (handle_) {
            EXPECT_EQ(cublasDestroy_v2(handle_), 0);
        }
    }

    // What reached the fake libraries since the last time.
    static std::string calls()
    {
        char text[4096];
        fake_calls(text, sizeof text);
        return text;
    }
    uint64_t served() const { return hgemm_shim_served() - served_; }
    uint64_t passed_on() const { return hgemm_shim_passed_on() - passed_on_; }
    static std::string summary()
    {
        char text[16384];
        hgemm_shim_summary(text, sizeof text);
        return text;
    }

    std::unique_ptr<DeviceMemory> memory_;
    void* handle_ = nullptr;

private:
    uint64_t served_ = 0, passed_on_ = 0;
};

}  // namespace hg::test
