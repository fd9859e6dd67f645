// The tables of the evidence, as Markdown and CSV.
#pragma once

#include "counts.hpp"
#include "predictions.hpp"

#include <string>
#include <vector>

namespace hg::evidence {

// Of each kernel of sm100, in the order of kernels.def.
std::string budget_table(const std::vector<Budget>& budgets, const std::vector<Counts>& counts);
std::string cycle_table();  // of a k tile and of the epilogue
std::string ladder_table();
std::string clock_table();  // where a source publishes clock and load
std::string square_table(const std::vector<Choice>& choices);
std::string layer_table(const std::vector<Choice>& choices);  // microseconds over tokens
std::string csv(const std::vector<Choice>& choices);

}  // namespace hg::evidence
