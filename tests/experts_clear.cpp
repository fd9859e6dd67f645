// The fifth part of experts_rules.hpp: rows that no group owns become 0.
#include "conformance.hpp"
#include "experts_parts.hpp"
#include "experts_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

enum class SizesForm { Offsets, OffsetsI32, Ends, EndsI32, Counts, CountsI32 };

constexpr SizesForm sizes_forms[] = {SizesForm::Offsets, SizesForm::OffsetsI32, SizesForm::Ends,
                                     SizesForm::EndsI32, SizesForm::Counts,     SizesForm::CountsI32};

struct ClearCase {
    SizesForm form;
    int64_t groups, rows, columns;
    hgemm_type_t type;
    int64_t gap, shift;  // elements
    int64_t block = 0;   // of gates, of which `columns` counts what D has

    bool masked() const { return form >= SizesForm::Counts; }
    bool narrow() const
    {
        return form == SizesForm::OffsetsI32 || form == SizesForm::EndsI32 || form == SizesForm::CountsI32;
    }
    int64_t matrices() const { return masked() ? groups : 1; }
    std::string print() const
    {
        return (testing::Message() << "clear " << groups << " groups of " << rows << " x " << columns
                                   << " form " << static_cast<int>(form) << " " << name_of(type) << ", gap "
                                   << gap << ", shift " << shift << ", block " << block)
            .GetString();
    }
};

// Of each matrix the rows that groups own, from `first` to `last` - 1, and the numbers that say so.
struct Owned {
    std::vector<int64_t> first, last, sizes;

    Owned(const ClearCase& c, Random& random)
    {
        for (int64_t g = 0; g < c.groups + 1; ++g)
            sizes.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(c.rows + 1))));
        if (c.masked() || c.form == SizesForm::Ends || c.form == SizesForm::EndsI32)
            sizes.pop_back();
        if (c.masked()) {
            first.assign(sizes.size(), 0);
            last = sizes;
            return;
        }
        std::ranges::sort(sizes);
        const bool offsets = c.form == SizesForm::Offsets || c.form == SizesForm::OffsetsI32;
        first = {offsets ? sizes.front() : 0};
        last = {c.groups > 0 ? sizes.back() : first[0]};
        if (c.groups == 0)
            first[0] = last[0] = 0;
    }
};

class ClearTrial {
public:
    ClearTrial(Library& library, const ClearCase& c, uint64_t seed)
        : library_(library), c_(c), random_(seed), owned_(c, random_),
          wide_(library, std::ssize(owned_.sizes), Guard::Fence),
          narrow_(library, std::ssize(owned_.sizes), Guard::Fence),
          d_(library.memory(), c.type,
             Extent{c.rows, c.columns, c.columns + c.gap, c.matrices(), c.rows * (c.columns + c.gap) + 8},
             c.shift, Guard::Pads)
    {
        wide_.set(owned_.sizes);
        narrow_.set({owned_.sizes.begin(), owned_.sizes.end()});
        for (int64_t z = 0; z < c.matrices(); ++z)
            for (int64_t i = 0; i < c.rows; ++i)
                for (int64_t j = 0; j < c.columns; ++j)
                    d_.set(z, i, j, 1.0 + static_cast<double>(random_.below(8)));
        d_.upload();
    }

    void expect_right()
    {
        std::vector<double> before;
        for_each([&](int64_t z, int64_t i, int64_t j) { before.push_back(d_.get(z, i, j)); });
        const hgemm_grouped_args_t args = make_args();
        ASSERT_EQ(library_.wait(hgemm_clear_rows(library_.handle(), &args)), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error() << library_.story();
        d_.download();
        EXPECT_EQ(d_.damage(false), "");
        EXPECT_TRUE(wide_.is_untouched() && narrow_.is_untouched());
        size_t at = 0;
        for_each([&](int64_t z, int64_t i, int64_t j) {
            const bool owned =
                owned_.first[static_cast<size_t>(z)] <= i && i < owned_.last[static_cast<size_t>(z)];
            EXPECT_EQ(d_.get(z, i, j), owned ? before[at] : 0.0)
                << "matrix " << z << ", row " << i << ", column " << j;
            ++at;
        });
    }

    // What is not read is wrong.
    hgemm_grouped_args_t make_args() const
    {
        hgemm_grouped_args_t args;
        hgemm_grouped_args_init(&args, sizeof args);
        args.grouping = c_.masked() ? HGEMM_GROUPED_MASKED : HGEMM_GROUPED_CONTIGUOUS;
        args.type_ab = static_cast<hgemm_type_t>(99);
        args.group_count = c_.groups;
        args.m = c_.rows;
        args.n = c_.block > 0 ? 2 * c_.columns : c_.columns;
        args.gate.block = c_.block;
        args.k = args.lda = args.ldb = -1;
        args.gate.limit = args.gate.slope = args.gate.offset = -1;
        args.activation = static_cast<hgemm_activation_t>(99);
        args.d = d_.ptr();
        args.ldd = d_.extent().ld;
        args.stride_d = c_.rows * (c_.columns + c_.gap) + 8;
        args.type_d = c_.type;
        switch (c_.form) {
        case SizesForm::Offsets: args.offsets = wide_.get(); break;
        case SizesForm::OffsetsI32: args.offsets_i32 = narrow_.get(); break;
        case SizesForm::Ends: args.ends = wide_.get(); break;
        case SizesForm::EndsI32: args.ends_i32 = narrow_.get(); break;
        case SizesForm::Counts: args.counts = wide_.get(); break;
        case SizesForm::CountsI32: args.counts_i32 = narrow_.get(); break;
        }
        return args;
    }

private:
    template <typename Visit>
    void for_each(Visit visit) const
    {
        for (int64_t z = 0; z < c_.matrices(); ++z)
            for (int64_t i = 0; i < c_.rows; ++i)
                for (int64_t j = 0; j < c_.columns; ++j)
                    visit(z, i, j);
    }

    Library& library_;
    ClearCase c_;
    Random random_;
    Owned owned_;
    Numbers<int64_t> wide_;
    Numbers<int32_t> narrow_;
    Buffer d_;
};

void expect_refused_clear(Library& library, void (*change)(hgemm_grouped_args_t&), const char* text)
{
    ClearTrial trial(library, {SizesForm::CountsI32, 2, 5, 8, HGEMM_F16, 0, 0}, 1);
    hgemm_grouped_args_t args = trial.make_args();
    change(args);
    EXPECT_EQ(hgemm_clear_rows(library.handle(), &args), HGEMM_STATUS_INVALID_ARGUMENT) << text;
    EXPECT_EQ(hgemm_last_error_argument(), 2) << text;
    EXPECT_NE(std::string(hgemm_last_error()).find(text), std::string::npos)
        << hgemm_last_error() << " lacks " << text;
}

}  // namespace

