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
    if (!program || !program->module || line < 1 || line > static_cast<int>(program->module->lines.size()))
        return "";
    const std::string& text = program->module->lines[line - 1];
    const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t;");
    return first == std::string::npos || last < first ? "" : text.substr(first, last + 1 - first);
}

std::string name_of(Access kind)
{
    return kind == Access::Read ? "read" : kind == Access::Write ? "write" : "atomic access";
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
    text += " at line " + std::to_string(record.line);
    const std::string source = source_line(owner, record.line);
    return source.empty() ? text : text + ": " + source;
}

std::string place_text(const Place& place)
{
    const std::string range =
        std::to_string(place.first) + ".." + std::to_string(place.first + place.count - 1);
    if (place.tensor)
        return "tensor memory columns " + range + " from lane " + std::to_string(place.lane);
    return "shared memory bytes " + range;
}

const char* relation(const std::string& kind)
{
    if (kind == "missing-proxy-fence")
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
    for (int i = 0; i < 3; ++i)
        report.cta[i] = owner.id[i];
    report.warp = now.warp;
    report.lane = std::has_single_bit(now.lanes) ? std::countr_zero(now.lanes) : -1;
    report.text = place_text(place) + ": " + side(owner, now);
    if (before)
        report.text += relation(report.kind) + side(owner, *before);
    return report;
}

}  // namespace emu
