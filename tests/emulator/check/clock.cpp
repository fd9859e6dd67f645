#include "check/clock.hpp"

#include <algorithm>

namespace emu {

// Into keeps its leaf, or has that of `from`, where the other says no more.
void Clock::merge(Shared<Leaf>& into, const Shared<Leaf>& from)
{
    if (!from || into == from)
        return;
    if (!into) {
        into = from;
        return;
    }
    Leaf merged = *into;
    for (int i = 0; i < fan; ++i)
        emu::merge(merged.seen[i], (*from).seen[i]);
    if (std::ranges::equal(merged.seen, (*from).seen))
        into = from;
    else if (!std::ranges::equal(merged.seen, (*into).seen))
        into.change() = merged;
}

void Clock::merge(Shared<Branch>& into, const Shared<Branch>& from)
{
    if (!from || into == from)
        return;
    if (!into) {
        into = from;
        return;
    }
    for (int i = 0; i < fan; ++i) {
        if ((*into).leaves[i] == (*from).leaves[i])
            continue;
        Shared<Leaf> leaf = (*into).leaves[i];
        merge(leaf, (*from).leaves[i]);
        if (leaf != (*into).leaves[i])
            into.change().leaves[i] = std::move(leaf);
    }
    if (std::ranges::equal((*into).leaves, (*from).leaves))
        into = from;
}

void Clock::merge(const Clock& from)
{
    if (branches_.size() < from.branches_.size())
        branches_.resize(from.branches_.size());
    for (size_t i = 0; i < from.branches_.size(); ++i)
        merge(branches_[i], from.branches_[i]);
}

void Clock::merge(int agent, const Seen& from)
{
    Seen seen = of(agent);
    emu::merge(seen, from);
    if (seen == of(agent))
        return;
    const auto branch = static_cast<size_t>(agent) / (fan * fan);
    if (branch >= branches_.size())
        branches_.resize(branch + 1);
    branches_[branch].change().leaves[agent / fan % fan].change().seen[agent % fan] = seen;
}

Clock Clock::part_of(uint32_t lanes) const
{
    Clock part;
    for (size_t b = 0; b < branches_.size(); ++b)
        for (int l = 0; branches_[b] && l < fan; ++l) {
            const Shared<Leaf>& leaf = (*branches_[b]).leaves[l];
            for (int i = 0; leaf && i < fan; ++i)
                if (const Seen& seen = (*leaf).seen[i]; seen.lanes & lanes)
                    part.merge(static_cast<int>((b * fan + l) * fan + i),
                               {0, seen.some, seen.lanes & lanes});
        }
    return part;
}

}  // namespace emu
