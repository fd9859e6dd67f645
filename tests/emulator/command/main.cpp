// The command: programs that use CUDA, on an emulated GPU, with what their kernels do wrong.
#include "command/refused.hpp"
#include "command/run.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

using emu::command::RunOptions;

CLI::App* add_run(CLI::App& app, RunOptions& options)
{
    CLI::App* run = app.add_subcommand("run", "run a program on an emulated device");
    run->add_option("--arch", options.architecture,
                    "which device, such as sm_100; see 'ptxrace devices' (sm_90)");
    run->add_option("--check", options.check,
                    "0: nothing, 1: bounds and barriers, 2: races too, 3: also in global memory (2)")
        ->check(CLI::IsMember({"0", "1", "2", "3"}));
    run->add_option("--strict", options.strict,
                    "reports that make a launch fail: 'defects', or 1: departures too (0: none)")
        ->check(CLI::IsMember({"0", "1", "defects"}));
    run->add_option("--seed", options.seed, "another order of warps and of asynchronous operations (1)");
    run->add_option("--sms", options.sms, "multiprocessors (4)");
    run->add_option("--devices", options.devices, "how many devices there are (1)");
    run->add_flag("--overlap", options.overlap, "kernels that nothing orders run at the same time");
    run->add_option("--json", options.json, "write the reports to this file");
    run->add_option("--defect-status", options.defect_status,
                    "exit status where a fault or a defect was found (99)")
        ->check(CLI::Range(0, 255));
    run->add_flag("--anyway", options.anyway, "also a program that cannot find the emulator");
    run->add_flag("--quiet", options.quiet, "no summary");
    run->footer(
        "Then comes the program, with its arguments. All EMU_ variables of the environment hold, too.\n"
        "Exit status: the program's; 128 + N if signal N ended it; 99 if a fault or a defect was found;\n"
        "125 if ptxrace fails, 126 if the program cannot be executed, 127 if there is none.");
    return run;
}

// Where the program of `run` begins among the words, or their number: behind its own options, or behind "--".
size_t find_program(const CLI::App& run, const std::vector<std::string>& words)
{
    if (words.empty() || words[0] != "run")
        return words.size();
    size_t at = 1;
    while (at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at] != "--") {
        const std::string name = words[at].substr(0, words[at].find('='));
        const CLI::Option* option = run.get_option_no_throw(name);
        const bool takes_next = option && option->get_expected_min() > 0 && name == words[at];
        at += takes_next ? 2 : 1;
    }
    return std::min(at, words.size());
}

// Parses what is ptxrace's. What begins with the program is the program's alone.
void parse(CLI::App& app, CLI::App& run, std::vector<std::string> words, RunOptions& options)
{
    const size_t program = find_program(run, words);
    const size_t first = program < words.size() && words[program] == "--" ? program + 1 : program;
    options.program.assign(words.begin() + static_cast<ptrdiff_t>(first), words.end());
    words.resize(program);
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(words);
    if (run && options.program.empty())
        throw CLI::RequiredError("a program");
}

}  // namespace

int main(int count, char** values)
{
    CLI::App app("Runs CUDA programs on the CPU, and finds races in their kernels.", "ptxrace");
    RunOptions options;
    bool refused = false;
    app.set_version_flag("--version", PTXRACE_VERSION);
    app.add_flag("--refused", refused, "list instructions and functions that are refused");
    CLI::App* run = add_run(app, options);
    CLI::App* devices = app.add_subcommand("devices", "list the devices that can be emulated");
    CLI::App* libraries =
        app.add_subcommand("libraries", "print the folder of libcuda.so.1, for LD_LIBRARY_PATH");
    app.require_subcommand(0, 1);
    try {
        parse(app, *run, {values + 1, values + count}, options);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : emu::command::failed;
    }
    try {
        if (*run)
            return emu::command::run(options);
        if (refused)
            emu::command::print_refused();
        else if (*devices)
            emu::command::print_devices();
        else if (*libraries)
            std::cout << emu::command::library_folder() << "\n";
        else
            std::cout << app.help();
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "ptxrace: " << error.what() << "\n";
        return emu::command::failed;
    }
}
