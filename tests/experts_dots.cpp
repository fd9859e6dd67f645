// The fourth part of experts_rules.hpp: dot products of rows of tokens and rows of choices.
#include "conformance.hpp"
#include "experts_parts.hpp"
#include "experts_rules.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

struct DotCase {
    int64_t tokens, choices, columns;
    hgemm_type_t type_a, type_b, type_d;
    int64_t gap_a, gap_b, gap_d;  // elements
    int64_t shift_a, shift_b, shift_d;
    bool special = false;  // some elements are no usual numbers
    bool fenced = false;   // behind A and B lies memory that nobody may read

    int64_t all_choices() const { return tokens * choices; }
    std::string print() const
    {
        return (testing::Message() << "dot " << tokens << " x " << choices << " x " << columns << " "
                                   << name_of(type_a) << " * " << name_of(type_b) << " -> "
                                   << name_of(type_d) << ", gaps " << gap_a << " " << gap_b << " " << gap_d
                                   << ", shifts " << shift_a << " " << shift_b << " " << shift_d
                                   << (special ? ", special" : "") << (fenced ? ", fenced" : ""))
            .GetString();
    }
};

// Magnitudes from 2^-6 to 2^6: products and their sums stay far from the ends of fp32.
double draw_factor(bool special, int64_t columns, Random& random)
{
    constexpr double rare[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
    if (special && random.one_in(2 * columns))
        return random.pick(rare);
    return draw_number(6, random);
}

// Everything that no result depends on is NaN: rows that no choice has, and those of tokens that have none.
class DotTrial {
public:
    DotTrial(Library& library, const DotCase& c, uint64_t seed)
        : library_(library), c_(c), random_(seed),
          index_(draw_rows_of_choices(c.tokens, c.choices, true, random_)),
          index_there_(library, c.all_choices(), Guard::Fence),
          a_(make_rows(library, c.type_a, c.tokens, c.columns, c.gap_a, c.shift_a, c.fenced)),
          b_(make_rows(library, c.type_b, c.all_choices(), c.columns, c.gap_b, c.shift_b, c.fenced)),
          d_(make_rows(library, c.type_d, c.tokens, c.choices, c.gap_d, c.shift_d))
    {
        std::vector<bool> has_token(static_cast<size_t>(c.tokens)),
            is_had(static_cast<size_t>(c.all_choices()));
        for (int64_t choice = 0; choice < c.all_choices(); ++choice)
            if (has_row(choice)) {
                fill_once(a_, choice / c.choices, has_token);
                fill_once(b_, row_of(choice), is_had);
            }
        index_there_.set(index_);
        for (Buffer* buffer : {&a_, &b_, &d_})
            buffer->upload();
    }

    void expect_right()
    {
        const hgemm_rows_args_t args = make_args();
        ASSERT_EQ(library_.wait(hgemm_dot_rows(library_.handle(), &args)), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error() << library_.story();
        for (Buffer* buffer : {&a_, &b_, &d_})
            buffer->download();
        EXPECT_EQ(a_.damage(true) + b_.damage(true) + d_.damage(false), "");
        EXPECT_TRUE(index_there_.is_untouched());
        for (int64_t choice = 0; choice < c_.all_choices(); ++choice) {
            const Estimate wanted = expected(choice);
            const double result = d_.get(0, choice / c_.choices, choice % c_.choices);
            ASSERT_TRUE(matches(c_.type_d, result, wanted.value, wanted.error))
                << "choice " << choice << " of row " << row_of(choice) << ": " << result << " instead of "
                << wanted.value << " +- " << wanted.error;
        }
    }

private:
    int64_t row_of(int64_t choice) const { return index_[static_cast<size_t>(choice)]; }
    bool has_row(int64_t choice) const { return 0 <= row_of(choice) && row_of(choice) < c_.all_choices(); }
    void fill_once(Buffer& buffer, int64_t row, std::vector<bool>& is_filled)
    {
        for (int64_t j = 0; j < c_.columns && !is_filled[static_cast<size_t>(row)]; ++j)
            buffer.set(0, row, j, draw_factor(c_.special, c_.columns, random_));
        is_filled[static_cast<size_t>(row)] = true;
    }

    // What is not read is wrong.
    hgemm_rows_args_t make_args() const
    {
        hgemm_rows_args_t args = default_rows();
        args.tokens = c_.tokens;
        args.choices = c_.choices;
        args.columns = c_.columns;
        args.row_of_choice = index_there_.get();
        args.ldw = -1;
        args.type_weights = static_cast<hgemm_type_t>(99);
        args.unused = args.unused_too = 0xffffffff;
        args.a = c_.columns > 0 ? a_.ptr() : nullptr;
        args.lda = a_.extent().ld;
        args.type_a = c_.type_a;
        args.b = c_.columns > 0 ? b_.ptr() : nullptr;
        args.ldb = b_.extent().ld;
        args.type_b = c_.type_b;
        args.d = d_.ptr();
        args.ldd = d_.extent().ld;
        args.type_d = c_.type_d;
        return args;
    }

    // In whatever order they are added: each product is rounded, or not, and takes part in one sum less
    // than there are products.
    Estimate expected(int64_t choice) const
    {
        double sum = 0, magnitude = 0;
        for (int64_t j = 0; j < c_.columns && has_row(choice); ++j) {
            const double product = a_.get(0, choice / c_.choices, j) * b_.get(0, row_of(choice), j);
            sum += product;
            magnitude += std::fabs(product);
        }
        constexpr double second_order = 1.01;
        const auto columns = static_cast<double>(c_.columns);
        return {sum, second_order * columns * 0x1p-24 * magnitude};
    }

    Library& library_;
    DotCase c_;
    Random random_;
    std::vector<int32_t> index_;
    Numbers<int32_t> index_there_;
    Buffer a_, b_, d_;
};

void expect_dots(Library& library, const DotCase& c, uint64_t seed)
{
    SCOPED_TRACE(c.print());
    DotTrial(library, c, seed).expect_right();
}

// Of an aligned case A and B are made of vectors, if their columns are. F32 has two vectors where others
// have one, so that a gap may leave only one of A and B aligned.
DotCase draw_dot_case(int64_t columns, Random& random)
{
    constexpr int64_t numbers_of_choices[] = {1, 2, 5, 8, 11}, wide_gaps[] = {0, 8, 16, 8, 0, 4};
    const bool is_aligned = !random.one_in(3);
    const auto gap = [&](int64_t least) {
        return least + (is_aligned ? random.pick(wide_gaps) : random.below(4));
    };
    const auto shift = [&] { return is_aligned ? 0 : random.below(2); };
    DotCase c{};
    c.tokens = 1 + random.below(12);
    c.choices = random.pick(numbers_of_choices);
    c.columns = columns;
    const int64_t least = columns == 0 ? 1 : 0;  // a line of nothing counts as one element
    c.gap_a = gap(least);
    c.gap_b = gap(least);
    c.gap_d = random.below(3);
    c.shift_a = shift();
    c.shift_b = shift();
    c.shift_d = random.below(3);
    c.special = random.one_in(4);
    c.fenced = random.one_in(2);
    return c;
}

}  // namespace

void check_dot_rows(Library& library)
{
    constexpr int64_t numbers_of_columns[] = {0, 1, 7, 8, 24, 256, 520, 1000, 1031};
    constexpr size_t of_columns = std::size(numbers_of_columns);
    const bool is_slow = thinning() > 1;
    Random random(13);
    uint64_t seed = 500;
    size_t of_types = 0;
    for (const hgemm_type_t a : types)
        for (const hgemm_type_t b : types)
            for (const hgemm_type_t d : types) {
                ++of_types;
                for (size_t columns = 0; columns < of_columns; ++columns) {
                    DotCase c = draw_dot_case(numbers_of_columns[columns], random);
                    c.type_a = a;
                    c.type_b = b;
                    c.type_d = d;
                    ++seed;
                    // On slow devices three types have one number of columns.
                    const bool is_picked = columns == 2 * of_types % of_columns;
                    if ((!is_slow || is_picked) && !testing::Test::HasFatalFailure())
                        expect_dots(library, c, seed);
                }
            }
    // On one SM every warp has several tokens.
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 1), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (const int64_t columns : {264, 131})
        expect_dots(library,
                    {is_slow ? 19 : 90, 8, columns, HGEMM_BF16, HGEMM_BF16, HGEMM_F32, 0, 0, 0, 0, 0, 0},
                    ++seed);
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (const int64_t columns : is_slow ? std::vector<int64_t>{} : std::vector<int64_t>{1023, 4096})
        expect_dots(library, {300, 8, columns, HGEMM_BF16, HGEMM_F16, HGEMM_F32, 0, 0, 0, 0, 0, 0}, ++seed);
    // Of no token.
    hgemm_rows_args_t args = default_rows();
    args.choices = args.ldd = 2;
    args.columns = args.lda = args.ldb = 8;
    EXPECT_EQ(hgemm_dot_rows(library.handle(), &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

namespace {

// Tokens `first` to first + tokens - 1 of endless lists of tokens and of rows. Choice c of token t has row
// t * choices + c, wherever the call has it.
struct DotSlice {
    int64_t first, tokens, choices, columns;
    hgemm_type_t type_a, type_b;
    int64_t shift;  // of A and B
};

std::vector<double> dots_of(Library& library, const DotSlice& s)
{
    const int64_t rows = s.tokens * s.choices;
    Buffer a = make_rows(library, s.type_a, s.tokens, s.columns, 8, s.shift),
           b = make_rows(library, s.type_b, rows, s.columns, 8, s.shift),
           d = make_rows(library, HGEMM_F32, s.tokens, s.choices, 0, 0);
    const auto fill = [&](Buffer& buffer, uint64_t seed, int64_t row, int64_t global) {
        for (int64_t j = 0; j < s.columns; ++j)
            buffer.set(0, row, j, normal(seed, static_cast<uint64_t>(global * s.columns + j)));
    };
    std::vector<int32_t> index;
    for (int64_t t = 0; t < s.tokens; ++t) {
        fill(a, 1, t, s.first + t);
        for (int64_t c = 0; c < s.choices; ++c) {
            const int64_t row = (s.tokens - 1 - t) * s.choices + c;
            fill(b, 2, row, (s.first + t) * s.choices + c);
            index.push_back(static_cast<int32_t>(row));
        }
    }
    Numbers<int32_t> index_there(library, rows);
    index_there.set(index);
    for (Buffer* buffer : {&a, &b, &d})
        buffer->upload();
    hgemm_rows_args_t args = default_rows();
    args.tokens = s.tokens;
    args.choices = args.ldd = s.choices;
    args.columns = s.columns;
    args.lda = args.ldb = s.columns + 8;
    args.row_of_choice = index_there.get();
    args.a = a.ptr();
    args.b = b.ptr();
    args.d = d.ptr();
    args.type_a = s.type_a;
    args.type_b = s.type_b;
    args.type_d = HGEMM_F32;
    EXPECT_EQ(library.wait(hgemm_dot_rows(library.handle(), &args)), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error() << library.story();
    d.download();
    std::vector<double> results;
    for (int64_t choice = 0; choice < rows; ++choice)
        results.push_back(d.get(0, choice / s.choices, choice % s.choices));
    return results;
}

void expect_same_dots(Library& library, const DotSlice& all)
{
    SCOPED_TRACE(testing::Message() << all.columns << " columns, " << all.choices << " choices, "
                                    << name_of(all.type_a) << " * " << name_of(all.type_b));
    const std::vector<double> wanted = dots_of(library, all);
    EXPECT_EQ(dots_of(library, all), wanted) << "again";
    for (const auto& [first, tokens] : {std::pair<int64_t, int64_t>{0, 1}, {all.tokens - 3, 2}}) {
        DotSlice some = all;
        some.first += first;
        some.tokens = tokens;
        const auto begin = wanted.begin() + first * all.choices;
        EXPECT_EQ(dots_of(library, some), std::vector(begin, begin + tokens * all.choices))
            << tokens << " tokens from " << first << " on";
    }
    DotSlice shifted = all;
    shifted.shift = 1;
    EXPECT_EQ(dots_of(library, shifted), wanted) << "unaligned";
    EXPECT_EQ(hgemm_set_sm_count(library.handle(), 1), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(dots_of(library, all), wanted) << "on one SM";
    EXPECT_EQ(hgemm_set_sm_count(library.handle(), 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

}  // namespace

void check_dot_bits(Library& library)
{
    const std::vector<int64_t> numbers_of_columns =
        thinning() > 1 ? std::vector<int64_t>{264} : std::vector<int64_t>{8, 131, 264, 1000, 4104};
    for (const int64_t columns : numbers_of_columns)
        for (const int64_t choices : {1, 5, 8}) {
            const int64_t tokens = thinning() > 1 ? 5 : 40;
            expect_same_dots(library, {3, tokens, choices, columns, HGEMM_BF16, HGEMM_BF16, 0});
            expect_same_dots(library, {3, tokens, choices, columns, HGEMM_F32, HGEMM_F16, 0});
        }
}

}  // namespace hg::test
