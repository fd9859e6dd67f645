// Options that the benchmark's programs share.
#pragma once

#include "src/tools/bench/output.hpp"
#include "src/tools/bench/shapes.hpp"

#include <CLI/CLI.hpp>
#include <hgemm.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace hg::bench {

inline void add_selection(CLI::App& app, Selection& s)
{
    app.add_option("--shapes", s.shapes,
                   "MxNxK or MxNxKxBATCH, ...: row-major D (MxN) = A * B, summed over K");
    app.add_option("--file", s.files,
                   "Files with one such a line, or CSV with columns m, n, k and maybe batch")
        ->check(CLI::ExistingFile);
    app.add_option("--set", s.sets, "square, llm, grid, odd, mirror, batch, all")->delimiter(',');
    app.add_option("--sample", s.sample, "How many of the grid's 1000 points, and the seed: 160/1");
    app.add_option("--dtype", s.dtype, "f16, bf16 or both")->check(CLI::IsMember({"f16", "bf16", "both"}));
    app.add_option(
           "--layout", s.layouts,
           "tn: A and B are contiguous along k; nn: A along m, B along k; nt: A along m, B along n; "
           "tt: A along k, B along n")
        ->delimiter(',')
        ->check(CLI::IsMember({"tn", "nn", "nt", "tt"}));
    app.add_option("--offset", s.offset, "Elements between 256-byte alignment and A, B and D")
        ->check(CLI::Range(0, 127));
    app.add_option("--pad", s.pad, "Elements between the lines of A, B and D")->check(CLI::Range(0, 4096));
}

// Nothing if the program goes on; else how it ends: 0 after --help and --version, 2 if something is wrong.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv)
{
    app.set_version_flag("--version", hgemm_build_info());
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return std::nullopt;
}

// What is wrong with an output's text; "" for nothing.
inline std::string wrong_with_output(const std::string& text)
{
    try {
        const Output output(text);
        return "";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

inline void add_outputs(CLI::App& app, Selection& selection)
{
    app.add_option("--output", selection.outputs,
                   "plain, or of f32, beta, bias, relu, gelu, silu, aux, symmetric, gated, joined by '+'")
        ->delimiter(',')
        ->check(CLI::Validator(wrong_with_output, "OUTPUT"));
}

}  // namespace hg::bench
