// hgemm-seed-sm120: the kernels of sm120 and sm80 beside those of the article that sm120 began with, and
// cublasGemmEx.
#include "src/tools/bench/shapes.hpp"
#include "src/tools/support/kernel_names.hpp"
#include "tests/evidence/seed_sm120/launch.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <exception>

namespace {

using namespace hg::bench;

// All kernels of both backends but those for any layout.
std::vector<std::string> kernels()
{
    std::vector<std::string> names;
    for (const std::string& name : hg::test::kernel_names())
        if ((name.rfind("sm120_", 0) == 0 || name.rfind("sm80_", 0) == 0) &&
            name.find("_any_") == std::string::npos)
            names.push_back(name);
    return names;
}

int run(int argc, char** argv)
{
    CLI::App app("Times sm120's and sm80's kernels beside four published ones for sm_120.");
    Selection selection;
    selection.shapes = "1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192";
    selection.dtype = "both";
    selection.layouts = {"tt"};  // theirs alone: both operands row-major
    KernelsOptions options;
    options.pairs = 25;
    options.within = 100;
    options.device.min_launches = 4;
    app.add_option("--shapes", selection.shapes, "MxNxK,...")->capture_default_str();
    app.add_option("--dtype", selection.dtype, "f16, bf16 or both")
        ->check(CLI::IsMember({"f16", "bf16", "both"}));
    app.add_option("--csv", options.csv, "File to write each measurement to as it comes");
    app.add_option("--cublas", options.device.cublas, "Path of libcublas");
    app.add_option("--pairs", options.pairs, "Rounds over the kernels")->check(CLI::Range(1, 10000));
    app.add_option("--sets", options.device.max_sets, "Maximum number of sets of operands to rotate over")
        ->check(CLI::Range(1, 1024));
    app.add_option("--launches", options.device.min_launches, "Minimum number of launches in a graph")
        ->check(CLI::Range(1, 10000));
    app.add_option("--budget", options.device.budget_s, "Stop cleanly before so many seconds have passed");
    CLI11_PARSE(app, argc, argv);
    options.products = select(selection);
    options.kernels = kernels();
    options.others = hg::seed::open_kernels();
    return time_kernels(options);
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "hgemm-seed-sm120: {}\n", error.what());
        return 2;
    }
}
