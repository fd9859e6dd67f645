// sm100-evidence: what can be said of the kernels of sm100 without the hardware.
#include "arch/sm100/kernels.hpp"
#include "ladder.hpp"
#include "src/tools/bench/picture.hpp"
#include "src/tools/bench/shapes.hpp"
#include "tables.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

namespace hg::evidence {
namespace {

constexpr const char* about_model = R"(
Nothing here was measured by this project. The model is `arch/sm100/model.cpp`, and the dispatcher uses
the same.

- Seven of its constants were fitted to the kernels marked so, and the clock to what NVIDIA/tilus
  publishes of v0 to v6: these prove less than the others.
- NVIDIA/tilus tunes its kernels and does not publish with which tiles; up to v5 these are taken as 128 x
  256 x 64 with four stages, one CTA an SM. The clocks of the book were locked, at what is not said; the
  model takes its own.
- Steps that change nothing the model knows (tile order, small details) are 1.00 in it.
- Not modelled: operands that L2 does not hold, and so the order of tiles; what differs from machine to
  machine, which is 13 % for cuBLAS at 8192.
- Steps 2, 5 and 6 of the book have no published time.
)";

void write(const std::string& path, const std::string& text)
{
    std::ofstream file(path);
    file << text;
    if (!file.flush())
        throw std::runtime_error(fmt::format("cannot write '{}'", path));
}

std::vector<Choice> choices_of(const char* set)
{
    bench::Selection selection;
    selection.sets = {set};
    std::vector<Choice> choices;
    for (const bench::Product& product : bench::select(selection))
        choices.push_back(choice_for(product));
    return choices;
}

std::string budgets(const std::string& build)
{
    std::vector<Budget> budgets;
    std::vector<Counts> counts;
    const std::string image = build + "/arch/sm100_sm100";
    for (int kernel = 0; kernel < sm100::kernel_count; ++kernel) {
        budgets.push_back(budget_of(image + ".ptxas.log", sm100::kernels[kernel].name));
        counts.push_back(count(image + ".fatbin", kernel));
    }
    return "# Kernels of sm100: budgets and counts\n\n"
           "Registers, spills and stack: ptxas, for `sm_100f`. The rest of the first table: the build.\n"
           "The second: one launch on the emulated device, of seven tiles for persistent kernels and of "
           "one\n"
           "for split-K, with few k tiles and partial tiles at the edges. TMA bytes and flop are as if "
           "tiles\n"
           "were whole; a wait that has to try again counts again.\n\n" +
           budget_table(budgets, counts);
}

std::string model(const std::vector<Choice>& squares, const std::vector<Choice>& layers)
{
    return "# sm100: the model against published measurements\n" + std::string(about_model) +
           "\n## Published kernels\n\n" + ladder_table() +
           "\nThe same where a source publishes how busy tensor cores were, and the clock:\n\n" +
           clock_table() +
           "\n## Cycles of this library's kernels\n\n"
           "Of an SM, for a k tile of 64: the largest of multiply, load, read and round / stages. With "
           "two\n"
           "accumulators the epilogue is hidden behind the products of a tile from this k on; else it "
           "comes on\n"
           "top of each tile.\n\n" +
           cycle_table() + "\n## Predicted: squares\n\n" + square_table(squares) +
           "\n## Predicted: layers of language models, microseconds over tokens\n\n" + layer_table(layers);
}

// What an SM can do at most in the model: pairs that never wait, at the clock that this leaves.
double peak_flops()
{
    const sm100::Pipeline pipeline{
        2, 256, 256, 64, 6, sm100::Overlap::Products, true, 2, sm100::Store::Boxes};
    const int64_t deep = int64_t{1} << 30;
    const double ghz = predict_pipeline(pipeline, {sm_count / 2, deep, 0, 0}, sm_count).ghz;
    return std::round(ghz * sm_count * 8.192) * 1e12;
}

int run(int argc, char** argv)
{
    CLI::App app("Writes sm100_budgets.md, sm100_model.md, sm100_predicted.csv and sm100_roofline.svg.");
    std::string build, out = ".";
    app.add_option("--build", build, "Build folder; without it no budgets are written");
    app.add_option("--out", out, "Folder to write to")->check(CLI::ExistingDirectory);
    CLI11_PARSE(app, argc, argv);
    const std::vector<Choice> squares = choices_of("square");
    const std::vector<Choice> layers = choices_of("llm");
    std::vector<Choice> all = squares;
    all.insert(all.end(), layers.begin(), layers.end());
    if (!build.empty())
        write(out + "/sm100_budgets.md", budgets(build));
    write(out + "/sm100_model.md", model(squares, layers));
    write(out + "/sm100_predicted.csv", csv(all));
    write(out + "/sm100_roofline.svg", bench::roofline(as_run(all), {peak_flops(), sm100::memory_rate}));
    return 0;
}

}  // namespace
}  // namespace hg::evidence

int main(int argc, char** argv)
{
    try {
        return hg::evidence::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "sm100-evidence: {}\n", error.what());
        return 2;
    }
}
