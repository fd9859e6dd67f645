// hgemm-host-rows <before.so> <after.so> [rounds]: products of few rows with a 4096 x 4096 matrix on the
// host, by two builds of the library in turn, beside reading the matrix once. Writes CSV. As many threads
// as taskset leaves CPUs.
#include "hgemm.h"
#include "src/tools/bench/dynamic_library.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hg::bench {
namespace {

constexpr int64_t size = 4096, max_rows = 16;

int cpus()
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// A build of the library with a handle on the host.
struct Build {
    explicit Build(const char* path)
    {
        std::string why;
        void* const library = open_library(path, {}, &why);
        if (!library)
            throw std::runtime_error(why);
        decltype(&hgemm_create_on) create;
        resolve(library, "hgemm_create_on", create);
        resolve(library, "hgemm_args_init", args_init);
        resolve(library, "hgemm_gemm_ex", gemm_ex);
        const char* const names[2][2] = {{"hgemv_n", "hgemv_t"}, {"bgemv_n", "bgemv_t"}};
        for (int bf16 = 0; bf16 < 2; ++bf16)
            for (int trans = 0; trans < 2; ++trans)
                resolve(library, names[bf16][trans], gemv[bf16][trans]);
        require_success(create(&handle, HGEMM_DEVICE_HOST), "hgemm_create_on");
    }

    hgemm_handle_t handle = nullptr;
    decltype(&hgemm_args_init) args_init;
    decltype(&hgemm_gemm_ex) gemm_ex;
    decltype(&hgemv_n) gemv[2][2];
};

struct Operands {
    std::vector<uint16_t> matrix, rows, out;

    // Numbers around 1 in both types, so that nothing overflows or is subnormal.
    Operands() : matrix(size * size), rows(size * max_rows), out(size * max_rows)
    {
        for (size_t i = 0; i < matrix.size(); ++i)
            matrix[i] = static_cast<uint16_t>(0x3c00 + i * 40503 % 256);
        for (size_t i = 0; i < rows.size(); ++i)
            rows[i] = static_cast<uint16_t>(0x3c00 + i * 30011 % 256);
    }
};

// Reads all of the matrix, a part in each thread.
class Reader {
public:
    explicit Reader(const std::vector<uint16_t>& matrix)
        : words_(reinterpret_cast<const uint64_t*>(matrix.data())), threads_(cpus()), start_(threads_),
          end_(threads_)
    {
        for (int part = 1; part < threads_; ++part)
            helpers_.emplace_back([this, part] {
                for (start_.arrive_and_wait(); !stop_; start_.arrive_and_wait()) {
                    read(part);
                    end_.arrive_and_wait();
                }
            });
    }
    ~Reader()
    {
        stop_ = true;
        start_.arrive_and_wait();
        for (std::thread& helper : helpers_)
            helper.join();
    }
    void run()
    {
        start_.arrive_and_wait();
        read(0);
        end_.arrive_and_wait();
    }

private:
#if defined(__x86_64__)
    [[gnu::target("avx2")]]
#endif
    void
    read(int part)
    {
        const int64_t words = size * size / 4, begin = words * part / threads_,
                      end = words * (part + 1) / threads_;
        uint64_t sums[16] = {};
        for (int64_t i = begin; i + 16 <= end; i += 16)
            for (int l = 0; l < 16; ++l)
                sums[l] += words_[i + l];
        for (const uint64_t sum : sums)
            sink_ = sink_ + sum;
    }

