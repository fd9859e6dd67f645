// Choices of kernels, pinned: a change shows as a diff of golden_choices.txt. Where the test fails it
// leaves what is chosen now in golden_choices.now, in the folder that it runs in.
#include "devices.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace hg {
namespace {

void add(std::ostream& out, const char* name, const Device& device, const Problem& p,
         const char* backend = "")
{
    const Chosen c = choose(device, p, backend, "", size_t{64} << 20);
    out << name << ' ' << p.m << ' ' << p.n << ' ' << p.k << ' ' << c.kernel
        << (c.plan.swap_ab ? " swap_ab=1" : "") << " split=" << c.plan.split
        << (c.plan.sm90.stream_k ? " stream_k=1" : "") << " pdl=" << name_of(c.plan.pdl) << ' '
        << name_of(c.plan.why) << '\n';
}

void add(std::ostream& out, const char* name, const Device& device, int64_t m, int64_t n, int64_t k,
         const char* backend = "")
{
    add(out, name, device, linear_layer(m, n, k), backend);
}

// A, B or both with their rows side by side.
void add_majors(std::ostream& out, int64_t m, int64_t n, int64_t k)
{
    Problem nn = linear_layer(m, n, k), tt = nn, nt = nn;
    nn.a = nt.a = {nn.a.ptr, nullptr, 1, m, 0, 0};
    tt.b = nt.b = {nn.b.ptr, nullptr, 1, n, 0, 0};
    add(out, "h200/nn", h200, nn);
    add(out, "h200/nt", h200, nt);
    add(out, "h200/tt", h200, tt);
}

// What TMA cannot address, or reads in short lines or narrow panels.
void add_awkward(std::ostream& out)
{
    constexpr int64_t odd[][3] = {
        {1, 4097, 4097}, {3, 5001, 4099}, {17, 11007, 4095}, {127, 129, 131}, {512, 513, 8191}};
    for (const auto& [m, n, k] : odd)
        add(out, "h200", h200, m, n, k);
    constexpr int64_t shapes[][3] = {{2, 8192, 28672},   {8, 4096, 4096},   {16, 4096, 7168},
                                     {24, 14016, 256},   {40, 8192, 2048},  {128, 18432, 7168},
                                     {1536, 1536, 1536}, {4096, 4096, 4096}};
    for (const auto& [m, n, k] : shapes)
        add_majors(out, m, n, k);
}

// Few rows beside lines that TMA cannot address, or that are very many.
void add_lines(std::ostream& out, const std::string& name, const Device& device)
{
    constexpr int64_t shapes[][3] = {
        {1, 1001, 1000}, {2, 4097, 4097}, {4, 777, 12000}, {1, 50257, 768}, {1, 57344, 8192}};
    for (const auto& [m, n, k] : shapes) {
        Problem p = linear_layer(m, n, k);
        p.b = {p.b.ptr, nullptr, 1, n, 0, 0};
        add(out, (name + "/tt").c_str(), device, p);
    }
    Problem vector = linear_layer(4097, 1, 4097);
    vector.a = {vector.a.ptr, nullptr, 1, 4097, 0, 0};
    add(out, (name + "/nn").c_str(), device, vector);
}

// Heads of attention, experts, small matrices, sizes that suit nobody.
void add_batches(std::ostream& out, const char* name, const Device& device)
{
    constexpr int64_t shapes[][4] = {{16, 16, 16, 4096},    {64, 64, 64, 1024},    {512, 512, 64, 128},
                                     {2048, 128, 2048, 32}, {1, 2048, 128, 256},   {16, 4096, 4096, 8},
                                     {512, 512, 512, 16},   {2048, 2048, 2048, 4}, {63, 65, 33, 512}};
    for (const auto& [m, n, k, batch] : shapes) {
        Problem p = linear_layer(m, n, k);
        p.batch = batch;
        p.a.batch_stride = m * k;
        p.b.batch_stride = n * k;
        p.d.batch_stride = m * n;
        add(out, (std::string(name) + "/" + std::to_string(batch)).c_str(), device, p);
    }
}

// Squares, the layers of a language model with few and many rows, and what falls to the general path.
void add_for_mma(std::ostream& out, const char* name, const Device& device, const char* backend)
{
    for (const int64_t n : {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384})
        add(out, name, device, n, n, n, backend);
    for (const int64_t m : {1, 16, 64, 128, 300, 1024})
        for (const int64_t n : {2112, 4096, 14336})
            add(out, name, device, m, n, 4096, backend);
    add(out, name, device, 8192, 64, 8192, backend);
    add(out, name, device, 4095, 4095, 4095, backend);
}

void add_layers(std::ostream& out, const char* name, const Device& device)
{
    constexpr int64_t layers[][2] = {{4096, 4096}, {14336, 4096}, {4096, 14336}, {7168, 2048},
                                     {2112, 7168}, {18432, 7168}, {28672, 8192}, {1536, 6144}};
    for (const auto& [n, k] : layers)
        for (const int64_t m : {1, 8, 16, 40, 64, 128, 300, 1024, 4096})
            add(out, name, device, m, n, k);
    for (const int64_t n : {64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 5120, 8192, 16384})
        add(out, name, device, n, n, n);
    for (const int64_t n : {17, 255, 1023, 4095})
        add(out, name, device, n, n, n);
    for (const int64_t k : {64, 256, 1024})
        add(out, name, device, 8192, 8192, k);
    for (const int64_t k : {4096, 16384, 65536})
        add(out, name, device, 128, 128, k);
    add(out, name, device, 16384, 64, 16384);
    add(out, name, device, 4096, 16, 4096);
}

std::string all_choices()
{
    std::ostringstream out;
    add_layers(out, "h200", h200);
    // Measured each for itself, though one is the other's mirror image; one that starts alone.
    add(out, "h200", h200, 16384, 8192, 64);
    add(out, "h200", h200, 8192, 16384, 64);
    add(out, "h200", h200, 512, 1024, 12288);
    add_awkward(out);
    add_lines(out, "h200", h200);
    add_layers(out, "h100", h100);
    add_lines(out, "h100", h100);
    add_batches(out, "h200", h200);
    add_batches(out, "h100", h100);
    add_layers(out, "b200", b200);
    add(out, "a100", a100, 4096, 4096, 4096);
    add(out, "a100", a100, 64, 64, 4096);
    add(out, "a10", a10, 2048, 2048, 2048);
    add(out, "a10", a10, 100, 100, 104);
    add(out, "a10", a10, 100, 100, 100);
    add_for_mma(out, "rtx5090", rtx5090, "");
    add_for_mma(out, "h200/sm120", h200, "sm120");
    return out.str();
}

TEST(Dispatch, GoldenChoices)
{
    NEEDS_CUDA_BUILD();
    std::ifstream file(GOLDEN_CHOICES);
    std::stringstream expected;
    expected << file.rdbuf();
    const std::string now = all_choices();
    if (now != expected.str())
        std::ofstream("golden_choices.now") << now;
    EXPECT_EQ(now, expected.str());
}

}  // namespace
}  // namespace hg
