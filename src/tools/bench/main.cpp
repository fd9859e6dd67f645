// hgemm-bench: shows the library at work and measures it.
#include "src/tools/bench/baseline.hpp"
#include "src/tools/bench/candidates.hpp"
#include "src/tools/bench/command_line.hpp"
#include "src/tools/bench/compare.hpp"
#include "src/tools/bench/csv.hpp"
#include "src/tools/bench/demo.hpp"
#include "src/tools/bench/files.hpp"
#include "src/tools/bench/kernels.hpp"
#include "src/tools/bench/report.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <exception>
#include <map>
#include <optional>
#include <string>

namespace {

using namespace hg::bench;

void add_device(CLI::App& app, DeviceOptions& d)
{
    app.add_option("--cublas", d.cublas, "Path of libcublas, if the dynamic linker cannot find it");
    app.add_option("--cublaslt", d.cublaslt, "Path of libcublasLt, if the dynamic linker cannot find it");
    app.add_flag("!--no-baselines", d.baselines, "Measure the library alone");
    app.add_option("--sets", d.max_sets, "Maximum number of sets of operands to rotate over")
        ->check(CLI::Range(1, 1024));
    app.add_option("--launches", d.min_launches, "Minimum number of launches in a graph")
        ->check(CLI::Range(1, 10000));
    app.add_option("--budget", d.budget_s, "Stop cleanly before so many seconds have passed");
}

void add_baseline(CLI::App& app, DeviceOptions& d, const char* standard)
{
    app.add_option(
           "--baseline", d.baseline,
           fmt::format(
               "cublas: {}; mma-sync: the fastest of cuBLASLt's kernels for Ampere, on an H100 or H200",
               standard))
        ->check(CLI::IsMember(baseline_names))
        ->capture_default_str()
        ->excludes("--no-baselines");
}

void add_files(CLI::App& app, Files& o)
{
    app.add_option("--json", o.json, "File to write everything to as JSON");
    app.add_option("--svg-roofline", o.svg_roofline, "File for the plot of speed against intensity");
    app.add_option("--svg-map", o.svg_map, "File for the map of ratios over m and n");
}

const std::map<std::string, hgemm_mode_t> modes{{"default", HGEMM_MODE_DEFAULT},
                                                {"batch-invariant", HGEMM_MODE_BATCH_INVARIANT},
                                                {"tree", HGEMM_MODE_TREE}};

void add_compare(CLI::App& app, Selection& selection, CompareOptions& options)
{
    add_selection(app, selection);
    add_device(app, options.device);
    add_baseline(app, options.device, "the fastest that cuBLASLt's heuristic proposes");
    add_files(app, options.files);
    add_outputs(app, selection);
    app.add_option("--csv", options.files.csv, "File to write each measurement to as it comes");
    app.add_flag("--resume", options.resume, "Leave out what the CSV file has, and add to it");
    app.add_option("--backend", options.backend, "Force a backend");
    app.add_option("--kernel", options.kernel, "Force a kernel; GEMMs that it cannot serve are left out");
    app.add_option("--pairs", options.pairs, "Interleaved pairs a GEMM")->check(CLI::Range(1, 10000));
    app.add_option("--algorithms", options.algorithms, "Heuristic results of cuBLASLt to try")
        ->check(CLI::Range(1, 1000));
    app.add_flag("--noise", options.noise, "cublasGemmEx against itself at every GEMM, not each eighth");
    app.add_option_function<std::string>(
           "--mode", [&options](const std::string& name) { options.mode = modes.at(name); },
           "Mode of the library")
        ->check(CLI::IsMember(modes));
    app.add_flag("--batch-invariant", options.batch_invariant,
                 "Also time batch-invariant mode, and its cost");
    app.add_flag("--hot", options.hot, "Below 20 MB, also time operands that stay in the L2 cache");
}

void add_kernels(CLI::App& app, Selection& selection, KernelsOptions& options)
{
    add_selection(app, selection);
    add_device(app, options.device);
    add_baseline(app, options.device, "cublasGemmEx");
    app.add_option("--kernel", options.kernels, "Names of kernels; all without it")->delimiter(',');
    app.add_option("--csv", options.csv, "File to write each measurement to as it comes");
    app.add_flag("--resume", options.resume, "Leave out the GEMMs that the CSV file has");
    app.add_option("--pairs", options.pairs, "Rounds over the kernels")->check(CLI::Range(1, 10000));
    app.add_option("--within", options.within,
                   "Kernels that take longer than so many times the fastest are timed once");
}

void add_candidates(CLI::App& app, CandidatesOptions& options)
{
    app.add_option(
           "candidates", options.file,
           "Lines of \"m n k layout candidate\", as `hgemm-candidates list` writes them; k may be KxBATCH")
        ->required()
        ->check(CLI::ExistingFile);
    app.add_option("--out", options.out, "File to write each line to with microseconds, as they come");
    app.add_option("--dtype", options.dtype, "f16 or bf16")->check(CLI::IsMember({"f16", "bf16"}));
    app.add_option("--rounds", options.rounds, "Graphs of each candidate")->check(CLI::Range(1, 1000));
    app.add_option("--handles", options.handles, "Kept at a time, one a candidate, of 0.2 GB each")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    app.add_flag("--tuned", options.tuned, "The library chooses as its tuning file says; else without one");
    app.add_option("--seed", options.seed, "Of the orders in which candidates take turns");
    add_device(app, options.device);
}

int report(const std::string& path, const Files& files)
{
    const Run run = read_csv(path);
    fmt::print("{}", heading(run.machine));
    for (const Measurement& m : run.rows)
        fmt::print("{}\n", line(m));
    fmt::print("{}", summary(run));
    write_files(run, files);
    return 0;
}

std::vector<Product> products_of(Selection selection)
{
    if (selection.shapes.empty() && selection.files.empty() && selection.sets.empty())
        selection.sets = {"square"};
    return select(selection);
}

int run(int argc, char** argv)
{
    CLI::App app("Shows libhgemm at work and measures it. Without a subcommand: demo.");
    app.add_subcommand("demo", "Multiply, check and time a handful of shapes on the GPU or the CPU");
    CLI::App* comparing = app.add_subcommand("compare", "Measure beside cublasGemmEx and cuBLASLt");
    CLI::App* timing = app.add_subcommand("kernels", "Time every kernel on every GEMM");
    CLI::App* taking_turns =
        app.add_subcommand("candidates", "Time candidates for GEMMs, to fit sm90's networks to");
    CLI::App* reporting = app.add_subcommand("report", "Summary and pictures of a CSV file; needs no GPU");
    app.require_subcommand(0, 1);
    Selection selection;
    CompareOptions compare_options;
    KernelsOptions kernels_options;
    kernels_options.device.min_launches = 4;
    CandidatesOptions candidates_options;
    std::string csv;
    Files files;
    add_compare(*comparing, selection, compare_options);
    add_kernels(*timing, selection, kernels_options);
    add_candidates(*taking_turns, candidates_options);
    reporting->add_option("csv", csv, "What `compare --csv` wrote")->required()->check(CLI::ExistingFile);
    add_files(*reporting, files);
    if (const std::optional<int> status = parse(app, argc, argv))
        return *status;

    if (*reporting)
        return report(csv, files);
    if (*comparing) {
        compare_options.products = products_of(selection);
        return compare(compare_options);
    }
    if (*timing) {
        kernels_options.products = products_of(selection);
        return time_kernels(kernels_options);
    }
    if (*taking_turns)
        return time_candidates(candidates_options);
    return demo();
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "hgemm-bench: {}\n", error.what());
        return 2;
    }
}
