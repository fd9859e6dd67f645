// A set-associative hash table of fixed size: an entry's hash names its set, and sets have eight places.
// Memory of entries that were never filled is never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace hg {

template <typename Entry, size_t sets>
class HashedSets {
public:
    // The entry with this hash that matches; null if there is none.
    template <typename Matches>
    const Entry* find(uint64_t hash, const Matches& matches) const
    {
        const size_t first = first_of(hash);
        for (size_t place = first; place < first + ways; ++place)
            if (tags_[place] == tag_of(hash) && matches(entries_[place]))
                return &entries_[place];
        return nullptr;
    }

    // The entry to fill: the one with this hash, else an empty one, else an older one, which is forgotten.
    // It is found after keep().
    Entry& entry_for(uint64_t hash)
    {
        const size_t first = first_of(hash);
        size_t chosen = first + turn_++ % ways;
        for (const uint64_t wanted : {uint64_t{0}, tag_of(hash)})
            for (size_t place = first + ways; place-- > first;)
                if (tags_[place] == wanted)
                    chosen = place;
        tags_[chosen] = 0;
        return entries_[chosen];
    }
    void keep(const Entry& entry, uint64_t hash) { tags_[&entry - entries_.get()] = tag_of(hash); }

    void clear() { std::memset(tags_, 0, sizeof tags_); }

private:
    static_assert(std::is_trivially_default_constructible_v<Entry>, "would be written to");
    static constexpr size_t ways = 8;
    static size_t first_of(uint64_t hash) { return hash % sets * ways; }
    static uint64_t tag_of(uint64_t hash) { return hash | uint64_t{1} << 63; }  // 0 is an empty place's

    alignas(64) uint64_t tags_[sets * ways] = {};
    std::unique_ptr<Entry[]> entries_ = std::make_unique_for_overwrite<Entry[]>(sets * ways);
    size_t turn_ = 0;
};

}  // namespace hg