void check_cleared_rows(Library& library)
{
    uint64_t seed = 1;
    for (const SizesForm form : sizes_forms)
        for (const auto& [groups, rows] : {std::pair<int64_t, int64_t>{1, 9}, {3, 1}, {7, 40}, {300, 11}})
            for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16, HGEMM_F32})
                for (const int64_t columns : {1, 7, 8, 264})
                    for (const auto& [gap, shift] : {std::pair<int64_t, int64_t>{0, 0}, {8, 8}, {3, 1}}) {
                        ++seed;
                        if ((thinning() > 1 && seed % 29 != 0) || rows * groups * columns > 100000)
                            continue;
                        const ClearCase c{form, groups, rows, columns, type, gap, shift};
                        SCOPED_TRACE(c.print());
                        ClearTrial(library, c, seed).expect_right();
                    }
    for (const int64_t block : {1, 24})
        ClearTrial(library, {SizesForm::EndsI32, 3, 20, 24, HGEMM_BF16, 0, 0, block}, ++seed)
            .expect_right();
    ClearTrial(library, {SizesForm::Ends, 0, 20, 24, HGEMM_BF16, 0, 0}, ++seed).expect_right();
    ClearTrial(library, {SizesForm::Offsets, 0, 20, 24, HGEMM_F32, 0, 0}, ++seed).expect_right();
}

void check_clear_refusals(Library& library)
{
    using Args = hgemm_grouped_args_t;
    const auto refuse = [&](void (*change)(Args&), const char* text) {
        expect_refused_clear(library, change, text);
    };
    refuse([](Args& g) { g.grouping = HGEMM_GROUPED_K; },
           "(args->grouping) is 4, must be 1 (contiguous) or 2");
    refuse([](Args& g) { g.grouping = HGEMM_GROUPED_HOST; }, "(args->grouping) is 3");
    refuse([](Args& g) { g.grouping = HGEMM_GROUPED_CONTIGUOUS; }, "(args->counts_i32) is not NULL");
    refuse([](Args& g) { g.group_count = -1; }, "(args->group_count) is -1");
    refuse([](Args& g) { g.m = -2; }, "(args->m) is -2");
    refuse([](Args& g) { g.m = int64_t{1} << 31; }, "(args->m) is 2147483648");
    refuse([](Args& g) { g.n = -3; }, "(args->n) is -3");
    refuse([](Args& g) { g.gate.block = 3; },
           "(args->gate.block) is 3, twice of it must divide args->n = 8");
    refuse([](Args& g) { g.type_d = static_cast<hgemm_type_t>(7); }, "(args->type_d) is 7");
    refuse([](Args& g) { g.ldd = 7; }, "(args->ldd) is 7, must be at least n = 8");
    refuse([](Args& g) { g.stride_d = 0; }, "(args->stride_d) is 0");
    refuse([](Args& g) { g.stride_d = int64_t{1} << 61; },
           "(args->stride_d) is 2305843009213693952, too large");
    refuse([](Args& g) { g.d = nullptr; }, "(args->d) is NULL");
    refuse([](Args& g) { g.d = static_cast<char*>(g.d) + 1; },
           "must be aligned to its elements of 2 bytes");
    refuse([](Args& g) { g.counts_i32 = nullptr; }, "(args->counts) is NULL");
}

}  // namespace hg::test
