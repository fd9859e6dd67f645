// Plans random problems on devices of each kind, without launching anything, and checks each plan against
// the rules of all plans. Under the sanitizers it also finds tables that are read beyond their end.
#include "random_problem.hpp"
#include "src/plan/dispatch.hpp"
#include "src/run/plan_cache.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace hg::planning {
namespace {

struct Question {
    Device device;
    Problem problem;
    Options options;
};

struct Answer {
    Status status;
    Plan plan;

    bool operator==(const Answer& other) const
    {
        return status == other.status && (status != ok || plan == other.plan);
    }
};

Answer ask(const Question& q)
{
    Answer answer{};
    const Backend* candidates[max_backends];
    int count = 0;
    answer.status = find_backends(q.device, q.options, candidates, count);
    const std::span<const Backend* const> found(candidates, static_cast<size_t>(count));
    if (answer.status == ok)
        answer.status = make_plan(q.problem, q.device, q.options, found, answer.plan);
    return answer;
}

Question draw(uint64_t seed, uint64_t index)
{
    Random random(seed, index);
    Question q{};
    q.device = devices()[static_cast<size_t>(random.below(static_cast<int64_t>(devices().size())))];
    q.problem = draw_problem(random);
    q.options = draw_options(random, q.device);
    const Backend* candidates[max_backends];
    int count = 0;
    if (find_backends(q.device, q.options, candidates, count) == ok && q.options.workspace > 0 &&
        random.one_in(2))
        q.options.counters =
            counter_words(q.device, {candidates, static_cast<size_t>(count)}, q.options.workspace);
    return q;
}

// The line of a plan, and its variant, which that does not show.
std::string text_of(const Answer& answer)
{
    if (answer.status != ok)
        return fmt::format("{}: {}", hgemm_status_string(answer.status), hgemm_last_error());
    char line[512];
    answer.plan.print(line, sizeof line);
    return fmt::format("{} variant={}", line, answer.plan.variant);
}

std::string text_of(const Question& q)
{
    char line[256];
    q.problem.print(line, sizeof line);
    const Options& o = q.options;
    return fmt::format("{} on {}, backend '{}', kernel '{}', split {}, swap_ab {}, stream_k {}, pdl {}, "
                       "mode {}, {} SMs, {} bytes of workspace, {} counters",
                       line, q.device.name, o.backend, o.kernel, o.split, static_cast<int>(o.swap_ab),
                       static_cast<int>(o.stream_k), static_cast<int>(o.pdl), static_cast<int>(o.mode),
                       o.sm_limit, o.workspace, o.counters);
}

bool is_forced(const Options& o) { return *o.kernel || o.mode != Mode::Default || o.sm_limit > 0; }

// Do the tiles have at least as many elements as D?
bool covers_output(const Problem& p, const Plan& plan)
{
    const KernelInfo& kernel = plan.backend->kernels[plan.kernel];
    const int64_t outputs = p.groups.contiguous() ? 1 : p.batch, ctas = std::max(plan.cluster, 1);
    return static_cast<double>(plan.tiles) * static_cast<double>(ctas) * kernel.tile_m * kernel.tile_n >=
           static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(outputs);
}

// Which limit of the hardware the plan exceeds, or null.
const char* exceeds(const Device& device, const Plan& plan)
{
    constexpr int64_t max_tiles = int64_t{1} << 30;
    constexpr int max_threads = 1024, max_ctas = 8, max_slices = 60;
    const KernelInfo& kernel = plan.backend->kernels[plan.kernel];
    if (kernel.smem_bytes > device.smem_per_block || kernel.threads < 32 || kernel.threads > max_threads)
        return "its kernel does not fit the device";
    if (plan.tiles < 1 || plan.tiles > max_tiles || plan.grid < 1 || plan.grid > INT32_MAX)
        return "tiles or CTAs are too many or none";
    if (plan.cluster < 0 || plan.cluster > max_ctas || plan.grid % std::max(plan.cluster, 1) != 0)
        return "CTAs make no whole clusters";
    if (plan.split < 1 || plan.split > max_slices)
        return "slices of k are too many or none";
    return nullptr;
}

// Which option the plan ignores, or null.
const char* disobeys(const Question& q, const Plan& plan)
{
    const Options& o = q.options;
    if (*o.kernel && std::string_view(o.kernel) != plan.backend->kernels[plan.kernel].name)
        return "another kernel was forced";
    if (o.split > 0 && plan.split != o.split)
        return "other slices were forced";
    if (o.swap_ab != SwapAb::Free && plan.swap_ab != (o.swap_ab == SwapAb::On))
        return "the other swap_ab was forced";
    if (o.mode == Mode::BatchInvariant && (plan.split > 1 || plan.sm90.stream_k))
        return "sums depend on the batch";
    if (o.sm_limit > 0 && plan.grid > o.sm_count(q.device))
        return "it has more CTAs than SMs that it may use";
    if (o.sm_limit > 0 && 2 * o.sm_limit <= q.device.sm_count && !*o.kernel && plan.cluster > 1)
        return "its clusters may find no place";
    if (plan.workspace > o.workspace)
        return "it wants more workspace than there is";
    return nullptr;
}

const char* find_fault(const Question& q, const Answer& answer)
{
    if (ask(q) != answer)
        return "a second plan is different";
    if (ask({q.device, shape_of(q.problem), q.options}) != answer)
        return "the plan depends on what the cache of plans does not look at";
    const int64_t max_rows = int64_t{1} << 21;  // tiles of 128 x 128 within 2^30
    const bool few = q.problem.m <= max_rows && q.problem.n <= max_rows && q.problem.batch == 1;
    if (answer.status != ok)
        return !few || is_forced(q.options) || *q.options.backend ? nullptr : "no kernel serves it";
    const Plan& plan = answer.plan;
    if (plan.kernel < 0 || plan.kernel >= plan.backend->kernel_count)
        return "there is no such kernel";
    if (const char* fault = exceeds(q.device, plan))
        return fault;
    if (!covers_output(q.problem, plan))
        return "tiles do not cover D";
    if (!std::isfinite(plan.predicted_us) || plan.predicted_us <= 0)
        return "no time is predicted";
    return disobeys(q, plan);
}

struct Wanted {
    uint64_t seed = 1, first = 0, count = DEFAULT_COUNT;
    bool print = false;
};

int run(const Wanted& wanted)
{
    std::map<std::string_view, uint64_t> planned;  // by backend
    uint64_t faults = 0;
    for (uint64_t index = wanted.first; index < wanted.first + wanted.count; ++index) {
        const Question question = draw(wanted.seed, index);
        if (wanted.print)
            fmt::print(stderr, "{}: {}\n", index, text_of(question));
        const Answer answer = ask(question);
        if (answer.status == ok)
            ++planned[answer.plan.backend->name];
        if (const char* const fault = find_fault(question, answer)) {
            ++faults;
            fmt::print("--seed {} --first {} --count 1: {}\n  {}\n  {}\n", wanted.seed, index, fault,
                       text_of(question), text_of(ask(question)));
        }
    }
    fmt::print("seed {}: {} problems, {} faults", wanted.seed, wanted.count, faults);
    for (const auto& [backend, count] : planned)
        fmt::print(", {} planned for {}", count, backend);
    fmt::print("\n");
    return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hg::planning

int main(int argc, char** argv)
{
    CLI::App app("Plans random problems on devices of each kind and checks the plans.");
    hg::planning::Wanted wanted;
    app.add_option("--seed", wanted.seed, "of the random numbers");
    app.add_option("--first", wanted.first, "number of the first problem");
    app.add_option("--count", wanted.count, "problems");
    app.add_flag("--print", wanted.print, "each problem to standard error before it is planned");
    CLI11_PARSE(app, argc, argv);
    return hg::planning::run(wanted);
}
