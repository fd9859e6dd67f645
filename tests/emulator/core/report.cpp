// Reports: equal ones are counted, not repeated.
#include "core/report.hpp"

namespace emu {

std::string Report::print() const
{
    std::string out = kind + ": " + text + "\n  in " + kernel;
    if (line > 0)
        out += ", line " + std::to_string(line) + ": " + source;
    out += "\n  CTA (" + std::to_string(cta[0]) + ", " + std::to_string(cta[1]) + ", " +
           std::to_string(cta[2]) + ")";
    if (warp >= 0)
        out += ", warp " + std::to_string(warp);
    if (lane >= 0)
        out += ", lane " + std::to_string(lane);
    if (count > 1)
        out += "; " + std::to_string(count) + " times";
    return out;
}

void Reports::add(Report report)
{
    for (Report& known : reports_)
        if (known.kind == report.kind && known.line == report.line && known.kernel == report.kernel) {
            known.count += report.count;
            return;
        }
    reports_.push_back(std::move(report));
    if (stops_)
        throw Fault(reports_.back().kind, reports_.back().print());
}

}  // namespace emu
