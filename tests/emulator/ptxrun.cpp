// Runs one kernel of a PTX file on the emulator; prints what it executed and what is wrong with it.
#include "ptxrun.hpp"

#include "core/scheduler.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

struct Options {
    std::string file, kernel, arithmetic;
    std::string grid = "1", block = "1", cluster = "1";
    uint32_t shared = 0;
    std::vector<std::string> buffers, arguments, dumps;
    int top = 20;
    bool list = false, refused = false;
};

std::string read_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error(fmt::format("cannot read '{}'", path));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// "128", "16x8", "2,1,1"
emu::Dim3 dimensions(std::string text)
{
    std::replace(text.begin(), text.end(), 'x', ' ');
    std::replace(text.begin(), text.end(), ',', ' ');
    std::istringstream numbers(text);
    emu::Dim3 d;
    if (!(numbers >> d.x))
        throw std::runtime_error(fmt::format("'{}' is no size", text));
    numbers >> d.y&& numbers >> d.z;
    if (numbers.fail() && !numbers.eof())
        throw std::runtime_error(fmt::format("'{}' is no size", text));
    return d;
}

void print_statistics(const emu::Statistics& statistics, int top)
{
    std::vector<std::pair<std::string, uint64_t>> counts(statistics.opcodes.begin(),
                                                         statistics.opcodes.end());
    std::sort(counts.begin(), counts.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    uint64_t total = 0;
    for (const auto& count : counts)
        total += count.second;
    fmt::print("{} warp instructions of {} kinds\n", total, counts.size());
    for (size_t i = 0; i < counts.size() && i < static_cast<size_t>(top); ++i)
        fmt::print("{:12} {}\n", counts[i].second, counts[i].first);
    if (statistics.mma_flops)
        fmt::print("matrix operations: {} flop\n", statistics.mma_flops);
    if (statistics.tma_bytes)
        fmt::print("bulk copies: {} bytes\n", statistics.tma_bytes);
}

// Lines by the passes that conflicts cost.
void print_banks(const emu::Statistics& statistics, const emu::ptx::Module& module, int top)
{
    using Line = std::pair<int, emu::BankPasses>;
    std::vector<Line> lines(statistics.shared.begin(), statistics.shared.end());
    std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
        return a.second.passes - a.second.least > b.second.passes - b.second.least;
    });
    emu::BankPasses all;
    for (const auto& [line, banks] : lines) {
        all.accesses += banks.accesses;
        all.passes += banks.passes;
        all.least += banks.least;
    }
    const auto print = [](const emu::BankPasses& banks) {
        fmt::print("{} accesses, {} wavefronts of at least {}, degree {:.2f}", banks.accesses, banks.passes,
                   banks.least, static_cast<double>(banks.passes) / static_cast<double>(banks.least));
    };
    if (lines.empty())
        return;
    fmt::print("shared memory: ");
    print(all);
    fmt::print("\n");
    for (size_t i = 0; i < lines.size() && i < static_cast<size_t>(top); ++i) {
        fmt::print("  ");
        print(lines[i].second);
        fmt::print(", line {}: {}\n", lines[i].first, emu::ptx::source_line(module, lines[i].first));
    }
}

void dump(const emu::Arguments& arguments, const std::string& what)
{
    const size_t equals = what.find('=');
    const auto buffer = arguments.buffers().find(what.substr(0, equals));
    if (equals == what.npos || buffer == arguments.buffers().end())
        throw std::runtime_error(fmt::format("'{}': no such buffer to dump", what));
    std::ofstream file(what.substr(equals + 1), std::ios::binary);
    file.write(reinterpret_cast<const char*>(buffer->second.address),
               static_cast<std::streamsize>(buffer->second.bytes));
    if (!file)
        throw std::runtime_error(fmt::format("cannot write '{}'", what.substr(equals + 1)));
}

void list_kernels(const emu::LoadedModule& module)
{
    for (const emu::ptx::Kernel& known : module.module().kernels) {
        const emu::ptx::Kernel& kernel = *module.kernel(known.name);
        fmt::print("{}: {} parameters of {} bytes, {} bytes of shared memory, {} instructions\n",
                   kernel.name, kernel.parameters.size(), kernel.parameter_bytes, kernel.shared_bytes,
                   kernel.instructions.size());
    }
}

