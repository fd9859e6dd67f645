#include "src/base/side_by_side.hpp"

#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace hg {
namespace {

// A failure's text belongs to the thread that it happened in.
struct Outcome {
    Status status = ok;
    std::string text;
};

void run(const std::function<Status(int)>& work, int index, Outcome& outcome) noexcept
{
    try {
        outcome.status = work(index);
        if (outcome.status != ok)
            outcome.text = error_text();
    } catch (...) {
        outcome.status = HGEMM_STATUS_ALLOC_FAILED;
    }
}

}  // namespace

Status run_side_by_side(int count, const std::function<Status(int)>& work)
{
    std::vector<Outcome> outcomes(static_cast<size_t>(count));
    std::vector<std::jthread> threads;  // joined where this is left
    threads.reserve(outcomes.size());
    int begun = 0;
    try {
        for (; begun < count - 1; ++begun)
            threads.emplace_back([&, begun] { run(work, begun, outcomes[begun]); });
    } catch (const std::system_error&) {
        // What has no thread is done below.
    }
    Status own = ok;
    for (int i = begun; i < count; ++i)
        if (const Status status = work(i); status != ok)
            own = status;
    threads.clear();
    for (const Outcome& outcome : outcomes)
        if (outcome.status != ok)
            return fail(outcome.status, "%s", outcome.text.empty() ? "no memory" : outcome.text.c_str());
    return own;
}

}  // namespace hg
