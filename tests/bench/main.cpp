// hgemm-bench: shows the library at work and measures it.
#include "compare.hpp"
#include "demo.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <exception>

namespace {

using namespace hg::bench;

int run(int argc, char** argv)
{
    CLI::App app("Shows libhgemm at work and measures it. Without a subcommand: demo.");
    app.add_subcommand("demo", "Multiply, check and time a handful of shapes on the GPU or the CPU");
    CLI::App* comparing = app.add_subcommand("compare", "Measure beside cublasGemmEx on the GPU");
    app.require_subcommand(0, 1);

    std::string shapes, set, dtype = "f16", layout = "tn";
    CompareOptions options{{}, 7, "", ""};
    comparing->add_option("--shapes", shapes, "MxNxK,...: row-major D (MxN) = A * B, summed over K");
    comparing->add_option("--set", set, "square, llm, odd or a file with one MxNxK or M,N,K a line");
    comparing->add_option("--dtype", dtype, "f16 or bf16")->check(CLI::IsMember({"f16", "bf16"}));
    comparing
        ->add_option("--layout", layout, "tn: A and B contiguous along k; n.: A along m; .t: B along n")
        ->check(CLI::IsMember({"tn", "nn", "nt", "tt"}));
    comparing->add_option("--pairs", options.pairs, "Interleaved pairs a shape")
        ->check(CLI::Range(7, 10000));
    comparing->add_option("--csv", options.csv, "File to write the measurements to");
    comparing->add_option("--cublas", options.cublas,
                          "Path of libcublas, if the dynamic linker cannot find it");
    CLI11_PARSE(app, argc, argv);

    if (!*comparing)
        return demo();
    const hgemm_type_t type = dtype == "f16" ? HGEMM_F16 : HGEMM_BF16;
    options.products = parse_shapes(shapes, type, layout);
    if (!set.empty() || shapes.empty())
        for (const Product& product : shape_set(set.empty() ? "square" : set, type, layout))
            options.products.push_back(product);
    return compare(options);
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
