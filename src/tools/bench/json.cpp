#include "src/tools/bench/region.hpp"
#include "src/tools/bench/report.hpp"
#include "src/tools/support/number.hpp"

#include <nlohmann/json.hpp>

namespace hg::bench {
namespace {

using nlohmann::ordered_json;

// JSON has no NaN and no infinity: what is unknown is null, a result without bound a string.
ordered_json value_of(double value)
{
    if (!known(value))
        return nullptr;
    return std::isinf(value) ? ordered_json("infinite") : ordered_json(value);
}

ordered_json row_of(const Measurement& m)
{
    const Product& p = m.product;
    ordered_json row = {{"m", p.m},
                        {"n", p.n},
                        {"k", p.k},
                        {"batch", p.batch},
                        {"layout", p.layout},
                        {"dtype", test::name_of(p.type)},
                        {"offset", p.offset},
                        {"pad", p.pad},
                        {"output", p.output.text()},
                        {"set", p.set},
                        {"region", region_of(p)},
                        {"bound", bound_of(p)},
                        {"kernel", m.kernel},
                        {"invariant_kernel", m.invariant_kernel},
                        {"pairs", m.pairs},
                        {"sets", m.sets},
                        {"launches", m.launches},
                        {"best_rank", m.best_rank},
                        {"algorithms", m.algorithms},
                        {"best_algorithm", m.best_algorithm},
                        {"best_tried", m.best_tried},
                        {"sm_mhz", m.sm_mhz}};
    const std::pair<const char*, double> values[] = {{"ours_us", m.ours_us},
                                                     {"default_us", m.default_us},
                                                     {"best_us", m.best_us},
                                                     {"ratio_default", m.ratio_default},
                                                     {"ratio_best", m.ratio_best},
                                                     {"tflops", m.tflops()},
                                                     {"gbps", m.gbps()},
                                                     {"floor_us", m.floor_us},
                                                     {"intensity", p.intensity()},
                                                     {"hot_us", m.hot_us},
                                                     {"hot_ratio_default", m.hot_ratio_default},
                                                     {"hot_ratio_best", m.hot_ratio_best},
                                                     {"invariant_us", m.invariant_us},
                                                     {"invariant_cost", m.invariant_cost},
                                                     {"invariant_error", m.invariant_error},
                                                     {"aa_spread", m.aa_spread},
                                                     {"host_us", m.host_us},
                                                     {"default_host_us", m.default_host_us},
                                                     {"error", m.error},
                                                     {"default_error", m.default_error},
                                                     {"best_error", m.best_error},
                                                     {"watts", m.watts}};
    for (const auto& [name, value] : values)
        row[name] = value_of(value);
    return row;
}

}  // namespace

std::string json(const Run& run)
{
    ordered_json document = {{"machine", run.machine}, {"rows", ordered_json::array()}};
    for (const Measurement& m : run.rows)
        document["rows"].push_back(row_of(m));
    return document.dump(1) + "\n";
}

}  // namespace hg::bench
