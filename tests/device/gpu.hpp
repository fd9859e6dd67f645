// What every test on the GPU begins with: is there one, and one that the backend serves? Where not, the
// test is reported as skipped with the reason.
#pragma once

#include "../library.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

namespace hg::test {

struct Served {
    const char *backend, *generations;  // a blank between them
};
#define BACKEND(name, generations, images) {#name, generations},
inline constexpr Served served[] = {
#include "arch/backends.def"
};
#undef BACKEND
#define BACKEND(name, generations, images) #name,
inline constexpr const char* backends[] = {
#include "arch/backends.def"
};
#undef BACKEND

inline std::unique_ptr<Library> make(const char* backend = "")
{
    auto library = std::make_unique<Library>(Cuda::get(), backend);
    if (!library->created())
        throw std::runtime_error(library->story());
    return library;
}

// Why the backend cannot be tested here; "" if it can.
inline std::string missing(const std::string& backend)
{
    Cuda* cuda = Cuda::get();
    if (!cuda)
        return Cuda::absent();
    if (std::string(hgemm_build_info()).find(" sm") == std::string::npos)
        return "libhgemm was built without CUDA";
    if (std::string(hgemm_build_info()).find(backend) == std::string::npos)
        return "libhgemm was built without " + backend;
    const std::string generation = " " + std::to_string(cuda->cc() / 10) + " ";
    const bool is_served = std::ranges::any_of(served, [&](const Served& one) {
        return (backend.empty() || backend == one.backend) &&
               (" " + std::string(one.generations) + " ").find(generation) != std::string::npos;
    });
    return is_served ? "" : cuda->name() + " is no device for " + backend;
}

#define NEEDS_BACKEND(backend)                                                                             \
    if (const std::string why = missing(backend); !why.empty())                                            \
    GTEST_SKIP() << why
#define NEEDS_GPU() NEEDS_BACKEND("")
#define NEEDS_MEMORY(gib)                                                                                  \
    if (Cuda::get()->free_bytes() < (size_t{gib} << 30))                                                   \
    GTEST_SKIP() << "needs " << (gib) << " GiB of free device memory"

class Stream {
public:
    Stream() : stream_(Cuda::get()->create_stream()) {}
    ~Stream() { Cuda::get()->destroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator CUstream_st*() const { return stream_; }

private:
    CUstream_st* stream_;
};

}  // namespace hg::test
