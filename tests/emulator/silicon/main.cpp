// emulator-silicon: generated kernels, one line of "family seed hash" each. The same program runs on a GPU
// and on the emulator; what differs is a defect of the emulator.
#include "suite.hpp"

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>

using namespace emu::silicon;

namespace {

struct Options {
    std::string out, dump, family, reference;
    int seed = -1;
};

int run(const Options& options)
{
    const Results results = run_jobs(select_jobs(options.family, options.seed), options.dump);
    std::FILE* file = options.out.empty() ? stdout : std::fopen(options.out.c_str(), "w");
    if (!file)
        throw std::runtime_error("cannot write " + options.out);
    std::string header = results.device;
    for (char& c : header)
        c = c == ';' ? '\n' : c;
    fmt::print(file, "{}# date: {:%Y-%m-%d}\n", header, fmt::gmtime(std::time(nullptr)));
    int failed = 0;
    for (const Outcome& outcome : results.outcomes) {
        fmt::print(file, "{} {} {}\n", outcome.job.family->name, outcome.job.seed, outcome.text);
        failed += outcome.failed();
    }
    if (file != stdout)
        std::fclose(file);
    fmt::print(stderr, "{} kernels, {} failed\n", results.outcomes.size(), failed);
    return 0;
}

// "family seed" -> what was recorded.
std::map<std::string, std::string> read_reference(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error("cannot read " + path);
    std::map<std::string, std::string> recorded;
    for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(' '), second = line.find(' ', first + 1);
        if (!line.empty() && line[0] != '#' && second != std::string::npos)
            recorded[line.substr(0, second)] = line.substr(second + 1);
    }
    return recorded;
}

// Kernels whose results are those of the record, and kernels that the same error ended.
struct Count {
    int values = 0, errors = 0, total = 0;
};

void print_count(const std::string& name, const Count& count)
{
    fmt::print("{:20} {:8} {:8} {:8}\n", name, count.total, count.values, count.errors);
}

int compare(const Options& options)
{
    const auto recorded = read_reference(options.reference);
    const Results results = run_jobs(select_jobs(options.family, options.seed), options.dump);
    std::map<std::string, Count> table;
    Count all;
    for (const Outcome& outcome : results.outcomes) {
        const std::string key = fmt::format("{} {}", outcome.job.family->name, outcome.job.seed);
        const auto found = recorded.find(key);
        const bool equal = found != recorded.end() && found->second == outcome.text &&
                           !outcome.text.starts_with("failed:");
        for (Count* count : {&table[outcome.job.family->name], &all}) {
            count->values += equal && !outcome.failed();
            count->errors += equal && outcome.failed();
            ++count->total;
        }
        if (!equal)
            fmt::print("differs: {}: {} here, {} recorded\n", key, outcome.text,
                       found == recorded.end() ? "nothing" : found->second);
    }
    fmt::print("{:20} {:>8} {:>8} {:>8}\n", "family", "kernels", "values", "errors");
    for (const auto& [name, count] : table)
        print_count(name, count);
    print_count("all", all);
    return all.values + all.errors == all.total && all.total > 0 ? 0 : 1;
}

int print(const Options& options)
{
    for (const Job& job : select_jobs(options.family, options.seed))
        fmt::print("{}", make_kernel(*job.family, job.seed).ptx);
    return 0;
}

int list()
{
    for (const Family& family : families())
        fmt::print("{} {}\n", family.name, family.seeds);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app("Generated kernels on a GPU and on the emulator, compared bit for bit");
    app.require_subcommand(1);
    Options options;
    CLI::App* running = app.add_subcommand("run", "Run kernels and write a line for each");
    running->add_option("--out", options.out, "The file to write; standard output if not given");
    CLI::App* comparing = app.add_subcommand("compare", "Run kernels and compare with a file of lines");
    comparing->add_option("reference", options.reference, "What `run` wrote on a GPU")->required();
    for (CLI::App* command : {running, comparing}) {
        command->add_option("--dump", options.dump, "A folder for raw outputs");
        command->add_option("--family", options.family, "This family alone");
        command->add_option("--seed", options.seed, "This seed alone");
    }
    CLI::App* printing = app.add_subcommand("print", "Print the PTX of a kernel");
    printing->add_option("family", options.family)->required();
    printing->add_option("seed", options.seed)->required();
    CLI::App* listing = app.add_subcommand("list", "Print the families and their numbers of seeds");
    CLI11_PARSE(app, argc, argv);
    try {
        if (*listing)
            return list();
        return *running ? run(options) : *comparing ? compare(options) : print(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 2;
    }
}
