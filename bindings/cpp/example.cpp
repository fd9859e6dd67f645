// A linear layer on the CPU through the C++ header: D = A * transpose(B), row-major fp16, fp32 out.
//
//   c++ -std=c++20 example.cpp $(pkg-config --cflags --libs hgemm) -o example && ./example
#include <hgemm.hpp>

#include <cstdio>
#include <vector>

int main()
{
    constexpr int64_t m = 2, n = 3, k = 4;
    const std::vector<libhgemm::Half> a(m * k, {0x4000}), b(n * k, {0x3800});  // 2 and 0.5
    std::vector<float> d(m * n);

    auto handle = libhgemm::Handle::create_on(HGEMM_DEVICE_HOST);
    if (!handle) {
        std::fprintf(stderr, "%s\n", handle.error().message.c_str());
        return 1;
    }
    const libhgemm::Gemm layer{.m = m, .n = n, .k = k, .transb = HGEMM_TRANS};
    if (const auto done = handle->multiply<libhgemm::Half, float>(layer, {a, k}, {b, k}, {d, n}); !done) {
        std::fprintf(stderr, "%s\n", done.error().message.c_str());
        return 1;
    }
    for (int64_t i = 0; i < m; ++i)
        std::printf("%g %g %g\n", d[i * n], d[i * n + 1], d[i * n + 2]);
    return d == std::vector<float>(m * n, 4.0f) ? 0 : 1;
}
