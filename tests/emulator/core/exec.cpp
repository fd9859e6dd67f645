// What handlers of instructions need: values of operands, waiting, complaints.
#include "core/scheduler.hpp"

#include <bit>

namespace emu {
namespace {

Mask live_lanes(const Exec& x) { return ~x.warp.exited; }

// Where an instruction stands, for faults.
std::string place(const Exec& x, int lane)
{
    const uint32_t* id = x.cta.id;
    std::string text = "\n  in " + x.grid.program->kernel->name + ", " +
                       source_text(*x.grid.program, x.op.line) + "\n  CTA (" + std::to_string(id[0]) +
                       ", " + std::to_string(id[1]) + ", " + std::to_string(id[2]) + "), warp " +
                       std::to_string(x.warp.index);
    if (lane >= 0)
        text += ", lane " + std::to_string(lane);
    return text;
}

}  // namespace

std::string source_text(const Program& program, int line) { return source_text(*program.module, line); }

std::string source_text(const ptx::Module& module, int line)
{
    const std::string_view text = ptx::source_line(module, line);
    return module.file + ":" + std::to_string(line) + ptx::brief(ptx::origins_of(module, line)) +
           (text.empty() ? "" : ": ") + std::string(text);
}

void Exec::wait(std::function<bool()> ready, std::function<std::string()> what, bool retry)
{
    fragment.wait = {std::move(ready), std::move(what)};
    fragment.retry = retry;
}

void Exec::hazard(const char* kind, const std::string& text, Mask which)
{
    if (machine.config.check < 1)
        return;
    Report report;
    report.kind = kind;
    report.kernel = grid.program->kernel->name;
    report.text = text;
    report.line = op.line;
    report.source = ptx::source_line(*grid.program->module, op.line);
    report.origins = ptx::origins_of(*grid.program->module, op.line);
    std::copy(std::begin(cta.id), std::end(cta.id), report.cta);
    report.warp = warp.index;
    report.lane = which ? std::countr_zero(which) : -1;
    machine.reports.add(std::move(report));
}

void Exec::fault(const char* kind, const std::string& text)
{
    throw Fault(kind, std::string(kind) + ": " + text + place(*this, lanes ? std::countr_zero(lanes) : -1));
}

void Exec::require_convergence() { require_lanes(all_lanes); }

void Exec::require_lanes(Mask members)
{
    const Mask needed = members & live_lanes(*this);
    if ((lanes & needed) == needed)
        return;
    const Mask missing = needed & ~lanes;
    if (!fragment.forced && (needed & ~fragment.lanes) != 0)
        throw Diverged{needed};
    hazard("divergence", "lanes " + hexadecimal(missing) + " of the warp do not execute this", missing);
}

std::string hexadecimal(uint64_t value)
{
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    do
        text.insert(text.begin(), digits[value & 15]);
    while (value >>= 4);
    return "0x" + text;
}

}  // namespace emu
