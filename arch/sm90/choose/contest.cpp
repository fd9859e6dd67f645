#include "arch/sm90/choose/contest.hpp"

#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/choose/model/output_costs.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <tuple>

namespace hg::sm90 {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr float never = std::numeric_limits<float>::infinity();

// Of equal candidates the first one wins.
bool comes_before(const Candidate& x, const Candidate& y)
{
    const auto place = [](const Candidate& c) {
        return std::tuple(c.kernel, c.swap_ab, c.pdl_off, c.stream_k, c.split);
    };
    return place(x) < place(y);
}

void offer(const Choice& next, Choice& best)
{
    const double us = next.prediction.us, best_us = best.prediction.us;
    if (us < best_us || (us == best_us && us < infinity && comes_before(next.candidate, best.candidate)))
        best = next;
}

}  // namespace

Contest::Contest(const Facts& facts, const Options& options, int sm_count, const KernelFactors& factors)
    : f_(facts), o_(options), sm_count_(sm_count), factors_(factors),
      has_output_costs_(has_output_costs(facts)), adds_output_(!is_low_intensity_batch(facts.problem)),
      model_(facts, sm_count), admitted_{}
{
}

Contest::Admitted Contest::look_up(int kernel, bool swap_ab) const
{
    const int64_t clusters = count_clusters(f_.problem, configs[kernel], swap_ab);
    const Ways legal = legal_ways(f_, kernel, swap_ab, clusters, o_, sm_count_);
    return {clusters, worthy_ways(f_.problem, legal, kernel, clusters, o_, sm_count_), true};
}

bool Contest::is_admitted(const Candidate& c)
{
    const Ways way = Ways{1} << (c.stream_k ? stream_k_way : c.split);
    return ways_with(c.pdl_off, admitted(c.kernel, c.swap_ab).ways & way, c.kernel, c.clusters, o_,
                     sm_count_) != 0;
}

Candidate Contest::candidate_of(const Contestant& c)
{
    return {c.kernel, c.swap_ab, c.split, c.stream_k, c.clusters, c.pdl_off};
}

// Adds the time that D of floats and C take on the fullest SM.
double Contest::add_types(double us, const Candidate& candidate) const
{
    const Config& c = configs[candidate.kernel];
    const double tile_us = output_us(f_, c.schedule, c.tile_m, c.tile_n) / candidate.split;
    if (tile_us == 0.0)
        return us;
    return us + std::max(1.0, occupancy_of(f_.problem, candidate, sm_count_).load) * tile_us;
}

// Adds the time of storing tiles element by element, which the networks have not seen. The more waves, the
// less of it is hidden. DESIGN.md#known-limits.
double Contest::add_elements(double us, const Candidate& candidate) const
{
    constexpr double element_us = 0.06;  // of one thread
    if (!f_.output.elements)
        return us;
    const Config& c = configs[candidate.kernel];
    const double tile_us =
        element_us * c.tile_m * c.tile_n / (128.0 * c.consumers_per_tile() * candidate.split);
    return std::max(us + tile_us, occupancy_of(f_.problem, candidate, sm_count_).waves * tile_us);
}

double Contest::add_output(double us, const Candidate& candidate) const
{
    return has_output_costs_ ? add_elements(add_types(us, candidate), candidate) : us;
}

double Contest::by_model_us(double us, const Candidate& candidate) const
{
    return adds_output_ ? add_output(us, candidate) : us;
}

// Lowers `least` to the shortest time of the row. Times below `limit` become infinite where the candidate
// is not admitted, and estimates where they are lower bounds.
void Contest::admit(Row& row, double limit, double& least)
{
    const auto candidate_of = [&](int lane) {
        const int kernel = row.kernel + lane;
        return Candidate{
            kernel,     row.swap_ab, row.split, row.stream_k, admitted(kernel, row.swap_ab).clusters,
            row.pdl_off};
    };
    // An estimate of what is not legal may be no number.
    for (int lane = 0; lane < Lanes::count; ++lane)
        if (row.us[lane] < limit && !is_admitted(candidate_of(lane)))
            row.us[lane] = never;
    if (row.is_bound)
        model_.refine(row, static_cast<float>(limit), factors_);
    for (int lane = 0; lane < Lanes::count; ++lane)
        if (row.us[lane] < limit && row.us[lane] < least)
            least = std::min(least, by_model_us(row.us[lane], candidate_of(lane)));
}

