// The second part of experts_rules.hpp: rows that are gathered and combined.
#include "conformance.hpp"
#include "experts_parts.hpp"
#include "experts_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace hg::test {

std::vector<int32_t> draw_rows_of_choices(int64_t tokens, int64_t choices, bool shares, Random& random)
{
    const auto all = static_cast<int32_t>(tokens * choices);
    const int32_t nothing[] = {
        -1, -1, -2, all, all + 7, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    std::vector<int32_t> index;
    for (int32_t i = 0; i < all; ++i)
        index.push_back(i);
    for (size_t i = index.size(); i > 1; --i)
        std::swap(index[i - 1], index[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    for (int32_t& number : index)
        if (random.one_in(6))
            number = random.pick(nothing);
        else if (shares && random.one_in(10))
            number = static_cast<int32_t>(random.below(all));
    // A token without rows, and in half of the cases no choice of row 0.
    if (tokens > 2)
        std::fill_n(index.begin() + tokens / 2 * choices, choices, -1);
    if (random.one_in(2))
        std::ranges::replace(index, 0, -1);
    return index;
}

namespace {

struct RowsCase {
    bool gathers;
    int64_t tokens, choices, columns;
    hgemm_type_t type_a, type_d, type_weights;
    bool weighted;
    int64_t gap_a, gap_d, gap_w;  // elements
    int64_t shift_a, shift_d, shift_w;
    bool fenced = false;  // behind A and the weights lies memory that nobody may read

    int64_t all_choices() const { return tokens * choices; }
    int64_t rows_a() const { return gathers ? tokens : all_choices(); }
    int64_t rows_d() const { return gathers ? all_choices() : tokens; }
    std::string print() const
    {
        return (testing::Message() << (gathers ? "gather " : "combine ") << tokens << " x " << choices
                                   << " x " << columns << " " << name_of(type_a) << " -> "
                                   << name_of(type_d) << ", weights "
                                   << (weighted ? name_of(type_weights) : "none") << ", gaps " << gap_a
                                   << " " << gap_d << " " << gap_w << ", shifts " << shift_a << " "
                                   << shift_d << " " << shift_w << (fenced ? ", fenced" : ""))
            .GetString();
    }
};

// Magnitudes from 2^-12 to 2^12, and now and then what is no usual number.
double draw_value(hgemm_type_t type, Random& random)
{
    const Format& format = format_of(type);
    if (random.one_in(24)) {
        const double rare[] = {0.0,
                               -0.0,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               format.largest(),
                               -format.largest(),
                               format.smallest() * static_cast<double>(random.below(1000)),
                               -format.smallest()};
        return random.pick(rare);
    }
    return draw_number(12, random);
}

// Everything that no result depends on is NaN.
class RowsTrial {
public:
    RowsTrial(Library& library, const RowsCase& c, uint64_t seed)
        : library_(library), c_(c), random_(seed),
          index_(draw_rows_of_choices(c.tokens, c.choices, !c.gathers, random_)),
          choice_of_row_(static_cast<size_t>(c.all_choices()), -1),
          index_there_(library, c.all_choices(), Guard::Fence),
          a_(make_rows(library, c.type_a, c.rows_a(), c.columns, c.gap_a, c.shift_a, c.fenced)),
          d_(make_rows(library, c.type_d, c.rows_d(), c.columns, c.gap_d, c.shift_d)),
          weights_(make_rows(library, c.type_weights, c.tokens, c.choices, c.gap_w, c.shift_w, c.fenced))
    {
        std::vector<bool> is_filled(static_cast<size_t>(c.rows_a()));
        for (int64_t choice = 0; choice < c.all_choices(); ++choice)
            if (has_row(choice)) {
                const int64_t row = row_of_a(choice);
                choice_of_row_[static_cast<size_t>(row_of(choice))] = choice;
                weights_.set(0, choice / c.choices, choice % c.choices,
                             draw_value(c.type_weights, random_));
                if (!is_filled[static_cast<size_t>(row)])
                    for (int64_t j = 0; j < c.columns; ++j)
                        a_.set(0, row, j, draw_value(c.type_a, random_));
                is_filled[static_cast<size_t>(row)] = true;
            }
        index_there_.set(index_);
        for (Buffer* buffer : {&a_, &d_, &weights_})
            buffer->upload();
    }

    void expect_right()
    {
        const hgemm_rows_args_t args = make_args();
        const auto function = c_.gathers ? hgemm_gather_rows : hgemm_combine_rows;
        ASSERT_EQ(library_.wait(function(library_.handle(), &args)), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error() << library_.story();
        for (Buffer* buffer : {&a_, &d_, &weights_})
            buffer->download();
        EXPECT_EQ(a_.damage(true) + weights_.damage(true) + d_.damage(false), "");
        EXPECT_TRUE(index_there_.is_untouched());
        for (int64_t row = 0; row < c_.rows_d(); ++row)
            for (int64_t j = 0; j < c_.columns; ++j)
                ASSERT_EQ(fault(row, j), "") << "row " << row << " column " << j;
    }

private:
    int64_t row_of(int64_t choice) const { return index_[static_cast<size_t>(choice)]; }
    bool has_row(int64_t choice) const { return 0 <= row_of(choice) && row_of(choice) < c_.all_choices(); }
    // What a choice that has a row reads.
    int64_t row_of_a(int64_t choice) const { return c_.gathers ? choice / c_.choices : row_of(choice); }

    // What is not read is wrong.
    hgemm_rows_args_t make_args() const
    {
        hgemm_rows_args_t args = default_rows();
        args.tokens = c_.tokens;
        args.choices = c_.choices;
        args.columns = c_.columns;
        args.row_of_choice = index_there_.get();
        args.weights = c_.weighted ? weights_.ptr() : nullptr;
        args.ldw = c_.weighted ? weights_.extent().ld : -1;
        args.type_weights = c_.weighted ? c_.type_weights : static_cast<hgemm_type_t>(99);
        args.unused = 0xffffffff;
        args.a = a_.ptr();
        args.lda = a_.extent().ld;
        args.type_a = c_.type_a;
        args.d = d_.ptr();
        args.ldd = d_.extent().ld;
        args.type_d = c_.type_d;
        return args;
    }

    // Of float64, in which a product is exact: so no compiler makes one operation of it and a sum.
    float product(int64_t choice, int64_t j) const
    {
        const double weight = c_.weighted ? weights_.get(0, choice / c_.choices, choice % c_.choices) : 1;
        return static_cast<float>(round_to(HGEMM_F32, weight * a_.get(0, row_of_a(choice), j)));
    }

    float combined(int64_t token, int64_t j) const
    {
        float sum = 0;
        for (int64_t choice = token * c_.choices; choice < (token + 1) * c_.choices; ++choice)
            if (has_row(choice))
                sum += product(choice, j);
        return sum;
    }

    // "" if an element of D is what it should be, bit for bit, or any NaN that was not there.
    std::string fault(int64_t row, int64_t j) const
    {
        const size_t bytes = bytes_of(c_.type_d);
        uint32_t bits = 0;
        std::memcpy(&bits, d_.line(0, row) + static_cast<size_t>(j) * bytes, bytes);
        const int64_t choice = c_.gathers ? choice_of_row_[static_cast<size_t>(row)] : 0;
        if (choice < 0)
            return bits == sentinel(c_.type_d) ? "" : "has changed";
        const float wanted = c_.gathers ? product(choice, j) : combined(row, j);
        if (std::isnan(wanted) ? std::isnan(decode(c_.type_d, bits)) && bits != sentinel(c_.type_d)
                               : bits == encode(c_.type_d, wanted))
            return "";
        return std::to_string(decode(c_.type_d, bits)) + " instead of " + std::to_string(wanted);
    }

    Library& library_;
    RowsCase c_;
    Random random_;
    std::vector<int32_t> index_;
    std::vector<int64_t> choice_of_row_;  // -1: none
    Numbers<int32_t> index_there_;
    Buffer a_, d_, weights_;
};

void expect_rows(Library& library, const RowsCase& c, uint64_t seed)
{
    SCOPED_TRACE(c.print());
    RowsTrial(library, c, seed).expect_right();
}

// Of an aligned case A and D are made of vectors, if their columns are. F32 has two vectors where others
// have one, so that a gap may leave only one of A and D aligned.
RowsCase draw_rows_case(bool gathers, int64_t columns, Random& random)
{
    constexpr int64_t numbers_of_choices[] = {1, 2, 4, 5, 8}, wide_gaps[] = {0, 8, 16, 8, 0, 4};
    const bool is_aligned = !random.one_in(3);
    const auto gap = [&] { return is_aligned ? random.pick(wide_gaps) : random.below(4); };
    const auto shift = [&] { return is_aligned ? 0 : random.below(2); };
    RowsCase c{};
    c.gathers = gathers;
    c.tokens = 1 + random.below(12);
    c.choices = random.pick(numbers_of_choices);
    c.columns = columns;
    c.type_weights = HGEMM_F16;
    c.gap_a = gap();
    c.gap_d = gap();
    c.gap_w = random.below(3);
    c.shift_a = shift();
    c.shift_d = shift();
    c.shift_w = random.below(3);
    c.fenced = random.one_in(2);
    return c;
}

// Calls use(case) with all types and numbers of columns; on slow devices with one such number for each
// three types.
template <typename Use>
void for_each_rows_case(bool gathers, Use use)
{
    constexpr int64_t numbers_of_columns[] = {1, 7, 8, 24, 40, 256, 520, 1031};
    constexpr size_t of_types = std::size(types), of_columns = std::size(numbers_of_columns);
    Random random(gathers ? 11 : 12);
    for (size_t a = 0; a < of_types; ++a)
        for (size_t d = 0; d < of_types; ++d)
            for (size_t weights = 0; weights <= of_types; ++weights)
                for (size_t columns = 0; columns < of_columns; ++columns) {
                    RowsCase c = draw_rows_case(gathers, numbers_of_columns[columns], random);
                    c.type_a = types[a];
                    c.type_d = types[d];
                    c.weighted = weights > 0;
                    if (c.weighted)
                        c.type_weights = types[weights - 1];
                    const size_t one = 3 * (of_types * a + d) + 2 * weights + (gathers ? 2 : 3);
                    if (thinning() == 1 || columns == one % of_columns)
                        use(c);
                }
}

void check_rows_of(Library& library, bool gathers)
{
    uint64_t seed = 100;
    for_each_rows_case(gathers, [&](const RowsCase& c) {
        if (!testing::Test::HasFatalFailure())
            expect_rows(library, c, ++seed);
    });
    // On one SM every thread has several rows' elements.
    const bool is_slow = thinning() > 1;
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 1), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (const hgemm_type_t type_d : {HGEMM_BF16, HGEMM_F32})
        for (const int64_t columns : {520, 131})
            for (const bool weighted : {false, true})
                expect_rows(library,
                            {gathers, is_slow ? 7 : 45, 8, columns, HGEMM_BF16, type_d, HGEMM_F32, weighted,
                             0, 0, 0, 0, 0, 0},
                            ++seed);
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (const int64_t columns : is_slow ? std::vector<int64_t>{} : std::vector<int64_t>{1023, 1024})
        expect_rows(library,
                    {gathers, 300, 8, columns, HGEMM_F16, HGEMM_F16, HGEMM_F32,
                     columns % 2 == 1 || !gathers, 0, 0, 0, 0, 0, 0},
                    ++seed);
    // Of nothing.
    for (const auto& [tokens, columns] : {std::pair{0, 8}, {3, 0}}) {
        hgemm_rows_args_t args = default_rows();
        args.tokens = tokens;
        args.columns = columns;
        args.choices = 2;
        args.lda = args.ldd = 8;
        EXPECT_EQ((gathers ? hgemm_gather_rows : hgemm_combine_rows)(library.handle(), &args),
                  HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
    }
}

}  // namespace

void check_gathered_rows(Library& library) { check_rows_of(library, true); }

void check_combined_rows(Library& library) { check_rows_of(library, false); }

}  // namespace hg::test
