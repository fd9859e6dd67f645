// What a call costs the calling thread: products repeated in cycles of so many different ones, as the
// layers of a model are, products with operands never seen, and shapes never seen; beside them what the
// driver takes for a bare launch.
#include "driver.hpp"

#include "hgemm.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace hg::cost {
namespace {

struct Settings {
    int64_t m = 1, n = 256, k = 256;
    int calls = 16384;
    std::vector<int> cycles = {1, 32, 64, 160, 320, 640, 1280, 2560};
    bool default_stream = false, lend = false;
};

constexpr Driver::Launch launches[] = {
    {"launch", false, false, 1, 640},
    {"launch of a function", true, false, 1, 640},
    {"launch with 8 bytes", false, false, 1, 8},
    {"launch that overlaps", false, true, 1, 640},
    {"launch of clusters", false, false, 2, 640},
    {"launch of clusters that overlaps", false, true, 2, 640},
    {"launch of a function by clusters that overlaps", true, true, 2, 640}};

class Costs {
public:
    explicit Costs(const Settings& settings)
        : s_(settings), stream_(settings.default_stream ? nullptr : driver_.create_stream())
    {
        require(hgemm_create(&handle_));
        require(hgemm_set_stream(handle_, stream_));
        if (s_.lend)
            require(hgemm_set_workspace_per_stream(handle_, size_t{64} << 20));
        const auto calls = static_cast<int64_t>(s_.calls);
        const auto allocate = [&](int64_t bytes) { return driver_.allocate(static_cast<size_t>(bytes)); };
        a_ = allocate(2 * s_.m * (s_.k + 8 * calls + 8));
        b_ = allocate(2 * s_.n * (s_.k + 8 * calls + 8) + 2 * calls * step);
        d_ = allocate(2 * s_.m * s_.n);
    }
    ~Costs() { hgemm_destroy(handle_); }
    Costs(const Costs&) = delete;
    Costs& operator=(const Costs&) = delete;

    void print_all() const
    {
        fmt::print("call,ns\n");
        for (const int cycle : s_.cycles) {
            for (int i = 0; i < cycle; ++i)
                multiply(i, s_.k);
            driver_.wait();
            print(fmt::format("cycle of {}", cycle), [&](int i) { multiply(i % cycle, s_.k); });
        }
        print("new operands", [&](int i) { multiply(s_.calls + i, s_.k); });
        print("new shapes", [&](int i) { multiply(0, s_.k + 8 * (i + 1)); });
        print("context", [&](int) { driver_.look_up_context(); });
        for (const Driver::Launch& launch : launches)
            print(launch.name, [&](int) { driver_.launch(launch, stream_); });
    }

private:
    static void require(hgemm_status_t status)
    {
        if (status != HGEMM_STATUS_SUCCESS)
            throw std::runtime_error(hgemm_last_error());
    }

    // One weight of many.
    void multiply(int64_t weight, int64_t k) const
    {
        const auto* b = reinterpret_cast<const hgemm_half_t*>(b_ + weight * step);
        const auto* a = reinterpret_cast<const hgemm_half_t*>(a_);
        auto* d = reinterpret_cast<hgemm_half_t*>(d_);
        require(hgemm_tn(handle_, s_.n, s_.m, k, 1, b, k, a, k, 0, d, s_.n));
    }

    // The median over bursts that the driver takes without making the caller wait.
    template <typename Call>
    void print(const std::string& name, const Call& call) const
    {
        using Clock = std::chrono::steady_clock;
        constexpr int burst = 256;
        std::vector<double> bursts;
        for (int i = 0; i < s_.calls; i += burst) {
            const auto begin = Clock::now();
            for (int j = i; j < i + burst; ++j)
                call(j);
            const std::chrono::duration<double, std::nano> time = Clock::now() - begin;
            bursts.push_back(time.count() / burst);
            driver_.wait();
        }
        const auto middle = bursts.begin() + static_cast<std::ptrdiff_t>(bursts.size() / 2);
        std::nth_element(bursts.begin(), middle, bursts.end());
        fmt::print("{},{:.0f}\n", name, *middle);
        std::fflush(stdout);
    }

    static constexpr int64_t step = 256;
    const Settings s_;
    const Driver driver_;
    CUstream stream_;
    hgemm_handle_t handle_ = nullptr;
    char *a_ = nullptr, *b_ = nullptr, *d_ = nullptr;
};

}  // namespace
}  // namespace hg::cost

int main(int argc, char** argv)
{
    CLI::App app("Times hgemm_tn() and bare launches on the host; CSV on standard output.");
    hg::cost::Settings settings;
    app.add_option("-m", settings.m, "Rows of D")->capture_default_str();
    app.add_option("-n", settings.n, "Columns of D, rows of a weight")->capture_default_str();
    app.add_option("-k", settings.k, "Products summed")->capture_default_str();
    app.add_option("--calls", settings.calls, "Calls timed a line")
        ->check(CLI::Range(256, 1 << 20))
        ->capture_default_str();
    app.add_option("--cycles", settings.cycles, "Different products, called one after the other")
        ->delimiter(',')
        ->capture_default_str();
    app.add_flag("--default-stream", settings.default_stream, "On the default stream, not one of its own");
    app.add_flag("--lend", settings.lend, "With a workspace for each stream, which the handle lends");
    CLI11_PARSE(app, argc, argv);
    try {
        hg::cost::Costs(settings).print_all();
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