// Finds the candidates that may take less than `slack` times as long as the best one. Returns about the
// time of that.
double Contest::find_contestants(double slack)
{
    Row rows[max_rows];
    Asked asked{o_.mode == Mode::BatchInvariant
                    ? 1
                    : static_cast<int>(std::clamp<int64_t>(ceil_div(f_.problem.k, tile_k), 1, max_slices)),
                o_.pdl != Pdl::Off, o_.pdl == Pdl::Free || o_.pdl == Pdl::Off, never};
    const double more = slack * (1.0 + 2.0 * Model::tolerance);
    double least = infinity;
    OrderedEight ordered[2 * eights_count];
    model_.order_eights(factors_, ordered);
    int count = 0;
    for (const OrderedEight& next : ordered) {
        asked.limit = static_cast<float>(more * least);
        if (next.least_us > asked.limit)
            break;
        const int end = count + model_.estimate(next, asked, factors_, rows + count);
        for (; count < end; ++count)
            if (!rows[count].is_bound && rows[count].least < least)
                admit(rows[count], least, least);
    }
    const std::span<Row> all(rows, static_cast<size_t>(count));
    for (Row& row : all)
        if (row.least < more * least)
            admit(row, more * least, least);
    for (const Row& row : all)
        for (int lane = 0; row.least < more * least && lane < Lanes::count; ++lane)
            if (row.us[lane] < more * least)
                contestants_[count_++] = {
                    row.us[lane],
                    static_cast<int32_t>(admitted(row.kernel + lane, row.swap_ab).clusters),
                    static_cast<uint8_t>(row.kernel + lane),
                    row.split,
                    row.swap_ab,
                    row.stream_k,
                    row.pdl_off};
    return least;
}

Choice Contest::by_model(double slack)
{
    const double most = find_contestants(slack) * (1.0 + 2.0 * Model::tolerance);
    Choice best = no_choice;
    for (const Contestant& c : std::span(contestants_, static_cast<size_t>(count_))) {
        if (c.us > most)
            continue;
        const Candidate candidate = candidate_of(c);
        if (by_model_us(c.us, candidate) > most)
            continue;
        Prediction prediction = model_.predict(candidate, factors_[c.kernel]);
        prediction.us = by_model_us(prediction.us, candidate);
        offer({candidate, prediction}, best);
    }
    return best;
}

float Contest::exact_us(const Contestant& c) const
{
    return static_cast<float>(model_.predict(candidate_of(c), factors_[c.kernel]).us);
}

Prediction Contest::prediction_of(const Corrected& time, const Candidate& candidate) const
{
    const bool late = candidate.pdl_off || !configs[candidate.kernel].is_split() ? false
                      : o_.pdl == Pdl::Free                                      ? time.late < time.early
                                                                                 : o_.pdl == Pdl::Late;
    return {add_output(late ? time.late : time.early, candidate), candidate.pdl_off ? Pdl::Off
                                                                  : late            ? Pdl::Late
                                                                                    : Pdl::Early};
}

// Replaces the model's estimates by the network's, eight at a time.
void Contest::correct(const CorrectionEstimate& estimate, std::span<Contestant> contestants) const
{
    const auto kind_of = [](const Contestant& c) {
        return configs[c.kernel].is_split() ? 0 : c.stream_k ? 1 : 2;
    };
    for (int kind = 0; kind < 3; ++kind)
        for (size_t next = 0; next < contestants.size();) {
            Candidate candidates[Lanes::count];
            Contestant* asked[Lanes::count];
            float us[Lanes::count]{}, early[Lanes::count], late[Lanes::count];
            size_t count = 0;
            for (; next < contestants.size() && count < Lanes::count; ++next)
                if (kind_of(contestants[next]) == kind) {
                    asked[count] = &contestants[next];
                    us[count] = asked[count]->us;
                    candidates[count] = candidate_of(*asked[count]);
                    ++count;
                }
            if (count > 0)
                estimate({candidates, count}, us, early, late);
            for (size_t i = 0; i < count; ++i)
                asked[i]->us = static_cast<float>(prediction_of({early[i], late[i]}, candidates[i]).us);
        }
}

Choice Contest::by_network(Card card, double limit)
{
    const std::span<Contestant> all(contestants_, static_cast<size_t>(count_));
    const auto last = std::remove_if(all.begin(), all.end(), [&](const Contestant& c) {
        const auto whole = [&](double us) { return by_model_us(us, candidate_of(c)); };
        return c.split > few_slices ||
               (whole(c.us) > limit * (1.0 - Model::tolerance) &&
                (whole(c.us) > limit * (1.0 + Model::tolerance) || whole(exact_us(c)) >= limit));
    });
    const std::span<Contestant> contestants(all.begin(), last);
    correct(CorrectionEstimate(f_.problem, sm_count_, card), contestants);
    float least = never;
    for (const Contestant& c : contestants)
        least = std::min(least, c.us);
    const double most = least * (1.0 + 2.0 * CorrectionEstimate::tolerance);
    Choice best = no_choice;
    for (const Contestant& c : contestants) {
        if (c.us > most)
            continue;
        const Candidate candidate = candidate_of(c);
        const Corrected time = corrected_us(f_.problem, candidate, exact_us(c), sm_count_, card);
        offer({candidate, prediction_of(time, candidate)}, best);
    }
    return best;
}

}  // namespace hg::sm90
