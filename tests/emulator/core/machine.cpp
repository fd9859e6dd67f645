// The machine: may this kernel be launched so, and then run it.
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
    Launch actual = launch;
    if (program.kernel->cluster[0] && launch.cluster.count() == 1)
        actual.cluster = dim(program.kernel->cluster);
    check_block(program, actual);
    check_cluster(program, actual, config.cc);
    check_sizes(program, actual, config);
    checker.begin_launch(config.dependent && launch.overlaps);
    flags.clear();
    progress = steps;
    Scheduler(*this, program, actual).run();
    if (!checker.front_awaited())
        report_unawaited(program, reports);
}

}  // namespace emu