    const uint64_t* words_;
    const int threads_;
    std::barrier<> start_, end_;
    std::vector<std::thread> helpers_;
    bool stop_ = false;
    volatile uint64_t sink_ = 0;
};

struct Case {
    std::string name;
    std::function<hgemm_status_t(const Build&)> run;
};

void multiply_rows(std::vector<Case>& cases, const Build& build, Operands& x, bool bf16, bool along_k,
                   int64_t rows)
{
    hgemm_args_t g;
    build.args_init(&g, sizeof g);
    g.layout = HGEMM_ROW_MAJOR;
    g.type_ab = g.type_c = g.type_d = bf16 ? HGEMM_BF16 : HGEMM_F16;
    g.transb = along_k ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.m = rows;
    g.n = g.k = g.lda = g.ldb = g.ldc = g.ldd = size;
    g.a = x.rows.data();
    g.b = x.matrix.data();
    g.c = g.d = x.out.data();
    cases.push_back(
        {std::to_string(rows) + "x4096x4096," + (bf16 ? "bf16" : "f16") + (along_k ? ",nt" : ",nn"),
         [g](const Build& build) { return build.gemm_ex(build.handle, &g); }});
}

std::vector<Case> all_cases(const Build& build, Operands& x)
{
    std::vector<Case> cases;
    for (const bool bf16 : {false, true})
        for (const bool along_k : {true, false})
            for (const int64_t rows : {1, 4, 8, 16})
                multiply_rows(cases, build, x, bf16, along_k, rows);
    for (const bool bf16 : {false, true})
        for (const bool trans : {false, true})
            cases.push_back({std::string(bf16 ? "bgemv" : "hgemv") + (trans ? "_t" : "_n") + ' ' +
                                 "4096x4096," + (bf16 ? "bf16," : "f16,") + (trans ? "t" : "n"),
                             [&x, bf16, trans](const Build& build) {
                                 return build.gemv[bf16][trans](build.handle, size, size, 1,
                                                                x.matrix.data(), size, x.rows.data(), 1, 0,
                                                                x.out.data(), 1);
                             }});
    return cases;
}

double now(clockid_t clock)
{
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Milliseconds by the clock, and those of all threads together that were really spent: what other work on
// the machine takes away is not in them.
struct Times {
    std::vector<double> wall, cpu;

    void add(const std::function<void()>& run)
    {
        const double wall_begin = now(CLOCK_MONOTONIC), cpu_begin = now(CLOCK_PROCESS_CPUTIME_ID);
        run();
        cpu.push_back(now(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin);
        wall.push_back(now(CLOCK_MONOTONIC) - wall_begin);
    }
    double wall_min() const { return *std::min_element(wall.begin(), wall.end()); }
    double cpu_median() const { return median(cpu); }
};

void measure_case(const Case& product, const Build& before, const Build& after, Reader& reader, int rounds)
{
    product.run(before);
    product.run(after);
    Times read, old_times, new_times;
    for (int round = 0; round < rounds; ++round) {
        // The threads of OpenBLAS look for work for a while.
        std::this_thread::sleep_for(std::chrono::milliseconds(cpus() > 1 ? 60 : 0));
        read.add([&] { reader.run(); });
        new_times.add([&] { require_success(product.run(after), "the build after"); });
        old_times.add([&] { require_success(product.run(before), "the build before"); });
    }
    std::printf("%s,%d", product.name.c_str(), cpus());
    for (const Times* times : {&read, &old_times, &new_times})
        std::printf(",%.3f,%.3f", times->wall_min(), times->cpu_median());
    std::printf(",%.2f,%.2f,%.2f,%.2f\n", old_times.wall_min() / new_times.wall_min(),
                old_times.cpu_median() / new_times.cpu_median(), read.wall_min() / new_times.wall_min(),
                read.cpu_median() / new_times.cpu_median());
    std::fflush(stdout);
}

void measure(const char* before_path, const char* after_path, int rounds)
{
    const Build before(before_path), after(after_path);
    Operands operands;
    Reader reader(operands.matrix);
    std::printf("product,type,form,cpus,read_wall_min_ms,read_cpu_median_ms,before_wall_min_ms,before_cpu_"
                "median_ms,"
                "after_wall_min_ms,after_cpu_median_ms,faster_wall,faster_cpu,of_read_bandwidth_wall,"
                "of_read_bandwidth_cpu\n");
    for (const Case& product : all_cases(before, operands))
        measure_case(product, before, after, reader, rounds);
}

}  // namespace
}  // namespace hg::bench

int main(int count, char** arguments)
{
    if (count < 3) {
        std::fprintf(stderr, "usage: hgemm-host-rows <before.so> <after.so> [rounds]\n");
        return 2;
    }
    try {
        hg::bench::measure(arguments[1], arguments[2], count > 3 ? std::atoi(arguments[3]) : 20);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "hgemm-host-rows: %s\n", error.what());
        return 1;
    }
    return 0;
}
