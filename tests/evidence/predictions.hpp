// What the dispatcher would choose on a B200, and how long the model says it takes.
#pragma once

#include "arch/sm100/model.hpp"
#include "src/tools/bench/measurement.hpp"

#include <vector>

namespace hg::evidence {

struct Choice {
    bench::Product product;
    int kernel;
    bool swap_ab;
    int split;
    sm100::Prediction prediction;

    bool memory_bound() const { return prediction.memory_us > prediction.compute_us; }
    double tflops() const { return product.flops() / prediction.us * 1e-6; }
    std::string how() const;  // kernel, swap_ab and split
};

Choice choice_for(const bench::Product& product);
bench::Run as_run(const std::vector<Choice>& choices);

}  // namespace hg::evidence
