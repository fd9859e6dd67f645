// Reports: their kinds, and how many of them are told. Equal ones are counted, not repeated.
#include "core/report.hpp"

#include <algorithm>
#include <fstream>
#include <map>

namespace emu {
namespace {

struct Kind {
    std::string_view name;
    ReportClass worth;
};

// A kind is a defect unless published kernels that are right on a GPU are known to have it.
constexpr Kind kinds[] = {
    {"barrier-mismatch", ReportClass::Defect},
    {"barrier-overrun", ReportClass::Defect},
    {"bulk-barrier", ReportClass::Defect},
    {"bulk-multicast", ReportClass::Defect},
    {"cluster-barrier", ReportClass::Defect},
    {"cluster-cancel-after-failure", ReportClass::Defect},
    {"cluster-cancel-response", ReportClass::Defect},
    {"divergence", ReportClass::Defect},
    {"early-access", ReportClass::Defect},
    {"exited-peer", ReportClass::Defect},
    {"mbarrier-nocomplete", ReportClass::Defect},
    {"mbarrier-overrun", ReportClass::Defect},
    {"mbarrier-reinit", ReportClass::Defect},
    {"mbarrier-state", ReportClass::Defect},
    {"mbarrier-tx-overflow", ReportClass::Defect},
    {"mbarrier-tx-underflow", ReportClass::Defect},
    {"member-mask", ReportClass::Defect},
    {"missing-proxy-fence", ReportClass::Defect},
    {"missing-syncwarp", ReportClass::Defect},
    {"not-uniform", ReportClass::Defect},
    {"race", ReportClass::Defect},
    {"shuffle-inactive", ReportClass::Defect},
    {"tcgen05-commit-nobody", ReportClass::Defect},
    {"tcgen05-mixed-groups", ReportClass::Defect},
    {"tcgen05-peer-exited", ReportClass::Defect},
    {"tmem-growth", ReportClass::Defect},
    {"tmem-lane-window", ReportClass::Defect},
    {"tmem-leak", ReportClass::Defect},
    {"tmem-use-after-free", ReportClass::Defect},
    {"unawaited-launch", ReportClass::Defect},
    {"uninitialised-read", ReportClass::Defect},
    {"wgmma-fence", ReportClass::Defect},
    {"wgmma-registers", ReportClass::Defect},

    {"missing-init-fence", ReportClass::Departure},     // mbarrier.init, then TMA without a proxy fence
    {"missing-tcgen05-fence", ReportClass::Departure},  // ordered in execution, without the fence
    {"not-generic", ReportClass::Departure},            // a shared address for tcgen05.commit
    {"unwaited-bulk-store", ReportClass::Departure},    // the exit waits, but no document says so

    {"setmaxnreg", ReportClass::Harmless},     // how many registers are held is a guess
    {"unwaited-copy", ReportClass::Harmless},  // cp.async under way at the exit
};

constexpr size_t told_defects = 8, told_others = 1;

std::string heading(const Report& report)
{
    return report.kind + " (" + std::string(name_of(class_of(report.kind))) + ")";
}

// "/home/me/sum.cu:12: total += tile[i];", the line's text where the file can be read.
std::string quote(const ptx::SourceLine& origin)
{
    std::string text;
    std::ifstream file(origin.file);
    for (int line = 0; line < origin.line && file; ++line)
        std::getline(file, text);
    const size_t start = text.find_first_not_of(" \t");
    const std::string place = origin.file + ":" + std::to_string(origin.line);
    return !file || start == text.npos ? place : place + ": " + text.substr(start);
}

template <typename Weight>
ReportCounts count(const std::vector<Report>& reports, Weight weight)
{
    ReportCounts counts{};
    for (const Report& report : reports)
        counts[static_cast<size_t>(class_of(report.kind))] += weight(report);
    return counts;
}

}  // namespace

ReportClass class_of(std::string_view kind)
{
    const auto* found =
        std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& k) { return k.name == kind; });
    if (found == std::end(kinds))
        throw std::logic_error("no class for reports of kind '" + std::string(kind) + "'");
    return found->worth;
}

std::string_view name_of(ReportClass value)
{
    constexpr std::string_view names[report_classes] = {"defect", "departs from the document", "harmless"};
    return names[static_cast<size_t>(value)];
}

bool fails(ReportClass value, Strict strict)
{
    return strict == Strict::Defects    ? value == ReportClass::Defect
           : strict == Strict::Document ? value != ReportClass::Harmless
                                        : false;
}

std::string Report::print() const
{
    std::string out = heading(*this) + ": " + text + "\n  in " + kernel;
    if (line > 0)
        out += ", line " + std::to_string(line) + ": " + source;
    if (!origins.empty())
        out += "\n  " + quote(origins.front());
    if (origins.size() > 2)  // of templates there are many
        out += "\n  called through " + std::to_string(origins.size() - 2) + " more";
    if (origins.size() > 1)
        out += "\n  called at " + quote(origins.back());
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

std::vector<std::string> digest(std::span<const Report> reports)
{
    std::vector<std::string> texts;
    for (size_t worth = 0; worth < report_classes; ++worth) {
        struct Rest {
            size_t seen = 0;
            std::string text, lines;
        };
        std::map<std::pair<std::string, std::string>, Rest> rest;  // by kernel and kind
        for (const Report& report : reports) {
            if (static_cast<size_t>(class_of(report.kind)) != worth)
                continue;
            Rest& like = rest[{report.kernel, report.kind}];
            if (like.seen++ < (worth == 0 ? told_defects : told_others)) {
                texts.push_back(report.print());
                continue;
            }
            like.lines += (like.lines.empty() ? " " : ", ") + std::to_string(report.line);
            like.text = heading(report);
        }
        for (const auto& [key, like] : rest)
            if (const size_t told = worth == 0 ? told_defects : told_others; like.seen > told)
                texts.push_back(like.text + ": " + std::to_string(like.seen - told) + " more in " +
                                key.first + ", lines" + like.lines);
    }
    return texts;
}

std::string tally(const ReportCounts& counts)
{
    return std::to_string(counts[0]) + (counts[0] == 1 ? " defect, " : " defects, ") +
           std::to_string(counts[1]) + (counts[1] == 1 ? " departure" : " departures") +
           " from the document, " + std::to_string(counts[2]) + " harmless";
}

void Reports::add(Report report)
{
    class_of(report.kind);  // no kind without a class
    for (Report& known : reports_)
        if (known.kind == report.kind && known.line == report.line && known.kernel == report.kernel) {
            known.count += report.count;
            return;
        }
    reports_.push_back(std::move(report));
    if (stops_)
        throw Fault(reports_.back().kind, reports_.back().print());
}

ReportCounts Reports::places() const
{
    return count(reports_, [](const Report&) { return uint64_t{1}; });
}

ReportCounts Reports::times() const
{
    return count(reports_, [](const Report& report) { return report.count; });
}

}  // namespace emu
