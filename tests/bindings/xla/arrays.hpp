// Arrays in the memory of the CPU or of a GPU, and what tests of handlers expect.
#pragma once

#include "frame.hpp"
#include "src/tools/support/cuda_driver.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace hg::test {

using Dims = std::vector<int64_t>;
constexpr size_t workspace_bytes = size_t{4} << 20;

inline int64_t count(const Dims& dims)
{
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

inline int xla_type(hgemm_type_t type)
{
    return type == HGEMM_F16 ? xla::type_f16 : type == HGEMM_BF16 ? xla::type_bf16 : xla::type_f32;
}

// An array in the memory of the CPU or, with a driver, of the GPU.
class Array {
public:
    Array(Cuda* cuda, hgemm_type_t type, Dims dims)
        : dims(std::move(dims)), type(type), cuda_(cuda), host_(bytes() + 1),
          device_(cuda ? cuda->allocate(bytes() + 1) : nullptr)
    {
    }
    ~Array()
    {
        if (cuda_)
            cuda_->release(device_);
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    // Small integers, so that every sum is exact.
    Array& fill(uint64_t seed)
    {
        for (int64_t i = 0; i < count(dims); ++i)
            store(type, at(i), static_cast<double>(hash(seed, static_cast<uint64_t>(i)) % 5) - 2);
        return copy_in();
    }
    Array& fill_normal(uint64_t seed)
    {
        for (int64_t i = 0; i < count(dims); ++i)
            store(type, at(i), normal(seed, static_cast<uint64_t>(i)));
        return copy_in();
    }

    Array& assign(const void* elements)
    {
        std::copy_n(static_cast<const char*>(elements), bytes(), host_.data());
        return copy_in();
    }

    void* data() { return cuda_ ? device_ : host_.data(); }
    double value(int64_t i) { return load(type, at(i)); }
    size_t bytes() const { return static_cast<size_t>(count(dims)) * bytes_of(type); }
    // What lies there now.
    std::vector<char> get()
    {
        if (cuda_) {
            cuda_->wait();
            cuda_->copy_out(host_.data(), device_, bytes());
        }
        return {host_.begin(), host_.begin() + static_cast<std::ptrdiff_t>(bytes())};
    }

    const Dims dims;
    const hgemm_type_t type;

private:
    char* at(int64_t i) { return host_.data() + static_cast<size_t>(i) * bytes_of(type); }
    Array& copy_in()
    {
        if (cuda_)
            cuda_->copy_in(device_, host_.data(), bytes());
        return *this;
    }

    Cuda* cuda_;
    std::vector<char> host_;
    void* device_;
};

inline void expect_ran(const std::unique_ptr<xla::Error>& error)
{
    EXPECT_FALSE(error) << (error ? error->message : "");
}

inline void expect_refused(const std::unique_ptr<xla::Error>& error, int code, const std::string& words)
{
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, code) << error->message;
    EXPECT_NE(error->message.find(words), std::string::npos) << error->message;
}

// Two streams; the library would not be there without a GPU that it serves.
class DeviceXla : public testing::Test {
protected:
    void SetUp() override
    {
        if (!cuda)
            GTEST_SKIP() << Cuda::absent();
        if (std::string(hgemm_build_info()).find(" sm") == std::string::npos)
            GTEST_SKIP() << "libhgemm was built without CUDA";
        stream = cuda->create_stream();
        other = cuda->create_stream();
    }
    void TearDown() override
    {
        if (!stream)
            return;
        cuda->destroy(stream);
        cuda->destroy(other);
    }

    Cuda* const cuda = Cuda::get();
    CUstream_st *stream = nullptr, *other = nullptr;
};

}  // namespace hg::test
