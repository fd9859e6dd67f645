#include "counts.hpp"

#include "arch/sm100/kernels.hpp"
#include "mutation/kernels.hpp"
#include "mutation/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace hg::evidence {
namespace {

int number_before(const std::string& line, const std::string& what)
{
    const size_t end = line.find(what);
    if (end == line.npos)
        return 0;
    const size_t start = line.find_last_not_of("0123456789", end - 1);
    return std::stoi(line.substr(start + 1, end - start - 1));
}

uint64_t sum_of(const emu::Statistics& statistics, const std::string& start, const std::string& part = "")
{
    uint64_t sum = 0;
    for (const auto& [opcode, times] : statistics.opcodes)
        if (opcode.rfind(start, 0) == 0 && opcode.find(part) != opcode.npos)
            sum += times;
    return sum;
}

double bank_degree(const emu::Statistics& statistics)
{
    emu::BankPasses all;
    for (const auto& [line, banks] : statistics.shared) {
        all.passes += banks.passes;
        all.least += banks.least;
    }
    return all.least ? static_cast<double>(all.passes) / static_cast<double>(all.least) : 1;
}

}  // namespace

Budget budget_of(const std::string& log, const std::string& kernel)
{
    std::ifstream file(log);
    Budget budget;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line.find("Compiling entry function") != line.npos)
            inside = line.find("'" + kernel + "'") != line.npos;
        if (!inside)
            continue;
        budget.stack_bytes += number_before(line, " bytes stack");
        budget.spilled_bytes +=
            number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
        budget.registers = std::max(budget.registers, number_before(line, " registers"));
    }
    if (budget.registers == 0)
        throw std::runtime_error(fmt::format("{} says nothing of {}", log, kernel));
    return budget;
}

Counts count(const std::string& fatbin, int kernel)
{
    const sm100::Config& config = sm100::configs[kernel];
    const std::string name = sm100::kernels[kernel].name;
    emu::Config device;
    device.cc = 100;
    device.arithmetic = emu::Arithmetic::Fast;
    emu::Machine machine(device);
    const std::string text =
        mutation::join(mutation::kernel_lines(mutation::read_ptx(fatbin, device.cc), name));
    const emu::LoadedModule module(machine, text, name);
    const emu::Program* program = module.find(name);
    const mutation::Setup setup = mutation::arrange_sm100(machine, name, 0);
    machine.run(*program, setup.launch);
    const emu::Statistics& s = machine.statistics;
    Counts counts;
    counts.ctas = setup.launch.grid.count();
    counts.bulk_bytes = s.tma_bytes;
    counts.flops = s.mma_flops;
    counts.cta_k_tiles = s.mma_flops / static_cast<uint64_t>(2 * config.tile_m * config.tile_n *
                                                             sm100::tile_k / config.cta_group);
    counts.loads = sum_of(s, "cp.async.bulk.tensor", "shared::cluster.global");
    counts.stores = sum_of(s, "cp.async.bulk.tensor", "global.shared::cta");
    counts.products = sum_of(s, "tcgen05.mma");
    counts.tmem_loads = sum_of(s, "tcgen05.ld");
    counts.waits = sum_of(s, "mbarrier.try_wait");
    counts.bank_degree = bank_degree(s);
    counts.hazards = machine.reports.all().size();
    return counts;
}

}  // namespace hg::evidence
