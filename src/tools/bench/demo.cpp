#include "src/tools/bench/demo.hpp"

#include "src/tools/bench/check.hpp"
#include "src/tools/bench/data.hpp"
#include "src/tools/bench/gpu_timer.hpp"
#include "src/tools/bench/ours.hpp"
#include "src/tools/bench/progress.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/support/memory.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

namespace hg::bench {
namespace {

struct Line {
    Ours::Choice choice;
    double us;
    Verdict verdict;
};

std::vector<Product> products_for(bool host)
{
    std::vector<Product> products = {
        {256, 256, 256, HGEMM_F16, "tn"},    {1024, 1024, 1024, HGEMM_F16, "tn"},
        {1024, 1024, 1024, HGEMM_F16, "nn"}, {1000, 999, 1001, HGEMM_F16, "tn"},
        {1, 4096, 4096, HGEMM_F16, "tn"},    {16, 6144, 4096, HGEMM_BF16, "tn"},
        {2048, 2048, 2048, HGEMM_BF16, "tn"}};
    if (!host) {
        products.push_back({4096, 4096, 4096, HGEMM_F16, "tn"});
        products.push_back({8192, 8192, 8192, HGEMM_F16, "tn"});
        products.push_back({8192, 8192, 8192, HGEMM_BF16, "nt"});
    }
    return products;
}

Line run_on_host(Ours& ours, const Product& product)
{
    using Clock = std::chrono::steady_clock;
    constexpr double min_us = 2e5;
    constexpr size_t min_runs = 3;
    test::HostMemory memory;
    Arena arena(memory, product.type);
    const Operands operands = arena.operands(product, 1)[0];
    const Ours::Choice choice = ours.explain(product, operands);
    const Verdict verdict =
        Expectation(arena.numbers(), product, operands, arithmetic_of(0)).check(memory, choice.split, [&] {
            ours.multiply(product, operands);
        });
    std::vector<double> times;
    for (double total = 0; total < min_us || times.size() < min_runs; total += times.back()) {
        const auto begin = Clock::now();
        ours.multiply(product, operands);
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    return {choice, median(times), verdict};
}

Line run_on_gpu(Ours& ours, test::Cuda& cuda, const Product& product)
{
    constexpr int repeats = 9, max_sets = 32, min_launches = 20;
    test::DeviceMemory memory(cuda);
    GpuTimer timer(cuda);
    ours.set_stream(timer.stream());
    Arena arena(memory, product.type);
    const std::vector<Operands> sets =
        arena.operands(product, rotating_sets(product, cuda.l2_bytes(), cuda.free_bytes(), max_sets));
    const Multiply multiply = [&](const Operands& operands) { ours.multiply(product, operands); };
    const Ours::Choice choice = ours.explain(product, sets[0]);
    const Expectation expectation(arena.numbers(), product, sets[0], arithmetic_of(cuda.cc()));
    const Verdict verdict = expectation.check(memory, choice.split, [&] {
        multiply(sets[0]);
        timer.wait();
    });
    const double us = GpuTimer::Graph(timer, sets, min_launches, multiply).time_us();
    GpuTimer::Graph graph(timer, sets, GpuTimer::launches_for(us, sets.size(), min_launches), multiply);
    graph.time_us();
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i)
        times.push_back(graph.time_us());
    ours.set_stream(nullptr);
    return {choice, median(times), verdict};
}

void print_heading(const Ours& ours, test::Cuda* cuda)
{
    fmt::print("{}\n", hgemm_build_info());
    if (cuda)
        fmt::print("On the GPU: {}, backend {}.\n", cuda->name(), ours.backend());
    else
        fmt::print("On the CPU: {} threads, backend {}; {}.\n", std::thread::hardware_concurrency(),
                   ours.backend(),
                   test::Cuda::get() ? "a GPU is there but not used" : test::Cuda::absent());
    fmt::print(
        "Normal random numbers. Error: the largest |D - float64 result| / error bound, right if <= 1.\n\n"
        "{:<8} {:<26} {:<5} {:<6} {:>6} {:>6} {:>6} {:>11} {:>9}  {:>5}\n",
        "backend", "kernel", "type", "layout", "m", "n", "k", "time us", cuda ? "TFLOP/s" : "GFLOP/s",
        "error");
}

void print_line(const Product& p, const Line& line, bool host)
{
    fmt::print("{:<8} {:<26} {:<5} {:<6} {:>6} {:>6} {:>6} {:>11.2f} {:>9.1f}  {:>5.3f}{}{}\n",
               line.choice.backend, line.choice.kernel, test::name_of(p.type), p.layout, p.m, p.n, p.k,
               line.us, p.flops() / line.us * (host ? 1e-3 : 1e-6), line.verdict.error,
               line.verdict.error <= 1 ? "" : "  WRONG",
               line.verdict.guards_intact ? "" : "  WROTE OUTSIDE D");
    std::fflush(stdout);
}

}  // namespace

int demo()
{
    Ours ours;
    test::Cuda* cuda = ours.on_host() ? nullptr : test::Cuda::get();
    if (!ours.on_host() && !cuda)
        throw std::runtime_error("the library found a GPU and the benchmark did not: " +
                                 test::Cuda::absent());
    const std::vector<Product> products = products_for(!cuda);
    print_heading(ours, cuda);
    const Progress progress(products.size());
    size_t wrong = 0;
    for (size_t i = 0; i < products.size(); ++i) {
        const Product& product = products[i];
        progress.show(i, product.shape());
        const Line line = cuda ? run_on_gpu(ours, *cuda, product) : run_on_host(ours, product);
        progress.clear();
        print_line(product, line, !cuda);
        wrong += !line.verdict.right();
    }
    fmt::print("\n{} of {} products right.\n", products.size() - wrong, products.size());
    return wrong == 0 ? 0 : 1;
}

}  // namespace hg::bench
