#include "route.hpp"

#include "host.hpp"
#include "stager.hpp"

#include "src/base/environment.hpp"
#include "src/base/log.hpp"
#include "src/plan/problem.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hg::cblas {
namespace {

enum class Choice { Auto, Host, Gpu };

Choice read_choice()
{
    const char* const text = environment("HGEMM_CBLAS");
    if (!text || !*text)
        return Choice::Auto;
    if (!std::strcmp(text, "host"))
        return Choice::Host;
    if (!std::strcmp(text, "gpu"))
        return Choice::Gpu;
    // Not an error of a call, whose C a program might then use as it was.
    Log().line("HGEMM_CBLAS is '%.256s', must be host or gpu: the library chooses for each product", text);
    return Choice::Auto;
}

bool reads_ab(const hgemm_args_t& g) { return g.k > 0 && g.alpha != 0.0f; }

bool is_for_gpu(const hgemm_args_t& g)
{
    static const Choice choice = read_choice();
    static const int cores = available_cores();
    if (choice == Choice::Host || !reads_ab(g))
        return false;
    const Forecast f = forecast(g, cores);
    return (choice == Choice::Gpu || f.gpu_us < f.host_us) && Stager::get();
}

const void* element(const void* base, hgemm_type_t type, int64_t offset)
{
    return static_cast<const char*>(base) + offset * bytes_of(static_cast<Type>(type));
}

}  // namespace

int available_cores()
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

hgemm_args_t row_major(const hgemm_args_t& args)
{
    hgemm_args_t g = args;
    if (g.layout == HGEMM_ROW_MAJOR)
        return g;
    g.layout = HGEMM_ROW_MAJOR;
    std::swap(g.m, g.n);
    std::swap(g.a, g.b);
    std::swap(g.lda, g.ldb);
    std::swap(g.transa, g.transb);
    return g;
}

hgemm_args_t part(const hgemm_args_t& args, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    hgemm_args_t g = args;
    g.m = rows;
    g.n = columns;
    g.a = element(g.a, g.type_ab, g.transa == HGEMM_NO_TRANS ? row * g.lda : row);
    g.b = element(g.b, g.type_ab, g.transb == HGEMM_NO_TRANS ? column : column * g.ldb);
    g.c = g.d = const_cast<void*>(element(g.d, g.type_d, row * g.ldd + column));
    return g;
}

Forecast forecast(const hgemm_args_t& g, int cores, const Rates& r)
{
    const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
    const double flops = 2 * m * n * k;
    const double c_bytes = m * n * static_cast<double>(bytes_of(static_cast<Type>(g.type_d)));
    const double bytes = 2 * (m * k + k * n) + (g.beta != 0.0f ? 2 : 1) * c_bytes;
    return {r.host_start_us + flops / (r.host_flops_per_us * cores),
            r.gpu_start_us + std::max(bytes / r.staged_bytes_per_us, flops / r.gpu_flops_per_us)};
}

Status run_on_host(const hgemm_args_t& args)
{
    const HostLease host;
    return host.run(args);
}

Status run_on_gpu(const hgemm_args_t& args, const Blocks& blocks)
{
    Stager* const stager = Stager::get();
    if (!stager)
        return fail(HGEMM_STATUS_NO_DEVICE, "there is no CUDA device that libhgemm can use");
    const int64_t width = std::max<int64_t>(blocks.resident_bytes / (2 * args.k), 1);
    for (int64_t column = 0; column < args.n; column += width) {
        const hgemm_args_t block = part(args, 0, args.m, column, std::min(width, args.n - column));
        const int64_t done = stager->run(block);
        const Status status =
            done == block.m ? ok : run_on_host(part(block, done, block.m - done, 0, block.n));
        if (status != ok)
            return status;
    }
    return ok;
}

Status run(const hgemm_args_t& args)
{
    if (is_for_gpu(args))
        return run_on_gpu(args);
    const Status status = run_on_host(args);
    // Where HGEMM_KERNEL names a kernel of a GPU no handle on the host is made.
    return status == HGEMM_STATUS_NOT_SUPPORTED && reads_ab(args) && Stager::get() ? run_on_gpu(args)
                                                                                   : status;
}

}  // namespace hg::cblas
