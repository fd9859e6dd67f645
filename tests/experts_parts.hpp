// What the checks of experts_rules.hpp share: numbers in a library's memory, sorted choices, and a layer.
#pragma once

#include "buffer.hpp"
#include "library.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace hg::test {

// Numbers in a library's memory between others that stay as they are. They are aligned as one number is.
// With a fence the last one ends at the fence.
template <typename Number>
class Numbers {
public:
    static constexpr Number poison = 0x5a5a5a5a;

    Numbers(Library& library, int64_t count, Guard guard = Guard::Pads)
        : count_(count),
          image_(static_cast<size_t>(pad + count + (guard == Guard::Pads ? pad : 0)), poison),
          block_(library.memory(), image_.size() * sizeof(Number), guard)
    {
        block_.copy_in(image_.data());
    }
    Number* get() const { return block_.get<Number>() + pad; }
    void set(const std::vector<Number>& values)
    {
        EXPECT_EQ(std::ssize(values), count_);
        std::ranges::copy(values, image_.begin() + pad);
        block_.copy_in(image_.data());
    }
    void spoil() { set(std::vector<Number>(static_cast<size_t>(count_), poison)); }
    // As they are now. Those around them must be as they were.
    std::vector<Number> read() const
    {
        std::vector<Number> all(image_.size());
        block_.copy_out(all.data());
        const auto begin = all.begin() + pad, end = begin + count_;
        const auto is_poison = [](Number number) { return number == poison; };
        EXPECT_TRUE(std::all_of(all.begin(), begin, is_poison)) << "before " << count_ << " numbers";
        EXPECT_TRUE(std::all_of(end, all.end(), is_poison)) << "behind " << count_ << " numbers";
        return {begin, end};
    }
    bool is_untouched() const
    {
        return read() == std::vector<Number>(image_.begin() + pad, image_.begin() + pad + count_);
    }

private:
    static constexpr int64_t pad = 61;

    int64_t count_;
    std::vector<Number> image_;
    Block block_;
};

// What hgemm_route() finds.
struct Routed {
    std::vector<int32_t> ends, row_of_choice, choice_of_row;

    bool operator==(const Routed&) const = default;
    // "" if the other is the same.
    std::string difference(const Routed& other) const;
};

// By a stable sort. Numbers that no expert has count as none.
Routed sort_choices(const std::vector<int64_t>& chosen, int64_t experts);

// Where hgemm_route() writes.
class RoutedPlace {
public:
    RoutedPlace(Library& library, int64_t all_choices, int64_t experts)
        : ends_(library, experts), row_of_choice_(library, all_choices),
          choice_of_row_(library, all_choices)
    {
    }
    void add_to(hgemm_route_args_t& args) const
    {
        args.ends = ends_.get();
        args.row_of_choice = row_of_choice_.get();
        args.choice_of_row = choice_of_row_.get();
    }
    void add_to(hgemm_rows_args_t& args) const { args.row_of_choice = row_of_choice_.get(); }
    const int32_t* ends() const { return ends_.get(); }
    void spoil()
    {
        ends_.spoil();
        row_of_choice_.spoil();
        choice_of_row_.spoil();
    }
    Routed read() const { return {ends_.read(), row_of_choice_.read(), choice_of_row_.read()}; }
    bool is_untouched() const
    {
        return ends_.is_untouched() && row_of_choice_.is_untouched() && choice_of_row_.is_untouched();
    }

private:
    Numbers<int32_t> ends_, row_of_choice_, choice_of_row_;
};

// A matrix of so many elements a row, with `gap` elements between rows.
inline Buffer make_rows(Library& library, hgemm_type_t type, int64_t rows, int64_t columns, int64_t gap,
                        int64_t shift, bool fenced = false)
{
    return Buffer(library.memory(), type, Extent{rows, columns, columns + gap, 1, 0}, shift,
                  fenced ? Guard::Fence : Guard::Pads);
}

// Of any sign, and of magnitudes from 2^-exponents to 2^exponents.
inline double draw_number(int exponents, Random& random)
{
    const double magnitude = std::ldexp(1 + static_cast<double>(random.below(1 << 24)) * 0x1p-24,
                                        static_cast<int>(random.below(2 * exponents)) - exponents);
    return random.one_in(2) ? -magnitude : magnitude;
}

// Which row each choice has: in any order, and some none. With `shares` several choices may have the same.
std::vector<int32_t> draw_rows_of_choices(int64_t tokens, int64_t choices, bool shares, Random& random);

inline hgemm_route_args_t default_route()
{
    hgemm_route_args_t args;
    hgemm_route_args_init(&args, sizeof args);
    return args;
}

inline hgemm_rows_args_t default_rows()
{
    hgemm_rows_args_t args;
    hgemm_rows_args_init(&args, sizeof args);
    return args;
}

// Tokens whose rows go to experts and come back, on small integers: every sum is exact.
class ExpertLayer {
public:
    struct Sizes {
        int64_t tokens, choices, experts, columns;
        bool multiplies;  // each expert has a matrix; else rows come back as they are
    };
    ExpertLayer(Library& library, const Sizes& sizes);

    // Other experts, rows and weights, and NaN in all that the calls write.
    void renew(uint64_t seed);
    // The calls of the layer, on the handle's stream.
    void start(hgemm_handle_t handle) const;
    void expect_right();

private:
    int64_t all_choices() const { return s_.tokens * s_.choices; }
    // Of a choice's row, as its expert returns it.
    double product(int64_t token, int64_t expert, int64_t column) const;
    hgemm_route_args_t route_args() const;
    hgemm_rows_args_t gather_args() const;
    hgemm_grouped_args_t product_args() const;
    hgemm_rows_args_t combine_args() const;

    Sizes s_;
    std::vector<int64_t> chosen_;
    Numbers<int64_t> chosen_there_;
    RoutedPlace routed_;
    // `a` are rows of tokens; `rows` and `products` of choices; `d` of tokens.
    Buffer a_, weights_, matrices_, rows_, products_, d_;
};

}  // namespace hg::test
