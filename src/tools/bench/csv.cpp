#include "src/tools/bench/csv.hpp"

#include "src/tools/bench/output.hpp"
#include "src/tools/bench/region.hpp"
#include "src/tools/support/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace hg::bench {
namespace {

std::string text_of(double value) { return known(value) ? fmt::format("{:.4f}", value) : ""; }
double number_of(const std::string& text) { return text.empty() ? unknown : std::stod(text); }

struct Column {
    const char* name;
    std::string (*get)(const Measurement&);
    void (*set)(Measurement&, const std::string&);  // null: follows from the others
};

#define TEXT(name, field)                                                                                  \
    {                                                                                                      \
        name, [](const Measurement& m) { return m.field; },                                                \
            [](Measurement& m, const std::string& text) { m.field = text; }                                \
    }
#define WHOLE(name, field)                                                                                 \
    {                                                                                                      \
        name, [](const Measurement& m) { return std::to_string(m.field); },                                \
            [](Measurement& m, const std::string& text) {                                                  \
                m.field = static_cast<decltype(m.field)>(std::stoll(text));                                \
            }                                                                                              \
    }
#define REAL(name, field)                                                                                  \
    {                                                                                                      \
        name, [](const Measurement& m) { return text_of(m.field); },                                       \
            [](Measurement& m, const std::string& text) { m.field = number_of(text); }                     \
    }
#define DERIVED(name, value)                                                                               \
    {                                                                                                      \
        name, [](const Measurement& m) -> std::string { return value; }, nullptr                           \
    }

const Column columns[] = {
    WHOLE("m", product.m),
    WHOLE("n", product.n),
    WHOLE("k", product.k),
    WHOLE("batch", product.batch),
    TEXT("layout", product.layout),
    {"dtype", [](const Measurement& m) -> std::string { return test::name_of(m.product.type); },
     [](Measurement& m, const std::string& text) {
         m.product.type = text == "bf16" ? HGEMM_BF16 : HGEMM_F16;
     }},
    REAL("ours", ours_us),
    REAL("default", default_us),
    REAL("best", best_us),
    REAL("ratio_default", ratio_default),
    REAL("ratio_best", ratio_best),
    TEXT("kernel", kernel),
    DERIVED("tflops", text_of(m.tflops())),
    DERIVED("gbps", text_of(m.gbps())),
    DERIVED("floor", text_of(m.floor_us)),
    DERIVED("intensity", text_of(m.product.intensity())),
    DERIVED("bound", bound_of(m.product)),
    DERIVED("region", region_of(m.product)),
    TEXT("set", product.set),
    WHOLE("offset", product.offset),
    WHOLE("pad", product.pad),
    {"output", [](const Measurement& m) { return m.product.output.text(); },
     [](Measurement& m, const std::string& text) { m.product.output = Output(text); }},
    REAL("hot", hot_us),
    REAL("hot_ratio_default", hot_ratio_default),
    REAL("hot_ratio_best", hot_ratio_best),
    REAL("batch_invariant", invariant_us),
    REAL("cost_batch_invariant", invariant_cost),
    TEXT("kernel_batch_invariant", invariant_kernel),
    REAL("error_batch_invariant", invariant_error),
    REAL("aa_spread", aa_spread),
    REAL("host", host_us),
    REAL("default_host", default_host_us),
    REAL("error", error),
    REAL("default_error", default_error),
    REAL("best_error", best_error),
    WHOLE("best_rank", best_rank),
    WHOLE("algorithms", algorithms),
    TEXT("best_algorithm", best_algorithm),
    TEXT("best_tried", best_tried),
    WHOLE("pairs", pairs),
    WHOLE("sets", sets),
    WHOLE("launches", launches),
    WHOLE("sm_mhz", sm_mhz),
    REAL("watts", watts),
};

std::vector<const Column*> columns_in(const std::string& heading)
{
    std::vector<const Column*> found;
    std::istringstream stream(heading);
    for (std::string name; std::getline(stream, name, ',');) {
        const Column* match = nullptr;
        for (const Column& column : columns)
            if (name == column.name)
                match = &column;
        found.push_back(match);
    }
    return found;
}

// A file that is none of ours may have any text.
void require_columns(const std::string& path, const std::vector<const Column*>& order)
{
    for (const std::string name : {"m", "n", "k", "ours"})
        if (std::ranges::none_of(order,
                                 [&](const Column* column) { return column && column->name == name; }))
            throw std::runtime_error(path + ": no column " + name);
}

void set(Measurement& m, const Column& column, const std::string& text)
{
    try {
        column.set(m, text);
    } catch (const std::exception&) {
        throw std::runtime_error(fmt::format("column {} has '{}'", column.name, text));
    }
}

Measurement parse(const std::string& line, const std::vector<const Column*>& order)
{
    Measurement m;
    std::istringstream stream(line);
    std::string cell;
    for (const Column* column : order) {
        if (!std::getline(stream, cell, ','))
            cell.clear();
        if (column && column->set)
            set(m, *column, cell);
    }
    return m;
}

}  // namespace

Csv::Csv(const std::string& path, const Machine& machine, const std::vector<Measurement>& before)
{
    if (path.empty())
        return;
    file_.open(path);
    if (!file_)
        throw std::runtime_error("cannot write " + path);
    for (const auto& [name, value] : machine)
        file_ << "# " << name << ": " << value << "\n";
    for (const Column& column : columns)
        file_ << (&column == columns ? "" : ",") << column.name;
    file_ << std::endl;
    for (const Measurement& m : before)
        write(m);
}

void Csv::write(const Measurement& m)
{
    if (!file_.is_open())
        return;
    for (const Column& column : columns)
        file_ << (&column == columns ? "" : ",") << column.get(m);
    file_ << std::endl;  // flushed: a run that is killed keeps what it measured
}

Run read_csv(const std::string& path, Unfinished unfinished)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error("cannot read " + path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text.resize(text.rfind('\n') + 1);
    std::istringstream lines(text);
    Run run;
    std::vector<const Column*> order;
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        const size_t colon = line.find(": ");
        if (line.rfind("# ", 0) == 0 && colon != std::string::npos)
            run.machine[line.substr(2, colon - 2)] = line.substr(colon + 2);
        else if (line.empty() || line[0] == '#')
            continue;
        else if (order.empty())
            require_columns(path, order = columns_in(line));
        else
            try {
                run.rows.push_back(parse(line, order));
            } catch (const std::runtime_error& error) {
                throw std::runtime_error(fmt::format("{}:{}: {}", path, number, error.what()));
            }
    }
    if (unfinished == Unfinished::Refused)
        require_columns(path, order);
    for (Measurement& m : run.rows)
        m.floor_us = floor_us(m.product, limits_of(run.machine));
    return run;
}

}  // namespace hg::bench
