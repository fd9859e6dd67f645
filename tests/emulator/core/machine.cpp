// The machine: may this kernel be launched so, and then run it.
#include "core/execution.hpp"
#include "core/scheduler.hpp"

namespace emu {
namespace {

[[noreturn]] void refuse_launch(const Program& program, const std::string& why)
{
    throw Fault("invalid-launch", "invalid-launch: " + why + "\n  in " + program.kernel->name + ", " +
                                      source_text(program, program.kernel->line));
}

std::string text(const Dim3& d)
{
    return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

Dim3 dim(const int (&d)[3])
{
    return {static_cast<uint32_t>(d[0]), static_cast<uint32_t>(d[1]), static_cast<uint32_t>(d[2])};
}

bool equal(const Dim3& a, const Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

void check_block(const Program& program, const Launch& launch)
{
    const ptx::Kernel& kernel = *program.kernel;
    const Dim3& block = launch.block;
    if (block.count() == 0 || block.count() > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64)
        refuse_launch(program, "block of " + text(block) + " threads");
    if (kernel.required_threads[0] && !equal(block, dim(kernel.required_threads)))
        refuse_launch(program, "block of " + text(block) + " threads where .reqntid asks for " +
                                   text(dim(kernel.required_threads)));
    if (kernel.max_threads[0] && block.count() > dim(kernel.max_threads).count())
        refuse_launch(program, "block of " + text(block) + " threads exceeds .maxntid");
}

void check_cluster(const Program& program, const Launch& launch, int cc)
{
    const Dim3 &cluster = launch.cluster, &grid = launch.grid;
    if (grid.count() == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
        refuse_launch(program, "grid of " + text(grid) + " blocks");
    if (cluster.count() == 0 || cluster.count() > 16)
        refuse_launch(program, "cluster of " + text(cluster) + " blocks");
    if (cluster.count() > 1 && cc < 90)
        refuse_launch(program, "clusters need sm_90");
    if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
        refuse_launch(program,
                      "grid of " + text(grid) + " is not a multiple of the cluster " + text(cluster));
    const ptx::Kernel& kernel = *program.kernel;
    if (kernel.cluster[0] && !equal(cluster, dim(kernel.cluster)))
        refuse_launch(program, "cluster of " + text(cluster) + " where the kernel asks for " +
                                   text(dim(kernel.cluster)));
}

void check_sizes(const Program& program, const Launch& launch, const Config& config)
{
    const int64_t shared = program.kernel->shared_bytes + launch.dynamic_shared;
    if (shared > config.smem_optin)
        refuse_launch(program, std::to_string(shared) + " bytes of shared memory of " +
                                   std::to_string(config.smem_optin) + " there are");
    if (static_cast<int64_t>(launch.parameters.size()) < program.kernel->parameter_bytes)
        refuse_launch(program, std::to_string(launch.parameters.size()) + " bytes of parameters of " +
                                   std::to_string(program.kernel->parameter_bytes));
}

// The launch behind this one would wait for this one alone, and might come before those in front of it.
void report_unawaited(const Program& program, Reports& reports)
{
    Report report;
    report.kind = "unawaited-launch";
    report.kernel = program.kernel->name;
    report.line = program.kernel->line;
    report.text = "no thread has waited for the launches in front (griddepcontrol.wait)";
    reports.add(report);
}

}  // namespace

Machine::Machine(const Config& c) : config(c), memory(c.memory), random(c.seed)
{
    checker.configure(c.check);
}

void Machine::run(const Program& program, const Launch& launch)
{
    Execution execution(*this, program, launch, std::make_shared<Multiprocessors>(config.free_of(config.sm_count)));
    constexpr uint64_t many = 4096;
    for (;;) {
        const Turn turn = execution.advance(many);
        if (turn == Turn::Ended)
            return;
        if (turn == Turn::Stuck)
            throw Fault("deadlock", execution.stuck());
    }
}

Execution::Execution(Machine& machine, const Program& program, const Launch& launch,
                     std::shared_ptr<Multiprocessors> multiprocessors)
    : machine_(machine)
{
    Launch actual = launch;
    if (program.kernel->cluster[0] && launch.cluster.count() == 1)
        actual.cluster = dim(program.kernel->cluster);
    check_block(program, actual);
    check_cluster(program, actual, machine.config.cc);
    check_sizes(program, actual, machine.config);
    if (machine.spare_checkers.empty()) {
        checker_ = std::make_unique<Checker>(&machine.reports);
    } else {
        checker_ = std::move(machine.spare_checkers.back());
        machine.spare_checkers.pop_back();
    }
    checker_->configure(machine.checker.level());
    checker_->begin_launch(machine.config.dependent && launch.overlaps);
    scheduler_ = std::make_unique<Scheduler>(machine, program, actual, std::move(multiprocessors));
}

Execution::~Execution()
{
    scheduler_ = nullptr;
    machine_.spare_checkers.push_back(std::move(checker_));
}

void Execution::enter()
{
    machine_.checker.swap(*checker_);
    machine_.flags.swap(flags_);
    machine_.progress = machine_.steps - idle_;
    machine_.polls = polls_;
}

void Execution::leave()
{
    machine_.checker.swap(*checker_);
    machine_.flags.swap(flags_);
    idle_ = machine_.steps - machine_.progress;
    polls_ = machine_.polls;
}

Turn Execution::advance(uint64_t turns)
{
    const struct Inside {
        explicit Inside(Execution& of) : of(of) { of.enter(); }
        ~Inside() { of.leave(); }
        Execution& of;
    } inside(*this);
    const Turn turn = scheduler_->advance(turns);
    if (turn == Turn::Ended && !machine_.checker.front_awaited())
        report_unawaited(scheduler_->program(), machine_.reports);
    return turn;
}

std::string Execution::stuck() const { return scheduler_->stuck(); }

}  // namespace emu
