// mma-sync-evidence: what the cost model of sm80 and sm120 says of GPUs that nobody here has.
#include "problem_of.hpp"
#include "src/plan/dispatch.hpp"
#include "src/tools/bench/shapes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

namespace hg::evidence {
namespace {

// What the driver would say of a GPU.
struct Card {
    const char* name;
    int cc, sm_count, smem_kib;
    int64_t gb_per_s;
};
constexpr Card cards[] = {
    {"NVIDIA A100-SXM4-80GB", 80, 108, 163, 2039},
    {"NVIDIA L40S", 89, 142, 99, 864},
    {"NVIDIA GeForce RTX 4090", 89, 128, 99, 1008},
    {"NVIDIA GeForce RTX 5090", 120, 170, 99, 1792},
};

Device device_of(const Card& card)
{
    Device device{};
    device.cc = card.cc;
    device.sm_count = card.sm_count;
    device.smem_per_block = card.smem_kib * 1024;
    device.memory_bandwidth = card.gb_per_s * 1'000'000'000;
    std::strncpy(device.name, card.name, sizeof device.name - 1);
    return device;
}

Plan plan_for(const Device& device, const bench::Product& product)
{
    Options options{};
    const Backend* backends[max_backends];
    int count = 0;
    Plan plan{};
    if (find_backends(device, options, backends, count) != ok)
        throw std::runtime_error(fmt::format("no backend serves {}", device.name));
    const std::span<const Backend* const> found(backends, static_cast<size_t>(count));
    for (const Backend* backend : found)
        options.workspace = std::max(options.workspace, backend->default_workspace(device));
    options.counters = counter_words(device, found, options.workspace);
    if (make_plan(problem_of(product), device, options, found, plan) != ok)
        throw std::runtime_error(fmt::format("{}: {}", product.shape(), hgemm_last_error()));
    return plan;
}

int run(int argc, char** argv)
{
    CLI::App app("Writes the times that the model of mma.sync kernels predicts on several GPUs, as CSV.");
    std::string out = "mma_sync_predicted.csv";
    bench::Selection selection;
    selection.sets = {"square", "llm"};
    app.add_option("--out", out, "File to write to");
    app.add_option("--set", selection.sets, "Sets of products, as hgemm-bench has them");
    CLI11_PARSE(app, argc, argv);
    std::ofstream file(out);
    file << "# predicted by arch/common/host/mma_sync_model.cpp; nothing was measured\n"
            "device,m,n,k,kernel,split,us,tflops\n";
    for (const Card& card : cards)
        for (const bench::Product& product : bench::select(selection)) {
            const Plan plan = plan_for(device_of(card), product);
            file << fmt::format("{},{},{},{},{},{},{:.2f},{:.1f}\n", card.name, product.m, product.n,
                                product.k, plan.backend->kernels[plan.kernel].name, plan.split,
                                plan.predicted_us, product.flops() / plan.predicted_us * 1e-6);
        }
    if (!file.flush())
        throw std::runtime_error(fmt::format("cannot write '{}'", out));
    return 0;
}

}  // namespace
}  // namespace hg::evidence

int main(int argc, char** argv)
{
    try {
        return hg::evidence::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "mma-sync-evidence: {}\n", error.what());
        return 2;
    }
}
