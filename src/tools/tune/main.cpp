// hgemm-tune: finds the fastest kernels of this GPU for a user's products, or calibrates the cost models
// that choose among kernels.
#include "src/base/environment.hpp"
#include "src/tools/bench/command_line.hpp"
#include "src/tools/bench/output.hpp"
#include "src/tools/bench/product.hpp"
#include "src/tools/bench/shapes.hpp"
#include "src/tools/tune/calibrate.hpp"
#include "src/tools/tune/traces.hpp"
#include "src/tools/tune/tuner.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace hg::bench;

volatile std::sig_atomic_t interrupted = 0;

// The first signal of a kind ends the work in order, the second at once.
void end_in_order_on(int signal)
{
    struct sigaction old;
    if (signal == SIGHUP && sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
        return;  // under nohup
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESTART | SA_RESETHAND;
    sigaction(signal, &action, nullptr);
}

// Products of one kernel each.
std::vector<Product> products_of(const Selection& selection)
{
    std::vector<Product> products = select(selection);
    for (const Product& product : products)
        if (product.output.has(Output::Gated))
            throw std::runtime_error("gated outputs are not tuned: leave --output gated out");
        else if (product.output.has(Output::Symmetric))
            throw std::runtime_error(
                "a symmetric output is computed by several kernels, which are tuned each by "
                "itself: leave --output symmetric out");
    return products;
}

void add_products_of(const std::vector<std::string>& logs, const Selection& selection,
                     std::vector<Product>& products)
{
    for (const std::string& path : logs) {
        std::ifstream file(path);
        const Traced traced = read_traces(file, selection.offset, selection.pad);
        if (!file.is_open() || file.bad())
            throw std::runtime_error("cannot read " + path);
        products.insert(products.end(), traced.products.begin(), traced.products.end());
        if (traced.not_understood > 0)
            fmt::print(stderr, "{}: {} commands are not understood\n", path, traced.not_understood);
    }
}

// Without --out the file that the library would read.
std::string file_of_library()
{
    const char* const named = hg::environment("HGEMM_TUNING");
    const std::string path = named ? named : "";
    return path == "off" ? "" : path;
}

int run(int argc, char** argv)
{
    CLI::App app("Measures which kernels are the fastest for products on this GPU, and writes them to the "
                 "tuning file that the library reads.");
    Selection selection;
    TuneOptions options;
    std::vector<std::string> logs;
    options.device.baselines = false;
    options.device.min_launches = 4;
    options.out = file_of_library();
    add_selection(app, selection);
    add_outputs(app, selection);
    app.add_option("--log", logs, "Logs of HGEMM_LOG=trace, whose products are measured too")
        ->check(CLI::ExistingFile);
    app.add_flag("--batch-invariant", options.batch_invariant, "For batch-invariant mode");
    app.add_option("--candidates", options.candidates, "Kernels with settings to measure for a product")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--rounds", options.rules.max_rounds, "Times that each is timed at most")
        ->check(CLI::Range(hg::duel_rounds, 1000))
        ->capture_default_str();
    app.add_option("--sets", options.device.max_sets, "Maximum number of sets of operands to rotate over")
        ->check(CLI::Range(1, 1024));
    app.add_option("--launches", options.device.min_launches, "Minimum number of launches in a graph")
        ->check(CLI::Range(1, 10000));
    app.add_option("--budget", options.device.budget_s, "Stop cleanly before so many seconds have passed");
    app.add_option("--out", options.out, "File to write instead of the one that the library reads");
    app.add_flag("--dry-run", options.dry_run, "Write nothing");
    app.add_option("--seed", options.seed, "Of the orders in which candidates take turns");
    bool calibrates = false;
    CalibrateOptions calibration;
    auto* const flag = app.add_flag("--calibrate", calibrates,
                                    "Fit the library's expectations to this GPU instead, in two minutes or "
                                    "--budget, so that it chooses better for all products");
    app.add_option("--backend", calibration.backend, "Calibrate this backend alone")->needs(flag);
    app.add_flag("--always", calibration.always, "Write a calibration that is not better, too")
        ->needs(flag);
    if (const std::optional<int> status = parse(app, argc, argv))
        return *status;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        end_in_order_on(signal);
    if (calibrates) {
        constexpr double usual_budget_s = 120;
        calibration.products = products_of(selection);
        add_products_of(logs, selection, calibration.products);
        calibration.device = options.device;
        calibration.out = options.out;
        calibration.dry_run = options.dry_run;
        if (calibration.device.budget_s <= 0)
            calibration.device.budget_s = usual_budget_s;
        return calibrate(calibration, interrupted);
    }
    options.products = products_of(selection);
    add_products_of(logs, selection, options.products);
    if (options.products.empty())
        throw std::runtime_error("no products: name some by --shapes, --set, --file or --log");
    return tune(options, interrupted);
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "hgemm-tune: {}\n", error.what());
        return 2;
    }
}
