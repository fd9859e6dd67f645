#include "mutation/trial.hpp"

#include <chrono>

namespace mutation {
namespace {

uint64_t hash_of(const std::vector<Setup::Result>& results)
{
    uint64_t hash = 1469598103934665603u;
    for (const Setup::Result& result : results)
        for (size_t i = 0; i < result.count; ++i)
            hash = (hash ^ result.bytes[i]) * 1099511628211u;
    return hash;
}

void run(Trial& trial, emu::Machine& machine, const Kernel& kernel, const std::string& text, int shape,
         bool verify)
{
    const emu::LoadedModule module(machine, text, kernel.name);
    const emu::Program* program = module.find(kernel.name);
    if (!program)
        throw emu::ptx::Error("no kernel");
    const Setup setup = kernel.arrange(machine, kernel.name, shape);
    machine.run(*program, setup.launch);
    trial.results = hash_of(setup.results);
    for (const auto& [line, count] : machine.statistics.lines)
        trial.executed.push_back(line);
    for (const int line : machine.statistics.group_waits)
        trial.group_waits.push_back(line);
    trial.correct = !verify || !setup.is_correct || setup.is_correct();
}

}  // namespace

Trial run_trial(const Kernel& kernel, const std::string& text, int shape, uint64_t seed, bool verify)
{
    emu::Config config;
    config.cc = kernel.cc;
    config.seed = seed;
    config.arithmetic = emu::Arithmetic::Fast;
    config.dependent = true;
    emu::Machine machine(config);
    machine.reports.stop_at_first();
    Trial trial;
    const auto start = std::chrono::steady_clock::now();
    try {
        run(trial, machine, kernel, text, shape, verify);
    } catch (const emu::Fault& fault) {
        trial.kind = fault.kind;
        trial.message = fault.what();
    } catch (const emu::ptx::Error& error) {
        trial.kind = "refused";
        trial.message = error.what();
    }
    trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return trial;
}

}  // namespace mutation
