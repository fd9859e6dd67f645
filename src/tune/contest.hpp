// Which of several candidates is the fastest: rounds in which each is timed once, until that is clear.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace hg {

double median_of(std::vector<double> values);  // at least one

// The median of some values and an interval around it, which holds the true one in 95 of 100 cases; for
// fewer than six values the interval is all of them.
struct Interval {
    double low, median, high;
    double half_width() const { return (high - low) / 2 / median; }  // a part of the median
};
Interval interval_of(std::vector<double> values);

struct ContestRules {
    int min_rounds = 4;  // before the first candidate is dropped
    int max_rounds = 30;
    double precision = 0.005;  // no more rounds once half of each interval is below this
};

// Candidate 0 is the one that the others are held against: it takes part in each round, and a candidate's
// value of a round is its time divided by that of candidate 0, so that the GPU's clock cancels. After a
// round the candidates leave whose interval lies above that of the best.
class Contest {
public:
    Contest(size_t candidates, const ContestRules& rules);

    const std::vector<size_t>& alive() const { return alive_; }  // candidate 0 and those that are left
    bool is_over() const { return over_; }
    void add_round(const std::vector<double>& us);  // of alive(), in its order

    int rounds() const { return rounds_; }
    size_t best() const;                     // of those alive, by the median
    Interval ratio(size_t candidate) const;  // to candidate 0
    double us(size_t candidate) const;       // median time

private:
    ContestRules rules_;
    std::vector<size_t> alive_;
    std::vector<std::vector<double>> times_, ratios_;
    int rounds_ = 0;
    bool over_ = false;
};

// Is a candidate, timed beside candidate 0, faster by more than the spread and by 0.7 %?
bool is_clearly_faster(const Interval& ratio);

// The least rounds in which the winner is timed again, for an interval that is narrower than all values.
constexpr int duel_rounds = 9;

// The time of a candidate's turn in microseconds; nothing: the contest is to stop.
using Turn = std::function<std::optional<double>(size_t candidate)>;

// Candidate 0, which the others are held against, or one that is clearly faster.
struct Fastest {
    size_t candidate;
    double us, reference_us;  // median times, of both in the same rounds
    Interval ratio;           // of the contest's winner to candidate 0
    int rounds;               // in all
};

// A contest, then its winner anew beside candidate 0 alone, so that the luck that made it win does not
// count. In each round candidates take turns in random order. Nothing if a turn stopped it.
std::optional<Fastest> find_fastest(size_t candidates, const ContestRules& rules, std::minstd_rand& random,
                                    const Turn& turn);

}  // namespace hg
