#include "mutation/table.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <functional>
#include <map>

namespace mutation {
namespace {

constexpr const char* groups[] = {"race",       "deadlock",    "barrier",     "bounds",
                                  "divergence", "other rules", "wrong result"};

// Kinds of reports in few words.
std::string group_of(const std::string& how)
{
    static const std::pair<const char*, const char*> starts[] = {{"race", "race"},
                                                                 {"missing-", "race"},
                                                                 {"unwaited", "race"},
                                                                 {"uninitialised", "race"},
                                                                 {"wgmma", "race"},
                                                                 {"exited-peer", "race"},
                                                                 {"deadlock", "deadlock"},
                                                                 {"livelock", "deadlock"},
                                                                 {"no end", "deadlock"},
                                                                 {"mbarrier", "barrier"},
                                                                 {"barrier", "barrier"},
                                                                 {"cluster-barrier", "barrier"},
                                                                 {"bulk-barrier", "barrier"},
                                                                 {"divergence", "divergence"},
                                                                 {"member-mask", "divergence"},
                                                                 {"not-uniform", "divergence"},
                                                                 {"out-of-bounds", "bounds"},
                                                                 {"misaligned", "bounds"},
                                                                 {"wrong result", "wrong result"}};
    for (const auto& [start, group] : starts)
        if (how.rfind(start, 0) == 0)
            return group;
    return "other rules";
}

void write_table(std::ostream& out, const char* title, const std::vector<Result>& results,
                 const std::function<std::string(const Result&)>& key)
{
    std::map<std::string, std::map<std::string, int>> rows;
    for (const Result& result : results) {
        if (!result.counts())
            continue;
        for (const std::string& row : {key(result), std::string("~")}) {
            ++rows[row]["all"];
            rows[row]["caught"] += result.caught();
            ++rows[row][result.caught() ? group_of(result.how) : "missed"];
        }
    }
    fmt::print(out, "| {} | mutants | caught | % |", title);
    for (const char* group : groups)
        fmt::print(out, " {} |", group);
    fmt::print(out, "\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (auto& [name, row] : rows) {
        fmt::print(out, "| {} | {} | {} | {:.1f} |", name == "~" ? "all" : name, row["all"], row["caught"],
                   100.0 * row["caught"] / row["all"]);
        for (const char* group : groups)
            fmt::print(out, " {} |", row[group]);
        fmt::print(out, "\n");
    }
    fmt::print(out, "\n");
}

}  // namespace

Totals totals_of(const std::vector<Result>& results)
{
    Totals totals;
    for (const Result& result : results)
        if (result.counts())
            ++totals.all, totals.caught += result.caught();
    return totals;
}

void write_list(std::ostream& out, const std::vector<Result>& results)
{
    fmt::print(out, "kernel,line,instruction,kind,change,outcome,how,shape,seed\n");
    for (const Result& r : results) {
        const char* outcome = !r.counts() ? "equivalent" : r.caught() ? "caught" : "missed";
        fmt::print(out, "{},{},{},{},{},{},", r.kernel, r.mutant.line + 1,
                   parse_statement(r.statement).opcode, r.mutant.kind, r.mutant.change, outcome);
        if (r.counts() && r.caught())
            fmt::print(out, "{},{},{}\n", r.how, r.shape, r.seed);
        else
            fmt::print(out, "{},,\n", r.mutant.equivalent);
    }
}

void write_totals(std::ostream& out, const std::vector<Result>& results)
{
    const Totals totals = totals_of(results);
    fmt::print(out, "{} of {} mutants caught, {:.1f} %; {} more are equivalent.\n\n", totals.caught,
               totals.all, 100.0 * totals.caught / std::max(1, totals.all),
               static_cast<int>(results.size()) - totals.all);
    write_table(out, "kernel", results, [](const Result& r) { return r.kernel; });
    write_table(out, "kind", results, [](const Result& r) { return r.mutant.kind; });
    std::map<std::string, int> equivalents;
    for (const Result& result : results)
        if (!result.counts())
            ++equivalents[result.mutant.equivalent];
    for (const auto& [why, count] : equivalents)
        fmt::print(out, "Equivalent, {}: {}.\n", count, why);
    fmt::print(out, "\nMissed:\n\n");
    for (const Result& r : results)
        if (r.counts() && !r.caught())
            fmt::print(out, "    {} line {}, {}, {}: {}\n", r.kernel, r.mutant.line + 1, r.mutant.kind,
                       r.mutant.change, r.statement.substr(0, 100));
}

}  // namespace mutation
