// Finds the names that are most like a wrong one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace hg {

// How many characters must be inserted, deleted or replaced to make `wanted` a prefix of `name`.
inline size_t distance_to_begin(std::string_view wanted, std::string_view name)
{
    constexpr size_t longest = 80;
    std::array<size_t, longest + 1> row;  // of the first characters of `name`, one more each
    const size_t length = std::min(name.size(), longest);
    for (size_t j = 0; j <= length; ++j)
        row[j] = j;
    for (size_t i = 0; i < wanted.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= length; ++j) {
            const size_t replaced = diagonal + (wanted[i] != name[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return *std::min_element(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(length) + 1);
}

// Keeps the `count` nearest of the names that are offered, the nearest first; of equals the one whose
// length differs least.
template <size_t count>
class NearestNames {
public:
    explicit NearestNames(std::string_view wanted) : wanted_(wanted) {}

    void offer(const char* name)
    {
        Entry entry{name, distance_to_begin(wanted_, name), length_difference(name)};
        for (Entry& kept : entries_)
            if (!kept.name || entry < kept)
                std::swap(entry, kept);
    }
    template <typename Visit>
    void for_each(Visit visit) const
    {
        for (const Entry& kept : entries_)
            if (kept.name)
                visit(kept.name);
    }

private:
    struct Entry {
        const char* name;
        size_t distance, length_difference;
        bool operator<(const Entry& other) const
        {
            return distance != other.distance ? distance < other.distance
                                              : length_difference < other.length_difference;
        }
    };
    size_t length_difference(std::string_view name) const
    {
        return std::max(name.size(), wanted_.size()) - std::min(name.size(), wanted_.size());
    }

    std::string_view wanted_;
    std::array<Entry, count> entries_{};
};

}  // namespace hg
