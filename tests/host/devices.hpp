// Devices and problems for tests of dispatch: plain structs, no GPU is needed.
#pragma once

#include "src/plan/dispatch.hpp"
#include "src/run/handle.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>

namespace hg {

inline Device gpu(int cc, int sm_count, int smem_kib)
{
    Device d{};
    d.cc = cc;
    d.sm_count = sm_count;
    d.smem_per_block = smem_kib * 1024;
    std::strcpy(d.name, "a test device");
    return d;
}

inline Device with_memory(Device d, int64_t bytes_a_second)
{
    d.memory_bandwidth = bytes_a_second;
    return d;
}

inline const Device b200 = gpu(100, 148, 227), h200 = gpu(90, 132, 227), a100 = gpu(80, 108, 163),
                    a10 = gpu(86, 72, 99), rtx5090 = gpu(120, 170, 99), turing = gpu(75, 40, 64),
                    h100 = with_memory(h200, 3'352'000'000'000);

inline Device host()
{
    Device d = gpu(0, 8, 0);
    d.ordinal = HGEMM_DEVICE_HOST;
    return d;
}

inline bool has_cuda() { return all_backends().size() > 1; }

#define NEEDS_CUDA_BUILD()                                                                                 \
    if (!has_cuda())                                                                                       \
    GTEST_SKIP() << "this build has the host backend alone"

// D = A * transpose(B), row-major, packed.
inline Problem linear_layer(int64_t m, int64_t n, int64_t k)
{
    Problem p{};
    p.m = m;
    p.n = n;
    p.k = k;
    p.batch = 1;
    p.type_ab = p.d.type = Type::F16;
    p.a = {reinterpret_cast<void*>(0x1000), nullptr, k, 1, 0, 0};
    p.b = {reinterpret_cast<void*>(0x2000), nullptr, k, 1, 0, 0};
    p.d = {reinterpret_cast<void*>(0x4000), nullptr, n, 0, Type::F16, 0};
    p.alpha = 1;
    return p;
}

struct Chosen {
    Status status;
    std::string kernel;
    Plan plan;
};

inline Chosen choose(const Device& device, const Problem& problem, const char* backend = "",
                     const char* kernel = "", size_t workspace = 0)
{
    Options options{};
    options.workspace = workspace;
    std::strcpy(options.backend, backend);
    std::strcpy(options.kernel, kernel);
    const Backend* candidates[max_backends];
    int count = 0;
    Chosen choice{};
    choice.status = check_names(options);
    if (choice.status == ok)
        choice.status = find_backends(device, options, candidates, count);
    const std::span<const Backend* const> found(candidates, static_cast<size_t>(count));
    if (workspace > 0)
        options.counters = counter_words(device, found, workspace);
    if (choice.status == ok)
        choice.status = make_plan(problem, device, options, found, choice.plan);
    if (choice.status == ok)
        choice.kernel = choice.plan.backend->kernels[choice.plan.kernel].name;
    return choice;
}

}  // namespace hg