std::vector<uint8_t> parameters(emu::Arguments& arguments, const emu::Program& program,
                                const std::vector<std::string>& descriptions)
{
    try {
        return arguments.parameters(*program.kernel, descriptions);
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("{}\n  in {}, {}", error.what(), program.kernel->name,
                                             emu::source_text(program, program.kernel->line)));
    }
}

// Is there anything that cannot be run?
bool print_refused(const std::string& file)
{
    const std::vector<std::string> refused = emu::list_refused(read_file(file), file);
    for (const std::string& text : refused)
        fmt::print("{}\n", text);
    fmt::print("{} instructions and declarations are refused\n", refused.size());
    return !refused.empty();
}

// Is anything wrong that ends in status 1: without EMU_STRICT=defects, all but what is harmless?
bool any_fails(const emu::ReportCounts& counts, emu::Strict strict)
{
    bool any = false;
    for (size_t i = 0; i < emu::report_classes; ++i)
        any |= counts[i] != 0 && emu::fails(static_cast<emu::ReportClass>(i),
                                            strict == emu::Strict::Off ? emu::Strict::Document : strict);
    return any;
}

bool run(const Options& options, const emu::Config& config)
{
    if (options.refused)
        return print_refused(options.file);
    emu::Machine machine(config);
    emu::LoadedModule module(machine, read_file(options.file), options.file);
    if (const std::string note = module.newer_version(); !note.empty())
        std::cerr << note << "\n";
    if (options.list)
        return list_kernels(module), false;
    const auto& kernels = module.module().kernels;
    if (options.kernel.empty() && kernels.size() != 1)
        throw std::runtime_error(fmt::format("--kernel must name one of {} kernels", kernels.size()));
    const emu::Program* program = module.find(options.kernel.empty() ? kernels[0].name : options.kernel);
    if (!program)
        throw std::runtime_error(fmt::format("no kernel '{}'", options.kernel));
    emu::Arguments arguments(machine);
    for (const std::string& buffer : options.buffers)
        arguments.add_buffer(buffer);
    emu::Launch launch;
    launch.grid = dimensions(options.grid);
    launch.block = dimensions(options.block);
    launch.cluster = dimensions(options.cluster);
    launch.dynamic_shared = options.shared;
    launch.parameters = parameters(arguments, *program, options.arguments);
    const auto start = std::chrono::steady_clock::now();
    std::string fault;
    try {
        machine.run(*program, launch);
    } catch (const emu::Fault& thrown) {
        if (thrown.kind == "invalid-launch")
            throw;
        fault = thrown.what();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (!fault.empty())
        fmt::print("fault: {}\n", fault);
    fmt::print("{} ran in {:.3f} s\n", program->kernel->name, seconds.count());
    for (const std::string& what : options.dumps)
        dump(arguments, what);
    print_statistics(machine.statistics, options.top);
    print_banks(machine.statistics, module.module(), options.top);
    for (const std::string& text : emu::digest(machine.reports.all()))
        fmt::print("{}\n", text);
    fmt::print("{}\n", emu::tally(machine.reports.places()));
    return !fault.empty() || any_fails(machine.reports.places(), config.strict);
}

}  // namespace

int main(int count, char** values)
{
    CLI::App app("Runs a kernel of a PTX file on an emulated GPU. The device is described by EMU_ARCH, "
                 "EMU_SM_COUNT, "
                 "EMU_CHECK, EMU_SEED and so on.");
    Options options;
    app.add_option("file", options.file, "PTX text")->required();
    app.add_option("--kernel", options.kernel, "its name, where there are several");
    app.add_option("--grid", options.grid, "thread blocks: X, XxY or XxYxZ");
    app.add_option("--block", options.block, "threads of a block");
    app.add_option("--cluster", options.cluster, "blocks of a cluster");
    app.add_option("--smem", options.shared, "bytes of dynamic shared memory");
    app.add_option("--buffer", options.buffers,
                   "device memory for tensor maps and pointers: NAME:BYTES[:FILLING]");
    app.add_option("--arg", options.arguments, "a kernel parameter, see below");
    app.add_option("--dump", options.dumps, "BUFFER=FILE, afterwards");
    app.add_option("--top", options.top, "instructions to list");
    app.add_flag("--list", options.list, "list the kernels and stop");
    app.add_flag("--refused", options.refused, "list what is not emulated and stop");
    app.footer(emu::Arguments::help());
    CLI11_PARSE(app, count, values);
    try {
        return run(options, emu::Config::from_environment()) ? 1 : 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 2;
    }
}
