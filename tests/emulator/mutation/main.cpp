// Mutation tests of the emulator: takes working kernels, breaks each in all ways that the rules know, and
// counts how many of the broken ones the emulator's checks or a wrong result give away.
#include "mutation/farm.hpp"
#include "mutation/table.hpp"
#include "mutation/trial.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

namespace mutation {
namespace {

struct Options {
    std::string build = ".", images, filter, instruction, list, totals;
    int at_once = 2, seconds = 60, seeds = 3, sample = 0;
    double required = 95;
    bool verbose = false;
};

// A kernel as it was before.
struct Subject {
    const Kernel* kernel;
    std::vector<std::string> lines;
    struct Shape {
        uint64_t results = 0;
        double seconds = 0;
        std::vector<bool> executed, waited;  // by line
    };
    std::vector<Shape> shapes;
};

std::string describe(const Trial& trial)
{
    if (!trial.kind.empty() || !trial.correct)
        return "- " + (trial.correct ? trial.message : "the results are wrong");
    std::string text = fmt::format("{} {}", trial.results, trial.seconds);
    for (const std::vector<int>& list : {trial.executed, trial.group_waits}) {
        text += fmt::format(" {}", list.size());
        for (const int line : list)
            text += fmt::format(" {}", line);
    }
    return text;
}

void read_lines(std::istream& words, std::vector<bool>& lines)
{
    size_t count = 0;
    words >> count;
    for (size_t line; count > 0 && words >> line; --count)
        lines[line - 1] = true;
}

std::string path_of(const Kernel& kernel, const Options& options)
{
    const std::string file = kernel.file;
    if (!file.ends_with(".fatbin"))
        return options.build + "/" + file;
    return (options.images.empty() ? options.build + "/arch" : options.images) + "/" + file;
}

// Runs the kernel as it is, at all seeds: every run must be free of reports and give the same results.
Subject make_subject(const Kernel& kernel, const Options& options)
{
    Subject subject{&kernel, kernel_lines(read_ptx(path_of(kernel, options), kernel.cc), kernel.name), {}};
    const std::string text = join(subject.lines);
    std::vector<Task> tasks;
    for (int shape = 0; shape < kernel.shapes; ++shape)
        for (int seed = 1; seed <= options.seeds; ++seed)
            tasks.push_back([&kernel, &text, shape, seed] {
                return describe(run_trial(kernel, text, shape, static_cast<uint64_t>(seed), true));
            });
    const std::vector<bool> none(subject.lines.size());
    subject.shapes.resize(kernel.shapes, {0, 0, none, none});
    run_tasks(tasks, options.at_once, options.seconds, [&](size_t task, const Answer& answer) {
        std::istringstream words(answer.text);
        Subject::Shape& shape = subject.shapes[task / options.seeds];
        uint64_t results = 0;
        if (answer.late || answer.failed || !(words >> results >> shape.seconds))
            throw std::runtime_error(fmt::format("{} is not clean: {}", kernel.name, answer.text));
        if (shape.results && shape.results != results)
            throw std::runtime_error(fmt::format("{}: results depend on the seed", kernel.name));
        shape.results = results;
        read_lines(words, shape.executed);
        read_lines(words, shape.waited);
    });
    return subject;
}

Facts facts_of(const Subject& subject)
{
    const size_t count = subject.lines.size();
    Facts facts{std::vector<bool>(count), std::vector<bool>(count)};
    for (size_t line = 0; line < count; ++line) {
        bool waited = false;
        for (const Subject::Shape& shape : subject.shapes) {
            facts.executed[line] = facts.executed[line] || shape.executed[line];
            waited |= shape.waited[line];
        }
        facts.idle_waits[line] = !waited && parse_statement(subject.lines[line]).is("cp.async");
    }
    return facts;
}

// The shapes that reach a line, the quickest first.
std::vector<int> shapes_for(const Subject& subject, size_t line)
{
    std::vector<int> list;
    for (int shape = 0; shape < static_cast<int>(subject.shapes.size()); ++shape)
        if (subject.shapes[shape].executed[line])
            list.push_back(shape);
    std::sort(list.begin(), list.end(),
              [&](int a, int b) { return subject.shapes[a].seconds < subject.shapes[b].seconds; });
    return list;
}

// Until something is wrong: "<shape> <seed> <what>", or nothing.
std::string try_mutant(const Subject& subject, const Mutant& mutant, int seeds)
{
    std::vector<std::string> lines = subject.lines;
    lines[mutant.line] = mutant.text;
    for (const size_t line : mutant.gone)
        lines[line].clear();
    const std::string text = join(lines);
    for (int seed = 1; seed <= seeds; ++seed)
        for (const int shape : shapes_for(subject, mutant.line)) {
            const Trial trial = run_trial(*subject.kernel, text, shape, static_cast<uint64_t>(seed));
            const bool same = trial.results == subject.shapes[shape].results;
            if (trial.kind.empty() && same)
                continue;
            return fmt::format("{} {} {}\n{}", shape, seed,
                               trial.kind.empty() ? "wrong result" : trial.kind, trial.message);
        }
    return "";
}

std::vector<Mutant> mutants_of(const Subject& subject, const std::string& instruction)
{
    std::vector<Mutant> mutants = find_mutants(subject.lines, facts_of(subject));
    std::erase_if(mutants, [&](const Mutant& mutant) {
        return subject.lines[mutant.line].find(instruction) == std::string::npos;
    });
    return mutants;
}

// At most so many mutants of each kind and change, by subject. Each kind begins with another of the
// subjects that have it, and those of one subject are evenly spread over it.
std::vector<std::vector<Mutant>> sample(const std::vector<std::vector<Mutant>>& mutants, size_t most)
{
    std::map<std::string, std::map<size_t, std::vector<const Mutant*>>> alike;
    for (size_t subject = 0; subject < mutants.size(); ++subject)
        for (const Mutant& mutant : mutants[subject])
            alike[mutant.kind + mutant.change][subject].push_back(&mutant);
    std::vector<std::vector<Mutant>> chosen(mutants.size());
    size_t turn = 0;
    for (const auto& [name, subjects] : alike) {
        for (size_t i = 0; i < subjects.size(); ++i) {
            const auto& [subject, list] = *std::next(subjects.begin(), (turn + i) % subjects.size());
            const size_t share = (most + subjects.size() - 1 - i) / subjects.size();
            const size_t count = std::min(share, list.size());
            for (size_t j = 0; j < count; ++j)
                chosen[subject].push_back(*list[j * list.size() / count]);
        }
        ++turn;
    }
    return chosen;
}

std::vector<Result> try_all(const Subject& subject, const std::vector<Mutant>& mutants,
                            const Options& options)
{
    std::vector<Task> tasks;
    std::vector<Result> results;
    for (const Mutant& mutant : mutants) {
        tasks.push_back(
            [&subject, &mutant, &options] { return try_mutant(subject, mutant, options.seeds); });
        results.push_back({subject.kernel->name, mutant, subject.lines[mutant.line], "", -1, 0});
    }
    size_t ended = 0;
    run_tasks(tasks, options.at_once, options.seconds, [&](size_t task, const Answer& answer) {
        Result& result = results[task];
        std::istringstream text(answer.text);
        if (answer.failed)
            throw std::runtime_error(fmt::format("the emulator crashed: {} line {}, {}, {}", result.kernel,
                                                 result.mutant.line + 1, result.mutant.kind,
                                                 result.mutant.change));
        if (text >> result.shape >> result.seed)
            text.get(), std::getline(text, result.how);
        if (answer.late)
            result.how = "no end";
        if (options.verbose)
            fmt::print("{} line {}, {}, {}: {}\n  {}\n", result.kernel, result.mutant.line + 1,
                       result.mutant.kind, result.mutant.change, result.statement, answer.text);
        fmt::print(stderr, "\r{}: {} of {} mutants", result.kernel, ++ended, tasks.size());
    });
    fmt::print(stderr, "\n");
    std::stable_sort(results.begin(), results.end(),
                     [](const Result& a, const Result& b) { return a.mutant.line < b.mutant.line; });
    return results;
}

int run(const Options& options)
{
    std::vector<Subject> subjects;
    std::vector<std::vector<Mutant>> mutants;
    for (const Kernel& kernel : kernels()) {
        if (!std::string(kernel.name).starts_with(options.filter))
            continue;
        subjects.push_back(make_subject(kernel, options));
        mutants.push_back(mutants_of(subjects.back(), options.instruction));
    }
    if (options.sample > 0)
        mutants = sample(mutants, static_cast<size_t>(options.sample));
    std::vector<Result> results;
    for (size_t i = 0; i < subjects.size(); ++i)
        for (Result& result : try_all(subjects[i], mutants[i], options))
            results.push_back(std::move(result));
    if (!options.list.empty()) {
        std::ofstream file(options.list);
        write_list(file, results);
    }
    if (!options.totals.empty()) {
        std::ofstream file(options.totals);
        file << "# Mutants of every kernel in `kernels.cpp`\n\n";
        write_totals(file, results);
    }
    write_totals(std::cout, results);
    int contradicted = 0;
    for (const Result& r : results)
        if (!r.counts() && r.caught()) {
            fmt::print("Called equivalent, yet caught: {} line {}, {}: {}\n", r.kernel, r.mutant.line + 1,
                       r.mutant.equivalent, r.how);
            ++contradicted;
        }
    const Totals totals = totals_of(results);
    const bool enough = totals.all > 0 && 100.0 * totals.caught >= options.required * totals.all;
    return enough && contradicted == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mutation

int main(int count, char** values)
{
    CLI::App app(
        "Breaks working kernels in all ways that it knows and counts how many the emulator catches.");
    mutation::Options options;
    app.add_option("--build", options.build, "the build folder");
    app.add_option("--images", options.images,
                   "the folder with the library's kernels and their PTX, if not arch/ of that");
    app.add_option("--kernel", options.filter, "only kernels whose name begins with this");
    app.add_option("--instruction", options.instruction, "only mutants of lines that contain this");
    app.add_option("--sample", options.sample,
                   "so many mutants of each kind and change, of all these kernels together; 0: all");
    app.add_option("--seeds", options.seeds, "orders to try before a mutant counts as missed");
    app.add_option("--jobs", options.at_once, "processes at once");
    app.add_option("--seconds", options.seconds,
                   "of processor time after which a mutant counts as hanging");
    app.add_option("--required", options.required, "percentage to be caught");
    app.add_option("--list", options.list, "file for the list, CSV");
    app.add_option("--totals", options.totals, "file for the totals, Markdown");
    app.add_flag("--verbose", options.verbose, "print each mutant's report");
    CLI11_PARSE(app, count, values);
    try {
        return mutation::run(options);
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 2;
    }
}
