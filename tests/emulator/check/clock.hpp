// Vector clocks: how far each agent has been seen.
//
// A clock has thousands of entries, is copied for each asynchronous operation, and differs from the one
// that it was copied from in a few. Clocks therefore share what they have in common: entries lie in leaves,
// leaves in branches, and a copy shares both until one of its entries changes. What two clocks share needs
// no merging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace emu {

// How far one agent has been seen: everything up to `full`, and of `lanes` everything up to `some`. Lanes
// are none where `some` says no more than `full`.
struct Seen {
    uint32_t full = 0, some = 0, lanes = 0;
    bool operator==(const Seen&) const = default;
};

// What was done at a time by some lanes of an agent; no lanes: by all of it at once.
inline bool covers(const Seen& seen, uint32_t time, uint32_t lanes)
{
    if (time <= seen.full)
        return true;
    if (time > seen.some)
        return false;
    return lanes ? (lanes & ~seen.lanes) == 0 : seen.lanes != 0;
}

// Lanes that only the older of two knows about count up to the newer's time: a report less, never one more.
inline void merge(Seen& into, const Seen& from)
{
    const uint32_t full = into.full > from.full ? into.full : from.full;
    const uint32_t some = into.some > from.some ? into.some : from.some;
    into.lanes = (into.some > full ? into.lanes : 0) | (from.some > full ? from.lanes : 0);
    into.full = full;
    into.some = some;
}

// A node that several clocks of one thread may have: it is copied before one of them changes it.
template <class Node>
class Shared {
public:
    Shared() = default;
    Shared(const Shared& other) : counted_(other.counted_)
    {
        if (counted_)
            ++counted_->owners;
    }
    Shared(Shared&& other) noexcept : counted_(std::exchange(other.counted_, nullptr)) {}
    Shared& operator=(Shared other) noexcept
    {
        std::swap(counted_, other.counted_);
        return *this;
    }
    ~Shared()
    {
        if (counted_ && --counted_->owners == 0)
            delete counted_;
    }

    bool operator==(const Shared&) const = default;
    explicit operator bool() const { return counted_; }
    const Node& operator*() const { return counted_->node; }

    // The node for its only owner to change; a new one where there is none.
    Node& change()
    {
        if (!counted_) {
            counted_ = new Counted;
        } else if (counted_->owners > 1) {
            --counted_->owners;
            counted_ = new Counted{1, counted_->node};
        }
        return counted_->node;
    }

private:
    struct Counted {
        uint32_t owners = 1;
        Node node;
    };
    Counted* counted_ = nullptr;
};

class Clock {
public:
    bool empty() const { return branches_.empty(); }
    void clear() { branches_.clear(); }

    // Nothing of an agent that the clock does not know.
    Seen of(int agent) const
    {
        const auto branch = static_cast<size_t>(agent) / (fan * fan);
        if (branch >= branches_.size() || !branches_[branch])
            return {};
        const Shared<Leaf>& leaf = (*branches_[branch]).leaves[agent / fan % fan];
        return leaf ? (*leaf).seen[agent % fan] : Seen{};
    }
    bool covers(int agent, uint32_t time, uint32_t lanes) const
    {
        return emu::covers(of(agent), time, lanes);
    }

    void merge(const Clock& from);
    void merge(int agent, const Seen& from);
    // What of it these lanes did.
    Clock part_of(uint32_t lanes) const;

private:
    static constexpr int fan = 32;
    struct Leaf {
        Seen seen[fan];
    };
    struct Branch {
        Shared<Leaf> leaves[fan];
    };
    static void merge(Shared<Leaf>& into, const Shared<Leaf>& from);
    static void merge(Shared<Branch>& into, const Shared<Branch>& from);

    std::vector<Shared<Branch>> branches_;  // of fan * fan agents each
};

}  // namespace emu
