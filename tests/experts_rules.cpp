#include "experts_rules.hpp"

#include "conformance.hpp"
#include "experts_parts.hpp"
#include "handle_scopes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace hg::test {
namespace {

std::string first_difference(const char* name, const std::vector<int32_t>& is,
                             const std::vector<int32_t>& should)
{
    if (is.size() != should.size())
        return std::string(name) + " has " + std::to_string(is.size()) + " numbers";
    const auto [wrong, right] = std::ranges::mismatch(is, should);
    return wrong == is.end() ? ""
                             : std::string(name) + "[" + std::to_string(wrong - is.begin()) + "] is " +
                                   std::to_string(*wrong) + " instead of " + std::to_string(*right) + " ";
}

}  // namespace

std::string Routed::difference(const Routed& other) const
{
    return first_difference("ends", ends, other.ends) +
           first_difference("row_of_choice", row_of_choice, other.row_of_choice) +
           first_difference("choice_of_row", choice_of_row, other.choice_of_row);
}

Routed sort_choices(const std::vector<int64_t>& chosen, int64_t experts)
{
    const auto expert_of = [&](int32_t choice) { return chosen[static_cast<size_t>(choice)]; };
    Routed sorted;
    for (int32_t choice = 0; choice < std::ssize(chosen); ++choice)
        if (0 <= expert_of(choice) && expert_of(choice) < experts)
            sorted.choice_of_row.push_back(choice);
    std::ranges::stable_sort(sorted.choice_of_row, {}, expert_of);
    sorted.ends.resize(static_cast<size_t>(experts));
    sorted.row_of_choice.resize(chosen.size(), -1);
    int32_t row = 0;
    for (const int32_t choice : sorted.choice_of_row) {
        ++sorted.ends[static_cast<size_t>(expert_of(choice))];
        sorted.row_of_choice[static_cast<size_t>(choice)] = row++;
    }
    std::partial_sum(sorted.ends.begin(), sorted.ends.end(), sorted.ends.begin());
    sorted.choice_of_row.resize(chosen.size(), -1);
    return sorted;
}

namespace {

// What tokens choose: any expert; some none; all the last one; nobody any; most of them one of a few; on a
// device also what no expert has.
enum class Taste { Any, Holes, One, Nothing, Few, Odd };
constexpr Taste tastes[] = {Taste::Any, Taste::Holes, Taste::Few, Taste::One, Taste::Odd, Taste::Nothing};

struct RouteCase {
    int64_t tokens, choices, experts;
    Taste taste;
    bool narrow;
    int64_t gap;

    int64_t all_choices() const { return tokens * choices; }
    int64_t ld() const { return choices + gap; }
    std::string print() const
    {
        return std::to_string(tokens) + " x " + std::to_string(choices) + " choices of " +
               std::to_string(experts) + (narrow ? " by int32_t" : " by int64_t") + ", gap " +
               std::to_string(gap) + ", taste " + std::to_string(static_cast<int>(taste));
    }
};

// A number that no expert has. As int32_t some of the first four would be experts.
int64_t draw_odd(const RouteCase& c, Random& random)
{
    const int64_t wide[] = {int64_t{1} << 32, -(int64_t{1} << 32), std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max()};
    const int64_t narrow[] = {-2, c.experts, c.experts + 31, std::numeric_limits<int32_t>::min(),
                              std::numeric_limits<int32_t>::max()};
    return !c.narrow && random.one_in(2) ? random.pick(wide) : random.pick(narrow);
}

int64_t draw_expert(const RouteCase& c, Random& random)
{
    switch (c.taste) {
    case Taste::One: return c.experts - 1;
    case Taste::Nothing: return -1;
    case Taste::Few: return random.below(1 + random.below(1 + random.below(c.experts)));
    case Taste::Holes: return random.one_in(3) ? -1 : random.below(c.experts);
    case Taste::Odd: return random.one_in(3) ? draw_odd(c, random) : random.below(c.experts);
    default: return random.below(c.experts);
    }
}

// One call after the other: with other outputs in the same places.
class RouteTrial {
public:
    RouteTrial(Library& library, const RouteCase& c, uint64_t seed)
        : library_(library), c_(c), place_(library, c.all_choices(), c.experts)
    {
        Random random(seed);
        // An expert's number between tokens, where nobody chooses.
        const auto size = static_cast<size_t>(std::max<int64_t>(1, c.tokens * c.ld() - c.gap));
        std::vector<int64_t> wide(size, c.experts - 1);
        for (int64_t t = 0; t < c.tokens; ++t)
            for (int64_t i = 0; i < c.choices; ++i)
                chosen_.push_back(wide[static_cast<size_t>(t * c.ld() + i)] = draw_expert(c, random));
        const std::vector<int32_t> narrow(wide.begin(), wide.end());
        there_ =
            Block(library.memory(), size * (c.narrow ? sizeof(int32_t) : sizeof(int64_t)), Guard::Fence);
        there_.copy_in(c.narrow ? static_cast<const void*>(narrow.data()) : wide.data());
    }

