// One grid from its first cluster to its last: who runs next, and what to do when nobody can.
#include "core/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace emu {
namespace {

constexpr int longest_quantum = 64;
// Backward branches that one fragment may take while others of its warp could run.
constexpr int patience = 64;
// Instructions of every live warp without a store, barrier or exit after which spinning counts as a
// deadlock. Where kernels take turns, each must come so far before all are known to wait.
constexpr uint64_t livelock = uint64_t{1} << 20, livelock_in_turns = uint64_t{1} << 16;
// The same after which asynchronous operations go on although warps can run: they may be polling for one.
constexpr uint64_t polling = 4096;

bool mergeable(const Fragment& fragment)
{
    return fragment.converging || (!fragment.wait.ready && !fragment.retry);
}

bool runnable(Fragment& fragment)
{
    if (!fragment.wait.ready)
        return true;
    if (!fragment.wait.ready())
        return false;
    fragment.wait = {};
    return true;
}

}  // namespace

bool Cluster::done() const
{
    return pending.empty() &&
           std::all_of(ctas.begin(), ctas.end(), [](const auto& cta) { return cta->done(); });
}

Turn Scheduler::advance(uint64_t turns)
{
    const uint64_t before = machine_.progress;
    start_clusters();
    for (; turns > 0 && has_work(); --turns)
        if (turn() == Turn::Stuck)
            return Turn::Stuck;
    if (has_work())
        return machine_.progress == before ? Turn::Nothing : Turn::Progress;
    count_instructions();
    return Turn::Ended;
}

Turn Scheduler::turn()
{
    const bool early = early_ > 0 && std::uniform_real_distribution<>()(machine_.random) < early_;
    const bool polls = machine_.polls > warps_.size();
    if (polls)
        machine_.polls = 0;
    if (early || polls || machine_.steps - machine_.progress > polling)
        finish_async();
    // What finished early may have been the last of a cluster whose warps have all ended.
    if (!run_some_warp() && !finish_async() && !warps_changed_ && !force_divergent())
        return Turn::Stuck;
    if (warps_changed_) {
        warps_changed_ = false;
        retire_clusters();
        start_clusters();
    }
    const uint64_t limit = machine_.config.overlap ? livelock_in_turns : livelock;
    livelock_ = machine_.steps - machine_.progress > limit * warps_.size();
    return livelock_ ? Turn::Stuck : Turn::Progress;
}

void Scheduler::count_instructions()
{
    for (size_t i = 0; i < grid_.executed.size(); ++i)
        if (const uint64_t count = grid_.executed[i]) {
            const Op& op = grid_.program->ops[i];
            machine_.statistics.opcodes[grid_.program->names[op.name]] += count;
            machine_.statistics.lines[op.line] += count;
        }
    for (size_t i = 0; i < grid_.banks.size(); ++i) {
        if (grid_.banks[i].accesses == 0)
            continue;
        BankPasses& line = machine_.statistics.shared[grid_.program->ops[i].line];
        line.accesses += grid_.banks[i].accesses;
        line.passes += grid_.banks[i].passes;
        line.least += grid_.banks[i].least;
    }
}

bool Scheduler::run_some_warp()
{
    const size_t count = warps_.size();
    if (count == 0)
        return false;
    const size_t start = machine_.random() % count;
    for (size_t i = 0; i < count; ++i) {
        Warp& warp = *warps_[start + i < count ? start + i : start + i - count];
        if (Fragment* fragment = choose(warp)) {
            run_quantum(warp, *fragment);
            return true;
        }
    }
    return false;
}

void Scheduler::run_quantum(Warp& warp, Fragment& first)
{
    Fragment* fragment = &first;
    const int quantum = 1 + static_cast<int>(machine_.random() % longest_quantum);
    for (int i = 0; i < quantum && fragment; ++i) {
        const bool alone = warp.fragments.size() == 1;
        const bool goes_on = step(warp, *fragment);
        if (warp.fragments.empty())
            return;
        if (!alone || warp.fragments.size() > 1) {
            merge(warp);
            fragment = choose(warp);
        } else if (!goes_on) {
            return;
        }
    }
}

// The fragment furthest behind that can run; now and then another, lest one wait for it for ever.
Fragment* Scheduler::choose(Warp& warp)
{
    Fragment* best = nullptr;
    Fragment* other = nullptr;
    for (Fragment& fragment : warp.fragments) {
        if (!runnable(fragment))
            continue;
        if (!best || fragment.pc < best->pc)
            std::swap(best, other), best = &fragment;
        else
            other = &fragment;
    }
    if (other && warp.patience > patience) {
        warp.patience = 0;
        return other;
    }
    return best;
}

// Fragments that have met become one.
void Scheduler::merge(Warp& warp)
{
    auto& fragments = warp.fragments;
    for (size_t i = 0; i < fragments.size(); ++i)
        for (size_t j = i + 1; j < fragments.size();) {
            Fragment &a = fragments[i], &b = fragments[j];
            if (a.pc != b.pc || !mergeable(a) || !mergeable(b)) {
                ++j;
                continue;
            }
            a.lanes |= b.lanes;
            a.wait = {};
            a.retry = a.converging = a.forced = false;
            fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(j));
        }
}

