#include "src/tune/contest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hg {

double median_of(std::vector<double> values)
{
    std::ranges::sort(values);
    const size_t count = values.size();
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

// The ranks around the median come from the binomial distribution, by its normal approximation.
Interval interval_of(std::vector<double> values)
{
    std::ranges::sort(values);
    const size_t count = values.size();
    const double middle = static_cast<double>(count) / 2,
                 reach = 0.98 * std::sqrt(static_cast<double>(count));
    const auto below = count < 6 ? 0 : static_cast<size_t>(std::max(std::floor(middle - reach), 0.0));
    return {values[below], median_of(values), values[count - 1 - below]};
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
double Contest::us(size_t candidate) const { return median_of(times_[candidate]); }

bool is_clearly_faster(const Interval& ratio)
{
    constexpr double least_gain = 0.007;
    return 1 - ratio.median > std::max(least_gain, ratio.half_width()) && ratio.high < 1;
}

namespace {

// The first turn of each is not counted. False if a turn stopped it.
bool compete(Contest& contest, std::minstd_rand& random, const Turn& turn)
{
    for (const size_t candidate : contest.alive())
        if (!turn(candidate))
            return false;
    while (!contest.is_over()) {
        const std::vector<size_t> alive = contest.alive();
        std::vector<size_t> order(alive.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::ranges::shuffle(order, random);
        std::vector<double> us(alive.size());
        for (const size_t i : order) {
            const std::optional<double> time = turn(alive[i]);
            if (!time)
                return false;
            us[i] = *time;
        }
        contest.add_round(us);
    }
    return true;
}

}  // namespace

std::optional<Fastest> find_fastest(size_t candidates, const ContestRules& rules, std::minstd_rand& random,
                                    const Turn& turn)
{
    size_t best = 0;
    int rounds = 0;
    if (candidates > 1) {
        Contest all(candidates, rules);
        if (!compete(all, random, turn))
            return std::nullopt;
        best = all.best();
        rounds = all.rounds();
    }
    ContestRules duel_rules = rules;
    duel_rules.min_rounds = std::max(rules.min_rounds, duel_rounds);
    Contest duel(2, duel_rules);
    const auto duellist = [&](size_t i) { return turn(i == 0 ? 0 : best); };
    if (!compete(duel, random, duellist))
        return std::nullopt;
    const Interval ratio = duel.ratio(1);
    const bool faster = best != 0 && is_clearly_faster(ratio);
    return Fastest{faster ? best : 0, duel.us(faster ? 1 : 0), duel.us(0), ratio, rounds + duel.rounds()};
}

}  // namespace hg
