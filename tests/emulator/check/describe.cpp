#include "check/describe.hpp"

#include "core/state.hpp"

#include <bit>

namespace emu {

namespace {

const Program* program_of(const Cta& cta)
{
    return cta.cluster && cta.cluster->grid ? cta.cluster->grid->program : nullptr;
}

std::string source_line(const Cta& cta, int line)
{
    const Program* program = program_of(cta);
    if (!program || !program->module)
        return "";
    const std::string_view text = ptx::source_line(*program->module, line);
    return std::string(text.substr(0, text.find_last_not_of(" \t;") + 1));
}

std::vector<ptx::SourceLine> origins_of(const Cta& cta, int line)
{
    const Program* program = program_of(cta);
    return program && program->module ? ptx::origins_of(*program->module, line)
                                      : std::vector<ptx::SourceLine>{};
}

std::string name_of(Access kind)
{
    static constexpr const char* names[] = {"read", "write", "atomic access", "strong read",
                                            "strong write"};
    return names[static_cast<int>(kind)];
}

std::string cta_text(const Cta& any, uint32_t number)
{
    const Dim3& grid = any.cluster->grid->launch.grid;
    return "CTA (" + std::to_string(number % grid.x) + ", " + std::to_string(number / grid.x % grid.y) +
           ", " + std::to_string(number / grid.x / grid.y) + ")";
}

std::string side(const Cta& owner, const Record& record)
{
    std::string text = name_of(record.kind);
    if (record.proxy == Proxy::Async)
        text += " through the async proxy";
    if (record.warp >= 0)
        text += " by warp " + std::to_string(record.warp);
    if (std::has_single_bit(record.lanes))
        text += " lane " + std::to_string(std::countr_zero(record.lanes));
    if (record.cta >= 0)
        text += " of " + cta_text(owner, static_cast<uint32_t>(record.cta));
    text += " at line " + std::to_string(record.line) + ptx::brief(origins_of(owner, record.line));
    const std::string source = source_line(owner, record.line);
    return source.empty() ? text : text + ": " + source;
}

std::string place_text(const Place& place)
{
    if (place.in == PlaceIn::Global)
        return std::to_string(place.count) + " bytes of global memory at " + hexadecimal(place.first);
    const std::string range =
        std::to_string(place.first) + ".." + std::to_string(place.first + place.count - 1);
    if (place.in == PlaceIn::Tensor)
        return "tensor memory columns " + range + " from lane " + std::to_string(place.lane);
    return "shared memory bytes " + range;
}

const char* relation(const std::string& kind)
{
    if (kind == "missing-proxy-fence" || kind == "missing-init-fence")
        return "; no fence.proxy.async since ";
    if (kind == "missing-syncwarp")
        return "; the warp has not synchronised since ";
    if (kind == "missing-tcgen05-fence")
        return "; no tcgen05.fence or wait orders it after ";
    return "; not ordered after ";
}

}  // namespace

Report describe(const char* kind, const Cta& owner, const Place& place, const Record& now,
                const Record* before)
{
    Report report;
    report.kind = kind;
    const Program* program = program_of(owner);
    report.kernel = program && program->kernel ? program->kernel->name : "";
    report.line = now.line;
    report.source = source_line(owner, now.line);
    report.origins = origins_of(owner, now.line);
    for (int i = 0; i < 3; ++i)
        report.cta[i] = owner.id[i];
    report.warp = now.warp;
    report.lane = std::has_single_bit(now.lanes) ? std::countr_zero(now.lanes) : -1;
    report.text = place_text(place) + ": " + side(owner, now);
    if (report.kind == "exited-peer")
        report.text += "; not ordered before the exit of the CTA whose memory it is";
    if (report.kind == "early-access")
        report.text += "; no griddepcontrol.wait orders it after the launches in front";
    if (before)
        report.text += relation(report.kind) + side(owner, *before);
    return report;
}

}  // namespace emu