bool Scheduler::step(Warp& warp, Fragment& fragment)
{
    const Op& op = grid_.program->ops[fragment.pc];
    Mask lanes = fragment.lanes;
    if (op.guard >= 0) {
        const Mask guard = *reinterpret_cast<const Mask*>(warp.registers.data() + op.guard);
        lanes &= op.guard_negated ? ~guard : guard;
    }
    ++machine_.steps;
    if (!lanes) {
        ++fragment.pc;
        return true;
    }
    const bool retried = std::exchange(fragment.retry, false);
    grid_.executed[fragment.pc] += !retried;
    warp.instructions += !retried;
    fragment.converging = false;
    Exec x{machine_, grid_, *warp.cta, warp, fragment, op, lanes, fragment.pc + 1, retried};
    const Mask exited = warp.exited;
    try {
        if (warp.watch)
            warp.watch(x);
        op.run(x);
    } catch (const Diverged& diverged) {
        const Mask needed = diverged.needed, here = fragment.lanes;
        fragment.converging = true;
        x.wait([&warp, needed, here] { return (needed & ~warp.exited & ~here) == 0; },
               [needed, here] { return "for lanes " + hexadecimal(needed & ~here) + " of its warp"; },
               true);
    }
    if (!fragment.converging)
        fragment.forced = false;
    const bool waits = static_cast<bool>(fragment.wait.ready);
    if (waits && !fragment.converging && (fragment.lanes & ~lanes)) {
        // Those whose guard is false need not wait.
        Fragment rest;
        rest.pc = fragment.pc + 1;
        rest.lanes = fragment.lanes & ~lanes;
        fragment.lanes &= lanes;
        warp.fragments.push_back(rest);
    }
    if (!waits || !fragment.retry) {
        warp.patience += x.next_pc <= fragment.pc && warp.fragments.size() > 1;
        fragment.pc = x.next_pc;
    }
    if (warp.exited != exited)
        leave(x);
    return !waits;
}

void Scheduler::leave(Exec& x)
{
    Warp& warp = x.warp;
    Cta& cta = x.cta;
    machine_.progress = machine_.steps;
    if (warp.exited == all_lanes) {
        warps_changed_ = true;
        warps_.erase(std::find(warps_.begin(), warps_.end(), &warp));
        --cta.live_warps;
        for (const auto check : decoders().at_warp_exit)
            check(x);
        if (cta.done()) {
            machine_.checker.leave(cta);
            for (const auto check : decoders().at_cta_exit)
                check(x);
        }
    }
    std::erase_if(warp.fragments, [](const Fragment& fragment) { return fragment.lanes == 0; });
}

bool Scheduler::finish_async()
{
    size_t count = 0;
    for (const auto& cluster : grid_.resident)
        count += cluster->pending.size();
    if (count == 0)
        return false;
    const size_t start = machine_.random() % count;
    size_t at = 0;
    for (int round = 0; round < 2; ++round) {
        at = 0;
        for (const auto& cluster : grid_.resident)
            for (size_t i = 0; i < cluster->pending.size(); ++i, ++at) {
                std::unique_ptr<AsyncOp>& candidate = cluster->pending[i];
                if ((at >= start) == (round == 1) || (candidate->may_finish && !candidate->may_finish()))
                    continue;
                const std::unique_ptr<AsyncOp> op = std::move(candidate);
                cluster->pending.erase(cluster->pending.begin() + static_cast<std::ptrdiff_t>(i));
                op->finish();
                machine_.progress = machine_.steps;
                warps_changed_ = true;
                return true;
            }
    }
    return false;
}

bool Scheduler::force_divergent()
{
    std::vector<Fragment*> stuck;
    for (Warp* warp : warps_)
        for (Fragment& fragment : warp->fragments)
            if (fragment.converging)
                stuck.push_back(&fragment);
    if (stuck.empty())
        return false;
    Fragment& fragment = *stuck[machine_.random() % stuck.size()];
    fragment.wait = {};
    fragment.forced = true;
    return true;
}

std::string Scheduler::stuck() const
{
    constexpr int most = 128;
    std::string text = std::string(livelock_ ? "livelock" : "deadlock") + " in " +
                       grid_.program->kernel->name + ", " + std::to_string(warps_.size()) + " warps:";
    if (clusters_left() > 0)
        text += "\n  " + std::to_string(clusters_left()) + " of " +
                std::to_string(grid_.launch.grid.count() / grid_.launch.cluster.count()) +
                " clusters have not started";
    int listed = 0;
    for (const Warp* warp : warps_)
        for (const Fragment& fragment : warp->fragments) {
            if (++listed > most)
                continue;
            const uint32_t* id = warp->cta->id;
            text += "\n  CTA (" + std::to_string(id[0]) + ", " + std::to_string(id[1]) + ", " +
                    std::to_string(id[2]) + ") warp " + std::to_string(warp->index) + " lanes " +
                    hexadecimal(fragment.lanes) + " at " +
                    source_text(*grid_.program, grid_.program->ops[fragment.pc].line);
            if (fragment.wait.what)
                text += "\n    waits " + fragment.wait.what();
        }
    if (listed > most)
        text += "\n  and " + std::to_string(listed - most) + " more";
    for (const auto& cluster : grid_.resident)
        for (const std::unique_ptr<AsyncOp>& op : cluster->pending)
            text +=
                std::string("\n  pending: ") + op->name + " of " + source_text(*grid_.program, op->line);
    return text;
}

}  // namespace emu
