#include "src/tune/measure.hpp"

#include "src/driver/driver.hpp"
#include "src/plan/dispatch.hpp"
#include "src/run/execute.hpp"
#include "src/run/lending.hpp"
#include "src/tune/choices.hpp"
#include "src/tune/sample.hpp"
#include "src/tune/scratch.hpp"
#include "src/tune/stopwatch.hpp"
#include "src/tuning/file.hpp"
#include "src/tuning/key.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double turn_us = 300, most_launches = 16;  // of a turn
constexpr double least_us = 0.1;                     // nothing on a GPU is faster

struct Candidate {
    KernelChoice choice;
    Packed packed;
    std::vector<double> times;
};

class Measurement {
public:
    Measurement(Handle& handle, const Problem& problem, const TuneSettings& settings, Tuned& tuned)
        : handle_(handle), asked_(problem), measured_(problem), settings_(settings), tuned_(tuned),
          scratch_(handle)
    {
    }

    Status measure();

private:
    Status choose();
    Status compare_results();
    Status run(Candidate& candidate);
    bool runs(Candidate& candidate);
    void leave_out_wrong(const Candidate& candidate);
    void leave_out(const Candidate& candidate, const char* why) const;
    Status find_launches();
    Status time(const Candidate& candidate, double& us);
    Status compete();
    void finish(const Fastest& fastest);
    bool is_late() const
    {
        const std::chrono::duration<double> passed = Clock::now() - begin_;
        return settings_.seconds > 0 && passed.count() >= settings_.seconds;
    }

    Handle& handle_;
    const Problem& asked_;
    Problem measured_;  // writes to scratch_
    const TuneSettings& settings_;
    Tuned& tuned_;
    const Clock::time_point begin_ = Clock::now();
    Scratch scratch_;
    Stopwatch stopwatch_;
    size_t launches_ = 1;                // of a turn
    std::vector<Candidate> candidates_;  // the library's own choice, then what else is right
};

// The library's own choice, what the handle uses now, and what promises to be fast.
Status Measurement::choose()
{
    Status status = find_place(handle_);
    if (status != ok)
        return status;
    const Options options = handle_.planning_options();
    Plan built_in{}, before{};
    status = make_plan(asked_, handle_.device, options, handle_.served_by(), built_in);
    if (status == ok)
        status = check_workspace(handle_, built_in);
    if (status == ok)
        status = decide(handle_, asked_, before);
    if (status != ok)
        return status;
    tuned_.built_in = text_of(built_in);
    tuned_.before = tuned_.now = text_of(before);
    std::vector<KernelChoice> choices = {{tuned_.built_in, built_in}, {tuned_.before, before}};
    for (KernelChoice& choice :
         promising_choices(handle_, asked_, static_cast<size_t>(settings_.candidates), TriedPdl::Own))
        choices.push_back(std::move(choice));
    for (KernelChoice& choice : choices) {
        const auto is_same = [&](const Candidate& c) { return c.choice.text == choice.text; };
        if (std::ranges::none_of(candidates_, is_same))
            candidates_.push_back({std::move(choice), {}, {}});
    }
    tuned_.candidates = static_cast<int>(candidates_.size());
    // At once, since what is packed names the memory.
    size_t bytes = 0;
    bool counts = false;
    for (const Candidate& candidate : candidates_) {
        bytes = std::max(bytes, candidate.choice.plan.workspace);
        counts = counts || candidate.choice.plan.counts;
    }
    return provide_workspace(handle_, bytes, counts);
}

void Measurement::leave_out(const Candidate& candidate, const char* why) const
{
    if (handle_.log.wants(LogLevel::Plan))
        handle_.log.line("tuning leaves out %s: %s", candidate.choice.text.c_str(), why);
}

// Launches the candidate once, on outputs that are all NaN.
Status Measurement::run(Candidate& candidate)
{
    const Plan& plan = candidate.choice.plan;
    Status status = scratch_.poison_outputs();
    if (status == ok)
        status = plan.backend->pack(handle_, measured_, plan, candidate.packed);
    return status == ok ? launch_plan(handle_, plan, candidate.packed) : status;
}

