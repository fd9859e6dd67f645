#include "conformance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace hg::test {

unsigned thinning(unsigned otherwise)
{
    const char* text = std::getenv("HGEMM_TEST_THINNING");
    return text ? static_cast<unsigned>(std::max(1, std::atoi(text))) : otherwise;
}

bool Suite::run(const GemmCase& description, Trial& trial)
{
    ++cases_;
    trial.upload();
    const hgemm_status_t status = engine_.run(trial.args());
    if (status == HGEMM_STATUS_NOT_SUPPORTED && engine_.forced()) {
        ++not_applicable_;
        return false;
    }
    if (status != HGEMM_STATUS_SUCCESS) {
        fail(description, hgemm_status_string(status));
        return false;
    }
    trial.download();
    return true;
}

void Suite::check(const GemmCase& description, const std::function<void(Trial&)>& edit)
{
    if (!next())
        return;
    Trial trial(description, engine_.memory());
    if (edit)
        edit(trial);
    if (!run(description, trial))
        return;
    const Verdict verdict = trial.judge(engine_.arithmetic());
    max_ratio_ = std::max(max_ratio_, verdict.max_ratio);
    sum_ratio_ += verdict.sum_ratio;
    elements_ += verdict.elements;
    if (!verdict.passed)
        fail(description, verdict.message);
}

void Suite::expect_same(const GemmCase& g, const Trial& trial, const Expectation& expected)
{
    for (int64_t z = 0; z < g.batch_count; ++z)
        for (int64_t i = 0; i < g.rows_of_d(); ++i)
            for (int64_t j = 0; j < g.columns_of_d(); ++j) {
                const double got = trial.result(z, i, j), wanted = expected(z, i, j);
                if (got == wanted || (std::isnan(got) && std::isnan(wanted)))
                    continue;
                char text[128];
                std::snprintf(text, sizeof text, "D[%d](%d, %d) is %.9g, not the same as %.9g",
                              static_cast<int>(z), static_cast<int>(i), static_cast<int>(j), got, wanted);
                return fail(g, text);
            }
}

void Suite::fail(const GemmCase& description, const std::string& text)
{
    failures_.push_back(description.print() + "\n    " + text + " [" + engine_.story() + "]");
}

std::string Suite::summary() const
{
    char text[160];
    std::snprintf(text, sizeof text, "cases %d, not applicable %d, |error| / bound: max %.3f, mean %.3f",
                  cases_, not_applicable_, max_ratio_,
                  elements_ > 0 ? sum_ratio_ / static_cast<double>(elements_) : 0.0);
    return text;
}

std::span<const Family> families()
{
    static constexpr Family all[] = {
        {"sizes", sizes},
        {"combinations", combinations},
        {"ragged_lines", ragged_lines},
        {"rounding", rounding},
        {"special_values", special_values},
        {"unread_operands", unread_operands},
        {"accumulator_width", accumulator_width},
        {"random_data", random_data},
        {"long_sums", long_sums},
        {"batches", batches},
        {"epilogues", epilogues},
        {"fences", fences},
        {"repetition", repetition},
        {"scaling", scaling},
        {"row_order", row_order},
        {"swapped_operands", swapped_operands},
        {"zero_columns", zero_columns},
        {"batch_split", batch_split},
        {"rows_alone", rows_alone},
        {"freivalds", freivalds},
    };
    return all;
}

}  // namespace hg::test
