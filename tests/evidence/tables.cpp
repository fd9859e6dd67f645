#include "tables.hpp"

#include "arch/sm100/kernels.hpp"
#include "arch/sm100/model.hpp"
#include "ladder.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace hg::evidence {
namespace {

// What others published of a square product on a B200; 0: nothing.
struct Published {
    int64_t size;
    double tflops;
    const char* what;
};
constexpr Published published[] = {
    {2048, 1077.67, "cuBLAS (gau-nernst/learn-cuda)"},  {4096, 1358.69, "cuBLAS (gau-nernst/learn-cuda)"},
    {4096, 1459.95, "cuBLAS (Modern GPU Programming)"}, {8192, 1414.29, "cuBLAS (gau-nernst/learn-cuda)"},
    {8192, 1599.76, "cuBLAS (NVIDIA/tilus)"},
};

std::string references(int64_t size)
{
    std::string text;
    for (const Published& p : published)
        if (p.size == size)
            text += fmt::format("{}{:.0f} {}", text.empty() ? "" : "; ", p.tflops, p.what);
    return text.empty() ? "–" : text;
}

const char* limit_of(const Choice& choice) { return choice.memory_bound() ? "memory" : "SMs"; }

std::string percent(double ratio) { return fmt::format("{:+.1f} %", 100 * ratio); }

std::string step(const Rung& rung)
{
    const Rung* earlier = before(rung);
    if (!earlier)
        return "– | – | –";
    const double was = earlier->published_us / rung.published_us;
    const double says = earlier->predicted_us() / rung.predicted_us();
    const bool outside = rung.outside || earlier->outside;
    return fmt::format("{:.2f} | {:.2f} | {}", was, says,
                       outside ? "not modelled" : percent(step_error(rung, *earlier)));
}

}  // namespace

std::string budget_table(const std::vector<Budget>& budgets, const std::vector<Counts>& counts)
{
    std::string text = "| kernel | registers | spills | stack | shared memory | stages × bytes | TMEM "
                       "columns | threads |\n"
                       "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (size_t i = 0; i < budgets.size(); ++i) {
        const sm100::Config& c = sm100::configs[i];
        const int stage = sm100::operand_bytes(sm100::a_rows(c)) + sm100::operand_bytes(sm100::b_rows(c));
        text += fmt::format("| `{}` | {} | {} | {} | {} | {} × {} | {} | {} |\n", sm100::kernels[i].name,
                            budgets[i].registers, budgets[i].spilled_bytes, budgets[i].stack_bytes,
                            sm100::kernels[i].smem_bytes, c.stages, stage, c.tmem_columns(), c.threads());
    }
    text += "\n| kernel | CTAs | k tiles | flop a k tile | TMA bytes | loads | stores | `tcgen05.mma` | "
            "`tcgen05.ld` | waits tried | bank degree | hazards |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (size_t i = 0; i < counts.size(); ++i) {
        const Counts& c = counts[i];
        text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} | {} |\n",
                            sm100::kernels[i].name, c.ctas, c.cta_k_tiles, c.flops / c.cta_k_tiles,
                            c.bulk_bytes, c.loads, c.stores, c.products, c.tmem_loads, c.waits,
                            c.bank_degree, c.hazards);
    }
    return text;
}

std::string cycle_table()
{
    std::string text =
        "| kernel | multiply | load | bytes a CTA | read | round / stages | a k tile takes | "
        "epilogue | hidden from k of |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (int kernel = 0; kernel < sm100::kernel_count; ++kernel) {
        const sm100::Pipeline p = sm100::pipeline_of(sm100::configs[kernel], 1);
        const sm100::KTile t = sm100::k_tile(p);
        const double store = sm100::store_cycles(p);
        const bool hides = p.persistent && p.accumulators > 1;
        text +=
            fmt::format("| `{}` | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {} |\n",
                        sm100::kernels[kernel].name, t.multiply, t.load, t.bytes, t.read, t.round, t.cycles,
                        store, hides ? fmt::format("{:.0f}", store / t.cycles * p.tile_k) : "–");
    }
    return text;
}

std::string ladder_table()
{
    std::string text =
        "| source | kernel | adds | size | published µs | model µs | error | step published | "
        "step model | error of step | |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (const Rung& r : rungs())
        text +=
            fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {} | {} | {} |\n", r.source, r.name,
                        r.technique, r.size, r.published_us, r.predicted_us(), percent(r.error()), step(r),
                        r.outside  ? fmt::format("not modelled: {}", r.outside)
                        : r.fitted ? "fitted to"
                                   : "");
    return text;
}

std::string clock_table()
{
    std::string text = "| source | kernel | busy published | busy model | GHz published | GHz model |\n"
                       "| --- | --- | --- | --- | --- | --- |\n";
    for (const Rung& r : rungs()) {
        const Load* load = load_of(r);
        if (!load)
            continue;
        const sm100::Prediction p = r.predicted();
        text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.2f} | {:.2f} |\n", r.source, r.name,
                            100 * load->busy, 100 * p.busy, load->ghz, p.ghz);
    }
    return text;
}

std::string square_table(const std::vector<Choice>& choices)
{
    std::string text = "| m = n = k | choice | waves | busy | GHz | model µs | model TFLOP/s | published "
                       "TFLOP/s |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (const Choice& c : choices)
        text += fmt::format("| {} | `{}` | {} | {:.0f} % | {:.2f} | {:.1f} | {:.0f} | {} |\n", c.product.m,
                            c.how(), c.prediction.waves, 100 * c.prediction.busy, c.prediction.ghz,
                            c.prediction.us, c.tflops(), references(c.product.m));
    return text;
}

// The choices are those of one number of tokens after the other, each over the same layers.
std::string layer_table(const std::vector<Choice>& choices)
{
    std::string text = "| n × k |", line = "\n| --- |";
    std::map<std::pair<int64_t, int64_t>, std::string> layers;
    int64_t tokens = 0;
    for (const Choice& c : choices) {
        if (c.product.m != tokens) {
            tokens = c.product.m;
            text += fmt::format(" {} |", tokens);
            line += " --- |";
        }
        layers[{c.product.n, c.product.k}] += fmt::format(" {:.1f} |", c.prediction.us);
    }
    text += line + '\n';
    for (const auto& [layer, cells] : layers)
        text += fmt::format("| {} × {} |{}\n", layer.first, layer.second, cells);
    return text;
}

std::string csv(const std::vector<Choice>& choices)
{
    std::string text = "set,m,n,k,choice,waves,busy,ghz,compute_us,memory_us,predicted_us,tflops,limit\n";
    for (const Choice& c : choices) {
        const sm100::Prediction& p = c.prediction;
        text += fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.2f},{:.2f},{:.2f},{:.1f},{}\n",
                            c.product.set, c.product.m, c.product.n, c.product.k, c.how(), p.waves, p.busy,
                            p.ghz, p.compute_us, p.memory_us, p.us, c.tflops(), limit_of(c));
    }
    return text;
}

}  // namespace hg::evidence
