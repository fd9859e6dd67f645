#include "tune/contest.hpp"

#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hg::bench {

// The ranks around the median come from the binomial distribution, by its normal approximation.
Interval interval_of(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const size_t count = values.size();
    const double middle = static_cast<double>(count) / 2,
                 reach = 0.98 * std::sqrt(static_cast<double>(count));
    const auto below = count < 6 ? 0 : static_cast<size_t>(std::max(std::floor(middle - reach), 0.0));
    return {values[below], median(values), values[count - 1 - below]};
}

Contest::Contest(size_t candidates, const ContestRules& rules)
    : rules_(rules), alive_(candidates), times_(candidates), ratios_(candidates), over_(candidates < 2)
{
    std::iota(alive_.begin(), alive_.end(), size_t{0});
}

void Contest::add_round(const std::vector<double>& us)
{
    ++rounds_;
    for (size_t i = 0; i < alive_.size(); ++i) {
        times_[alive_[i]].push_back(us[i]);
        ratios_[alive_[i]].push_back(us[i] / us[0]);
    }
    if (rounds_ < rules_.min_rounds)
        return;
    const double bound = ratio(best()).high;
    std::erase_if(alive_, [&](size_t i) { return i != 0 && ratio(i).low > bound; });
    const bool precise =
        std::ranges::all_of(alive_, [&](size_t i) { return ratio(i).half_width() < rules_.precision; });
    // Not as soon as one looks faster: who looks often enough sees what he wishes.
    over_ = alive_.size() == 1 || precise || rounds_ >= rules_.max_rounds;
}

size_t Contest::best() const
{
    return *std::ranges::min_element(alive_, {}, [this](size_t i) { return ratio(i).median; });
}

Interval Contest::ratio(size_t candidate) const { return interval_of(ratios_[candidate]); }
double Contest::us(size_t candidate) const { return median(times_[candidate]); }

bool is_clearly_faster(const Interval& ratio)
{
    constexpr double least_gain = 0.01;
    return 1 - ratio.median > std::max(least_gain, ratio.half_width()) && ratio.high < 1;
}

}  // namespace hg::bench