// A candidate that does not run is no failure of the call, unless the stream has failed too.
bool Measurement::runs(Candidate& candidate)
{
    const KeptError kept;
    if (run(candidate) == ok)
        return true;
    ++tuned_.failed;
    leave_out(candidate, error_text());
    return false;
}

// Those whose result is that of the library's own choice stay.
Status Measurement::compare_results()
{
    Sample sample;
    std::vector<float> wanted, found;
    Status status = scratch_.replace_outputs(measured_);
    if (status == ok)
        status = sample.read(handle_, asked_);
    if (status == ok)
        status = run(candidates_[0]);
    if (status == ok)
        status = sample.results(handle_, measured_, wanted);
    if (status == ok && handle_.log.wants(LogLevel::Plan))
        handle_.log.line("tuning %s: %zu candidates beside %s",
                         tuning_key(asked_, handle_.options.mode).c_str(), candidates_.size() - 1,
                         tuned_.built_in.c_str());
    std::vector<Candidate> right;
    for (Candidate& candidate : candidates_) {
        if (status != ok || is_late())
            return status;
        const bool is_first = right.empty();
        if (!is_first && !runs(candidate)) {
            status = driver::wait_for(handle_.stream);
            continue;
        }
        if (!is_first)
            status = sample.results(handle_, measured_, found);
        if (is_first || (status == ok && sample.agree(wanted, found)))
            right.push_back(std::move(candidate));
        else if (status == ok)
            leave_out_wrong(candidate);
    }
    candidates_ = std::move(right);
    return status;
}

void Measurement::leave_out_wrong(const Candidate& candidate)
{
    ++tuned_.wrong;
    tuned_.wrong_kernels += (tuned_.wrong_kernels.empty() ? "" : " ") + candidate.choice.text;
    leave_out(candidate, "its result is wrong");
}

Status Measurement::time(const Candidate& candidate, double& us)
{
    const Status status = stopwatch_.time(
        handle_.stream, launches_, [&] { return scratch_.overwrite_l2(); },
        [&] { return launch_plan(handle_, candidate.choice.plan, candidate.packed); }, us);
    us = std::max(us, least_us);
    return status;
}

// So many launches in a turn that small kernels are timed long enough.
Status Measurement::find_launches()
{
    double us = 0;
    Status status = time(candidates_[0], us);
    if (status == ok)
        status = time(candidates_[0], us);
    launches_ = static_cast<size_t>(std::clamp(std::ceil(turn_us / us), 1.0, most_launches));
    return status;
}

Status Measurement::compete()
{
    std::minstd_rand random(1);
    Status status = find_launches();
    if (status != ok)
        return status;
    const auto turn = [&](size_t i) -> std::optional<double> {
        double us = 0;
        if (!is_late())
            status = time(candidates_[i], us);
        if (status != ok || us == 0)
            return std::nullopt;
        candidates_[i].times.push_back(us);
        return us;
    };
    const std::optional<Fastest> fastest = find_fastest(candidates_.size(), settings_.rules, random, turn);
    if (status == ok && fastest)
        finish(*fastest);
    return status;
}

void Measurement::finish(const Fastest& fastest)
{
    tuned_.complete = true;
    tuned_.rounds = fastest.rounds;
    tuned_.now = candidates_[fastest.candidate].choice.text;
    tuned_.now_us = fastest.us;
    tuned_.built_in_us = fastest.reference_us;
    if (!tuned_.is_built_in()) {
        tuned_.gain = 1 / fastest.ratio.median;
        tuned_.spread = fastest.ratio.half_width();
    }
    for (const Candidate& candidate : candidates_)
        if (candidate.choice.text == tuned_.before)
            tuned_.before_us = tuned_.before == tuned_.now        ? tuned_.now_us
                               : tuned_.before == tuned_.built_in ? tuned_.built_in_us
                                                                  : median_of(candidate.times);
}

Status Measurement::measure()
{
    tuned_.complete = false;
    Status status = driver::wait_for(handle_.stream);
    if (status == ok)
        status = choose();
    if (status == ok)
        status = compare_results();
    return status == ok && !is_late() ? compete() : status;
}

}  // namespace

Status measure(Handle& handle, const Problem& problem, const TuneSettings& settings, Tuned& tuned)
{
    return Measurement(handle, problem, settings, tuned).measure();
}

}  // namespace hg
