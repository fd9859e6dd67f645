// The third part of experts_rules.hpp: whole layers, and refusals.
#include "conformance.hpp"
#include "experts_parts.hpp"
#include "experts_rules.hpp"
#include "wrong_calls.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hg::test {

ExpertLayer::ExpertLayer(Library& library, const Sizes& sizes)
    : s_(sizes), chosen_there_(library, all_choices()), routed_(library, all_choices(), s_.experts)
{
    Memory& memory = library.memory();
    const int64_t rows = all_choices(), n = s_.columns;
    a_ = Buffer(memory, HGEMM_F16, Extent{s_.tokens, n, n, 1, 0}, 0, Guard::Pads);
    weights_ = Buffer(memory, HGEMM_F32, Extent{s_.tokens, s_.choices, s_.choices, 1, 0}, 0, Guard::Pads);
    matrices_ = Buffer(memory, HGEMM_F16, Extent{n, n, n, s_.experts, n * n}, 0, Guard::Pads);
    rows_ = Buffer(memory, HGEMM_F16, Extent{rows, n, n, 1, 0}, 0, Guard::Pads);
    products_ = Buffer(memory, HGEMM_F16, Extent{rows, n, n, 1, 0}, 0, Guard::Pads);
    d_ = Buffer(memory, HGEMM_F32, Extent{s_.tokens, n, n, 1, 0}, 0, Guard::Pads);
}

void ExpertLayer::renew(uint64_t seed)
{
    constexpr double numbers[] = {-2, -1, 0, 1, 2}, weights[] = {-1, 0.5, 1, 2};
    Random random(seed);
    chosen_.clear();
    for (int64_t t = 0; t < s_.tokens; ++t) {
        for (int64_t c = 0; c < s_.choices; ++c) {
            chosen_.push_back(random.one_in(5) ? -1 : random.below(s_.experts));
            weights_.set(0, t, c, random.pick(weights));
        }
        for (int64_t j = 0; j < s_.columns; ++j) {
            a_.set(0, t, j, random.pick(numbers));
            d_.set(0, t, j, NAN);
        }
    }
    for (int64_t e = 0; e < s_.experts; ++e)
        for (int64_t j = 0; j < s_.columns; ++j)
            for (int64_t p = 0; p < s_.columns; ++p)
                matrices_.set(e, j, p, random.pick(numbers));
    chosen_there_.set(chosen_);
    routed_.spoil();
    for (Buffer* buffer : {&a_, &weights_, &matrices_, &rows_, &products_, &d_})
        buffer->upload();
}

hgemm_route_args_t ExpertLayer::route_args() const
{
    hgemm_route_args_t args = default_route();
    args.tokens = s_.tokens;
    args.choices = args.ld = s_.choices;
    args.experts = s_.experts;
    args.chosen = chosen_there_.get();
    routed_.add_to(args);
    return args;
}

hgemm_rows_args_t ExpertLayer::gather_args() const
{
    hgemm_rows_args_t args = default_rows();
    args.tokens = s_.tokens;
    args.choices = s_.choices;
    args.columns = args.lda = args.ldd = s_.columns;
    routed_.add_to(args);
    args.a = a_.ptr();
    args.d = rows_.ptr();
    return args;
}

hgemm_grouped_args_t ExpertLayer::product_args() const
{
    hgemm_grouped_args_t args;
    hgemm_grouped_args_init(&args, sizeof args);
    args.group_count = s_.experts;
    args.ends_i32 = routed_.ends();
    args.m = all_choices();
    args.n = args.k = args.lda = args.ldb = args.ldd = s_.columns;
    args.stride_b = s_.columns * s_.columns;
    args.a = rows_.ptr();
    args.b = matrices_.ptr();
    args.d = products_.ptr();
    return args;
}

hgemm_rows_args_t ExpertLayer::combine_args() const
{
    hgemm_rows_args_t args = gather_args();
    args.weights = weights_.ptr();
    args.ldw = s_.choices;
    args.type_weights = args.type_d = HGEMM_F32;
    args.a = s_.multiplies ? products_.ptr() : rows_.ptr();
    args.d = d_.ptr();
    return args;
}

