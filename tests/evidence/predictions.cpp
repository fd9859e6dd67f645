#include "predictions.hpp"

#include "arch/sm100/choose.hpp"
#include "arch/sm100/kernels.hpp"
#include "arch/sm100/model.hpp"
#include "ladder.hpp"
#include "problem_of.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace hg::evidence {
std::string Choice::how() const
{
    return fmt::format("{}{}{}", sm100::kernels[kernel].name, swap_ab ? "/swap_ab=1" : "",
                       split > 1 ? fmt::format("/split={}", split) : "");
}

Choice choice_for(const bench::Product& product)
{
    const Problem problem = problem_of(product);
    Device device{};
    device.cc = 100;
    device.sm_count = sm_count;
    Plan plan{};
    if (!sm100::choose(problem, device, Options{}, plan))
        throw std::runtime_error(fmt::format("{}: {}", product.shape(), plan.refusal));
    const double bytes = 2.0 * static_cast<double>(product.m * product.n);
    const sm100::Work work{plan.tiles, product.k, product.bytes() - bytes, bytes};
    return {product, plan.kernel, plan.swap_ab, plan.split,
            predict_pipeline(sm100::pipeline_of(sm100::configs[plan.kernel], plan.split), work, sm_count)};
}

bench::Run as_run(const std::vector<Choice>& choices)
{
    bench::Run run;
    run.machine["device"] = "a B200 by the model, nothing measured";
    for (const Choice& choice : choices) {
        bench::Measurement m;
        m.product = choice.product;
        m.kernel = choice.how();
        m.ours_us = choice.prediction.us;
        run.rows.push_back(m);
    }
    return run;
}

}  // namespace hg::evidence