    // Without choice_of_row the other numbers are the same.
    void expect_right(hgemm_handle_t handle, bool inverts)
    {
        SCOPED_TRACE(inverts ? "with choice_of_row" : "without choice_of_row");
        place_.spoil();
        hgemm_route_args_t args = default_route();
        args.tokens = c_.tokens;
        args.choices = c_.choices;
        args.experts = c_.experts;
        args.ld = c_.ld();
        place_.add_to(args);
        if (!inverts || c_.tokens == 0)
            args.choice_of_row = nullptr;
        if (c_.tokens == 0)
            args.row_of_choice = nullptr;
        else if (c_.narrow)
            args.chosen_i32 = there_.get<int32_t>();
        else
            args.chosen = there_.get<int64_t>();
        ASSERT_EQ(library_.wait(hgemm_route(handle, &args)), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error() << library_.story();
        Routed wanted = sort_choices(chosen_, c_.experts);
        if (!inverts)
            std::ranges::fill(wanted.choice_of_row, Numbers<int32_t>::poison);
        EXPECT_EQ(place_.read().difference(wanted), "");
    }

private:
    Library& library_;
    RouteCase c_;
    std::vector<int64_t> chosen_;
    Block there_;
    RoutedPlace place_;
};

void expect_routes(Library& library, const RouteCase& c, uint64_t seed, int calls)
{
    SCOPED_TRACE(c.print());
    RouteTrial trial(library, c, seed);
    for (int i = 0; i < calls; ++i)
        trial.expect_right(library.handle(), (hash(10, seed) + static_cast<uint64_t>(i)) % 2 == 0);
}

}  // namespace

void check_routes(Library& library)
{
    // 8192 choices are sorted by one CTA on a GPU, and 512 experts are counted at a time.
    constexpr struct {
        int64_t tokens, choices;
    } sizes[] = {{0, 4},    {1, 1},    {1, 8},    {37, 6},   {129, 3},
                 {8192, 1}, {1024, 8}, {1171, 7}, {3000, 8}, {16400, 1}};
    constexpr int64_t experts[] = {1, 8, 100, 128, 512, 513, 700, 1500};
    const bool is_slow = thinning() > 1;
    uint64_t seed = 0;
    for (size_t i = 0; i < std::size(sizes); ++i)
        for (size_t j = 0; j < std::size(experts); ++j)
            for (size_t taste = 0; taste < std::size(tastes); ++taste) {
                ++seed;
                // Of a slow device's, each size twice, with all numbers of experts and all tastes.
                if (is_slow && ((i + j) % 4 != 0 || taste != (i + j / 4) % std::size(tastes)))
                    continue;
                if (tastes[taste] == Taste::Odd && !library.memory().on_device())
                    continue;
                const auto gap = static_cast<int64_t>(hash(8, seed) % 3);
                expect_routes(library,
                              {sizes[i].tokens, sizes[i].choices, experts[j], tastes[taste],
                               hash(9, seed) % 2 == 0, gap},
                              seed, is_slow ? 1 : 2);
            }
    for (const bool narrow : {false, true}) {
        expect_routes(library, {3000, 8, 513, Taste::Holes, narrow, 1}, ++seed, 2);
        expect_routes(library, {100, 5, 100, Taste::One, narrow, 0}, ++seed, 2);
    }
    if (!is_slow)
        expect_routes(library, {20000, 10, 1 << 16, Taste::Any, false, 0}, ++seed, 2);
}

void check_route_workspaces(Library& library)
{
    const bool is_slow = thinning() > 1;
    const RouteCase c{is_slow ? 1200 : 3000, 8, 128, Taste::Holes, false, 0};
    RouteTrial trial(library, c, 1);
    const auto expect_right = [&](hgemm_handle_t handle) {
        trial.expect_right(handle, true);
        if (!is_slow)
            trial.expect_right(handle, false);
    };
    // A CTA's counts take 512 bytes.
    for (const size_t bytes : {0, 256, 512, 1024, 1536, 2048}) {
        SCOPED_TRACE(std::to_string(bytes) + " bytes");
        const WithWorkspace workspace(library, bytes);
        expect_right(library.handle());
    }
    for (const int count : is_slow ? std::vector<int>{2, 0} : std::vector<int>{1, 2, 3, 0}) {
        SCOPED_TRACE(std::to_string(count) + " SMs");
        ASSERT_EQ(hgemm_set_sm_count(library.handle(), count), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        expect_right(library.handle());
    }
    const int device = library.memory().on_device() ? 0 : HGEMM_DEVICE_HOST;
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create_sized(&handle, device, 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    expect_right(handle);
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

}  // namespace hg::test
