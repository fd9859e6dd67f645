// What handlers of instructions need: values of operands, waiting, complaints.
#include "core/scheduler.hpp"
#include "core/special.hpp"

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
    return module.file + ":" + std::to_string(line) + (text.empty() ? "" : ": ") + std::string(text);
}

uint64_t lane_value(Exec& x, const Arg& arg, int lane)
{
    switch (arg.form) {
    case Arg::Form::Constant: return arg.constant;
    case Arg::Form::Special: return special_value(x, arg, lane);
    case Arg::Form::None: return 0;
    case Arg::Form::Register: break;
    }
    switch (arg.width) {
    case 0: return ((x.predicate(arg.reg) >> lane & 1) != 0) != arg.negated;
    case 4: return x.row32(arg.reg)[lane];
    case 8: return x.row64(arg.reg)[lane];
    default: return x.row64(arg.reg)[2 * lane];
    }
}

void set_lane(Exec& x, const Arg& arg, int lane, uint64_t value)
{
    if (arg.form != Arg::Form::Register)
        return;
    switch (arg.width) {
    case 0: {
        const Mask bit = Mask{1} << lane;
        x.predicate(arg.reg) = value ? x.predicate(arg.reg) | bit : x.predicate(arg.reg) & ~bit;
        break;
    }
    case 4:
        x.row32(arg.reg)[lane] =
            static_cast<uint32_t>(arg.bits >= 32 ? value : value & ((uint64_t{1} << arg.bits) - 1));
        break;
    case 8: x.row64(arg.reg)[lane] = value; break;
    default: x.row64(arg.reg)[2 * lane] = value, x.row64(arg.reg)[2 * lane + 1] = 0;
    }
}

// 32-bit bases wrap around.
uint64_t address_of(Exec& x, const AddressArg& address, int lane)
{
    const uint64_t sum = lane_value(x, address.base, lane) + address.offset;
    return address.base.form == Arg::Form::Register && address.base.width == 4 ? static_cast<uint32_t>(sum)
                                                                               : sum;
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
