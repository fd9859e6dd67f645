// What a call costs the calling thread: products repeated in cycles of so many different ones, as the
// layers of a model are, products with operands never seen, and shapes never seen.
#include "hgemm.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace {

// The driver by the entry points that the library itself takes.
class Driver {
public:
    Driver()
    {
        void* library = dlopen("libcuda.so.1", RTLD_NOW);
        using Get = int (*)(const char*, void**, int, uint64_t, void*);
        const auto get = library ? reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
        if (!get)
            throw std::runtime_error("no CUDA driver (libcuda.so.1)");
        const auto find = [&](const char* name, auto& function) {
            void* address = nullptr;
            if (get(name, &address, 12000, 0, nullptr) != 0)
                throw std::runtime_error(std::string("the CUDA driver has no ") + name);
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
        };
        find("cuInit", init_);
        find("cuDevicePrimaryCtxRetain", retain_);
        find("cuCtxSetCurrent", set_current_);
        find("cuMemAlloc", allocate_);
        find("cuCtxSynchronize", wait_);
        void* context = nullptr;
        check(init_(0));
        check(retain_(&context, 0));
        check(set_current_(context));
    }
    char* allocate(size_t bytes) const
    {
        unsigned long long memory = 0;
        check(allocate_(&memory, bytes));
        return reinterpret_cast<char*>(memory);
    }
    void wait() const { check(wait_()); }

private:
    static void check(int error)
    {
        if (error != 0)
            throw std::runtime_error(fmt::format("the CUDA driver answers {}", error));
    }

    int (*init_)(unsigned) = nullptr;
    int (*retain_)(void**, int) = nullptr;
    int (*set_current_)(void*) = nullptr;
    int (*allocate_)(unsigned long long*, size_t) = nullptr;
    int (*wait_)() = nullptr;
};

struct Settings {
    int64_t m = 1, n = 256, k = 256;
    int calls = 16384;
    std::vector<int> cycles = {1, 32, 64, 160, 320, 640, 1280, 2560};
};

class Products {
public:
    explicit Products(const Settings& settings) : s_(settings)
    {
        if (hgemm_create(&handle_) != HGEMM_STATUS_SUCCESS)
            throw std::runtime_error(hgemm_last_error());
        const size_t room = static_cast<size_t>(4 * s_.calls) * step;
        a_ = driver_.allocate(static_cast<size_t>(2 * s_.m * (s_.k + s_.calls)));
        b_ = driver_.allocate(static_cast<size_t>(2 * s_.n * (s_.k + s_.calls)) + room);
        d_ = driver_.allocate(static_cast<size_t>(2 * s_.m * s_.n));
    }
    ~Products() { hgemm_destroy(handle_); }
    Products(const Products&) = delete;
    Products& operator=(const Products&) = delete;

    // One weight of many.
    void multiply(int64_t weight, int64_t k)
    {
        const auto* b = reinterpret_cast<const hgemm_half_t*>(b_ + weight * step);
        const auto* a = reinterpret_cast<const hgemm_half_t*>(a_);
        auto* d = reinterpret_cast<hgemm_half_t*>(d_);
        if (hgemm_tn(handle_, s_.n, s_.m, k, 1, b, k, a, k, 0, d, s_.n) != HGEMM_STATUS_SUCCESS)
            throw std::runtime_error(hgemm_last_error());
    }

    // Median over bursts that the driver takes without waiting, in ns a call.
    template <typename Call>
    double nanoseconds(Call call) const
    {
        using Clock = std::chrono::steady_clock;
        std::vector<double> bursts;
        for (int i = 0; i < s_.calls; i += burst) {
            const auto begin = Clock::now();
            for (int j = i; j < i + burst; ++j)
                call(j);
            bursts.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                             burst);
            driver_.wait();
        }
        std::nth_element(bursts.begin(), bursts.begin() + bursts.size() / 2, bursts.end());
        return bursts[bursts.size() / 2];
    }

    void print_all()
    {
        fmt::print("calls,ns\n");
        for (const int cycle : s_.cycles) {
            for (int i = 0; i < cycle; ++i)
                multiply(i, s_.k);
            driver_.wait();
            print(fmt::format("cycle of {}", cycle), [&](int i) { multiply(i % cycle, s_.k); });
        }
        print("new operands", [&](int i) { multiply(s_.calls + i, s_.k); });
        print("new shapes", [&](int i) { multiply(0, s_.k + 8 * (i + 1)); });
    }

private:
    template <typename Call>
    void print(const std::string& name, Call call)
    {
        fmt::print("{},{:.0f}\n", name, nanoseconds(call));
        std::fflush(stdout);
    }

    static constexpr int64_t step = 256;
    static constexpr int burst = 256;
    Settings s_;
    Driver driver_;
    hgemm_handle_t handle_ = nullptr;
    char *a_ = nullptr, *b_ = nullptr, *d_ = nullptr;
};

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app("Times hgemm_tn() on the host; CSV on standard output.");
    Settings settings;
    app.add_option("-m", settings.m, "Rows of D");
    app.add_option("-n", settings.n, "Columns of D, rows of a weight");
    app.add_option("-k", settings.k, "Products summed");
    app.add_option("--calls", settings.calls, "Calls timed a line")->check(CLI::Range(256, 1 << 20));
    app.add_option("--cycles", settings.cycles, "Different products, called one after the other")
        ->delimiter(',')
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        Products(settings).print_all();
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