void ExpertLayer::start(hgemm_handle_t handle) const
{
    const hgemm_route_args_t route = route_args();
    const hgemm_rows_args_t gather = gather_args(), combine = combine_args();
    const hgemm_grouped_args_t product = product_args();
    EXPECT_EQ(hgemm_route(handle, &route), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(hgemm_gather_rows(handle, &gather), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    if (s_.multiplies) {
        EXPECT_EQ(hgemm_grouped_ex(handle, &product), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    }
    EXPECT_EQ(hgemm_combine_rows(handle, &combine), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

double ExpertLayer::product(int64_t token, int64_t expert, int64_t column) const
{
    if (!s_.multiplies)
        return a_.get(0, token, column);
    double sum = 0;
    for (int64_t p = 0; p < s_.columns; ++p)
        sum += a_.get(0, token, p) * matrices_.get(expert, column, p);
    return sum;
}

void ExpertLayer::expect_right()
{
    EXPECT_EQ(routed_.read().difference(sort_choices(chosen_, s_.experts)), "");
    d_.download();
    EXPECT_EQ(d_.damage(false), "");
    for (int64_t t = 0; t < s_.tokens; ++t)
        for (int64_t j = 0; j < s_.columns; ++j) {
            double sum = 0;
            for (int64_t c = 0; c < s_.choices; ++c)
                if (const int64_t expert = chosen_[static_cast<size_t>(t * s_.choices + c)]; expert >= 0)
                    sum += weights_.get(0, t, c) * product(t, expert, j);
            ASSERT_EQ(d_.get(0, t, j), sum) << "token " << t << " column " << j;
        }
}

void check_expert_layers(Library& library)
{
    const bool is_slow = thinning() > 1;
    for (const ExpertLayer::Sizes& sizes : {ExpertLayer::Sizes{40, 4, 9, 32, true},
                                            {40, 3, 9, 20, false},
                                            {is_slow ? 1 : 1200, 8, 60, 24, true}}) {
        SCOPED_TRACE(sizes.tokens);
        ExpertLayer layer(library, sizes);
        for (uint64_t seed = 1; seed < 3; ++seed) {
            layer.renew(seed);
            layer.start(library.handle());
            ASSERT_EQ(library.wait(HGEMM_STATUS_SUCCESS), HGEMM_STATUS_SUCCESS) << library.story();
            layer.expect_right();
        }
    }
}

namespace {

const WrongCall<hgemm_route_args_t> wrong_routes[] = {
    {"(args->size) is 0", [](auto& x) { x.size = 0; }},
    {"(args->size) is 72, must be a multiple of 8 from 80 to 1024: use hgemm_route_args_init",
     [](auto& x) { x.size = 72; }},
    {"(args->tokens) is -1, must be at least 0", [](auto& x) { x.tokens = -1; }},
    {"(args->choices) is 0, must be 1 to 2^30", [](auto& x) { x.choices = 0; }},
    {"(args->choices) is 1073741825, must be 1 to 2^30", [](auto& x) { x.choices = (1 << 30) + 1; }},
    {"(args->tokens) is 536870913, must be at most 2^30 / choices = 536870912",
     [](auto& x) { x.tokens = (1 << 29) + 1; }},
    {"(args->experts) is 0, must be 1 to 2^16", [](auto& x) { x.experts = 0; }},
    {"(args->experts) is 65537, must be 1 to 2^16", [](auto& x) { x.experts = 65537; }},
    {"must be NULL beside chosen", [](auto& x) { x.chosen_i32 = x.ends; }},
    {"(args->chosen) is NULL", [](auto& x) { x.chosen = nullptr; }},
    {"(args->chosen) is 0x", [](auto& x) { misalign(x.chosen); }},
    {"(args->chosen_i32) is 0x",
     [](auto& x) { x.chosen = nullptr, x.chosen_i32 = x.ends, misalign(x.chosen_i32); }},
    {"(args->ld) is 1, must be at least choices = 2", [](auto& x) { x.ld = 1; }},
    {"(args->ld) is 0, must be at least choices = 2", [](auto& x) { x.tokens = 0, x.ld = 0; }},
    {"(args->ld) is 2305843009213693952, too large", [](auto& x) { x.ld = int64_t{1} << 61; }},
    {"(args->ends) is NULL", [](auto& x) { x.ends = nullptr; }},
    {"(args->ends) is NULL", [](auto& x) { x.tokens = 0, x.ends = nullptr; }},
    {"(args->ends) is 0x", [](auto& x) { misalign(x.ends); }},
    {"(args->row_of_choice) is NULL", [](auto& x) { x.row_of_choice = nullptr; }},
    {"(args->row_of_choice) is 0x", [](auto& x) { misalign(x.row_of_choice); }},
    {"(args->choice_of_row) is 0x", [](auto& x) { misalign(x.choice_of_row); }},
};

const WrongCall<hgemm_rows_args_t> wrong_rows[] = {
    {"(args->size) is 0", [](auto& x) { x.size = 0; }},
    {"(args->size) is 96, must be a multiple of 8 from 104 to 1024: use hgemm_rows_args_init",
     [](auto& x) { x.size = 96; }},
    {"(args->tokens) is -1, must be at least 0", [](auto& x) { x.tokens = -1; }},
    {"(args->choices) is 0, must be 1 to 2^30", [](auto& x) { x.choices = 0; }},
    {"(args->tokens) is 536870913, must be at most", [](auto& x) { x.tokens = (1 << 29) + 1; }},
    {"(args->columns) is -1, must be 0 to 2^30", [](auto& x) { x.columns = -1; }},
    {"(args->columns) is 1073741825, must be 0 to 2^30", [](auto& x) { x.columns = (1 << 30) + 1; }},
    {"(args->type_a) is 0, must be 1 (F16), 2 (BF16) or 3 (F32)",
     [](auto& x) { x.type_a = static_cast<hgemm_type_t>(0); }},
    {"(args->type_d) is 4", [](auto& x) { x.type_d = static_cast<hgemm_type_t>(4); }},
    {"(args->lda) is 7, must be at least columns = 8", [](auto& x) { x.lda = 7; }},
    {"(args->lda) is 0, must be at least max(1, columns) = 1", [](auto& x) { x.columns = x.lda = 0; }},
    {"(args->lda) is 4611686018427387904, too large", [](auto& x) { x.lda = int64_t{1} << 62; }},
    {"(args->ldd) is 4611686018427387904, too large", [](auto& x) { x.ldd = int64_t{1} << 62; }},
    {"(args->row_of_choice) is NULL", [](auto& x) { x.row_of_choice = nullptr; }},
    {"(args->row_of_choice) is 0x", [](auto& x) { misalign(x.row_of_choice); }},
    {"(args->a) is NULL", [](auto& x) { x.a = nullptr; }},
    {"(args->a) is 0x", [](auto& x) { misalign(x.a); }},
    {"(args->d) is NULL", [](auto& x) { x.d = nullptr; }},
    {"(args->d) is 0x", [](auto& x) { misalign(x.d); }},
};

// Of hgemm_gather_rows() and of hgemm_combine_rows() alone.
const WrongCall<hgemm_rows_args_t> wrong_moves[] = {
    {"(args->type_weights) is 7", [](auto& x) { x.type_weights = static_cast<hgemm_type_t>(7); }},
    {"(args->ldw) is 1, must be at least choices = 2", [](auto& x) { x.ldw = 1; }},
    {"(args->ldw) is 4611686018427387904, too large", [](auto& x) { x.ldw = int64_t{1} << 62; }},
    {"(args->ldd) is 7, must be at least columns = 8", [](auto& x) { x.ldd = 7; }},
    {"(args->ldd) is 0, must be at least columns = 8", [](auto& x) { x.tokens = x.ldd = 0; }},
    {"(args->weights) is 0x", [](auto& x) { misalign(x.weights); }},
};

// Of hgemm_dot_rows() alone. A caller that was compiled before there was a B has no type for it.
const WrongCall<hgemm_rows_args_t> wrong_dots[] = {
    {"(args->weights) is 0x", [](auto& x) { x.weights = x.a; }},
    {"must be NULL: a dot product has none", [](auto& x) { x.weights = x.a; }},
    {"(args->type_b) is 0, must be 1 (F16), 2 (BF16) or 3 (F32)",
     [](auto& x) { x.type_b = static_cast<hgemm_type_t>(0); }},
    {"(args->type_b) is 4", [](auto& x) { x.type_b = static_cast<hgemm_type_t>(4); }},
    {"(args->type_b) is 0", [](auto& x) { x.size = offsetof(hgemm_rows_args_t, b); }},
    {"(args->ldb) is 7, must be at least columns = 8", [](auto& x) { x.ldb = 7; }},
    {"(args->ldb) is 0, must be at least max(1, columns) = 1", [](auto& x) { x.columns = x.ldb = 0; }},
    {"(args->ldb) is 4611686018427387904, too large", [](auto& x) { x.ldb = int64_t{1} << 62; }},
    {"(args->ldd) is 1, must be at least choices = 2", [](auto& x) { x.ldd = 1; }},
    {"(args->ldd) is 0, must be at least choices = 2", [](auto& x) { x.tokens = x.ldd = 0; }},
    {"(args->b) is NULL", [](auto& x) { x.b = nullptr; }},
    {"(args->b) is 0x", [](auto& x) { misalign(x.b); }},
    // Zeros are written.
    {"(args->row_of_choice) is NULL", [](auto& x) { x.columns = 0, x.row_of_choice = nullptr; }},
    {"(args->d) is NULL", [](auto& x) { x.columns = 0, x.d = nullptr; }},
};

// Experts are looked at on the host alone.
void expect_experts_named(Library& library, const hgemm_route_args_t& right)
{
    const int64_t wide[] = {0, 3, 1, 4, -1, 2}, wider[] = {0, 3, 1, int64_t{1} << 32, -1, 2};
    const int32_t narrow[] = {0, -1, 1, 3, -2, 2};
    hgemm_route_args_t args = right;
    args.chosen = wide;
    expect_named(library, hgemm_route, &args,
                 "(args->chosen) has 4 for choice 1 of token 1, must be -1 to 3");
    args.chosen = wider;
    expect_named(library, hgemm_route, &args,
                 "(args->chosen) has 4294967296 for choice 1 of token 1, must be -1 to 3");
    args.chosen = nullptr;
    args.chosen_i32 = narrow;
    expect_named(library, hgemm_route, &args,
                 "(args->chosen_i32) has -2 for choice 0 of token 2, must be -1 to 3");
}

void check_defaults()
{
    hgemm_route_args_init(nullptr, sizeof(hgemm_route_args_t));
    hgemm_rows_args_init(nullptr, sizeof(hgemm_rows_args_t));
    const hgemm_route_args_t route = default_route();
    EXPECT_EQ(route.size, sizeof route);
    EXPECT_TRUE(route.tokens == 0 && route.choices == 0 && route.experts == 0 && route.ld == 0);
    EXPECT_TRUE(!route.chosen && !route.chosen_i32 && !route.ends);
    EXPECT_TRUE(!route.row_of_choice && !route.choice_of_row);
    const hgemm_rows_args_t rows = default_rows();
    EXPECT_EQ(rows.size, sizeof rows);
    EXPECT_TRUE(rows.tokens == 0 && rows.choices == 0 && rows.columns == 0);
    EXPECT_TRUE(!rows.row_of_choice && !rows.weights && !rows.a && !rows.b && !rows.d);
    EXPECT_TRUE(rows.ldw == 0 && rows.lda == 0 && rows.ldb == 0 && rows.ldd == 0);
    EXPECT_TRUE(rows.type_a == HGEMM_F16 && rows.type_b == HGEMM_F16);
    EXPECT_TRUE(rows.type_d == HGEMM_F16 && rows.type_weights == HGEMM_F16);
}

}  // namespace

void check_expert_refusals(Library& library)
{
    check_defaults();
    constexpr int64_t tokens = 3, choices = 2, experts = 4, columns = 8, rows = tokens * choices;
    Numbers<int64_t> chosen(library, rows);
    chosen.set({0, 3, 1, -1, 3, 2});
    const RoutedPlace routed(library, rows, experts);
    hgemm_route_args_t route = default_route();
    route.tokens = tokens;
    route.choices = route.ld = choices;
    route.experts = experts;
    route.chosen = chosen.get();
    routed.add_to(route);
    expect_all_named(library, hgemm_route, route, wrong_routes);
    if (!library.memory().on_device())
        expect_experts_named(library, route);

    Buffer a(library.memory(), HGEMM_F16, Extent{rows, columns, columns, 1, 0}, 0, Guard::Pads),
        d(library.memory(), HGEMM_BF16, Extent{rows, columns, columns, 1, 0}, 0, Guard::Pads),
        weights(library.memory(), HGEMM_F32, Extent{tokens, choices, choices, 1, 0}, 0, Guard::Pads);
    for (Buffer* buffer : {&a, &d, &weights})
        buffer->upload();
    hgemm_rows_args_t args = default_rows();
    args.tokens = tokens;
    args.choices = args.ldw = choices;
    args.columns = args.lda = args.ldd = columns;
    routed.add_to(args);
    args.weights = weights.ptr();
    args.a = a.ptr();
    args.d = d.ptr();
    args.type_d = HGEMM_BF16;
    args.type_weights = HGEMM_F32;
    for (const auto function : {hgemm_gather_rows, hgemm_combine_rows}) {
        expect_all_named(library, function, args, wrong_rows);
        expect_all_named(library, function, args, wrong_moves);
    }
    args.weights = nullptr;
    args.b = a.ptr();
    args.ldb = columns;
    expect_all_named(library, hgemm_dot_rows, args, wrong_rows);
    expect_all_named(library, hgemm_dot_rows, args, wrong_dots);
    EXPECT_EQ(library.wait(HGEMM_STATUS_SUCCESS), HGEMM_STATUS_SUCCESS) << library.story();
    d.download();
    EXPECT_EQ(d.damage(true), "");
    EXPECT_TRUE(routed.is_untouched());
    EXPECT_TRUE(chosen.is_untouched());
}

}  // namespace hg::test
