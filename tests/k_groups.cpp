#include "k_groups.hpp"

#include "conformance.hpp"
#include "src/tools/support/reference.hpp"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace hg::test {

KGroupsTrial::KGroupsTrial(Memory& memory, const KGroupsCase& grouped)
    : g_(grouped), k_(2 * g_.room + std::accumulate(g_.counts.begin(), g_.counts.end(), int64_t{0}))
{
    const auto operand = [&](int64_t rows, bool by_k) {
        const int64_t lines = by_k ? rows : k_, length = by_k ? k_ : rows;
        return Buffer(memory, g_.type_ab, {lines, length, length + g_.pad, 1, 0}, g_.shift, Guard::Pads);
    };
    a_ = operand(g_.m, a_by_k());
    b_ = operand(g_.n, b_by_k());
    const int64_t ldd = g_.n + g_.pad;
    d_ = Buffer(memory, g_.type_d, {g_.m, g_.n, ldd, std::ssize(g_.counts), g_.m * ldd + g_.pad}, g_.shift,
                Guard::Pads);
    const size_t count = g_.counts.size() + (g_.ends ? 0 : 1);
    sizes_ = Block(memory, count * (g_.narrow ? sizeof(int32_t) : sizeof(int64_t)), Guard::Fence);
    fill();
    send_sizes();
}

void KGroupsTrial::fill()
{
    Random random(32);
    const int64_t first = g_.ends ? 0 : g_.room,
                  end = first + std::accumulate(g_.counts.begin(), g_.counts.end(), int64_t{0});
    const auto fill_operand = [&](Buffer& buffer, bool by_k) {
        for (int64_t i = 0; i < buffer.extent().lines; ++i)
            for (int64_t j = 0; j < buffer.extent().length; ++j) {
                const int64_t p = by_k ? j : i;
                const double value = static_cast<double>(random.below(5) - 2);
                buffer.set(0, i, j, p < first || p >= end ? NAN : value);  // K of no group
            }
    };
    fill_operand(a_, a_by_k());
    fill_operand(b_, b_by_k());
    for (int64_t z = 0; z < std::ssize(g_.counts); ++z)
        for (int64_t i = 0; i < g_.m; ++i)
            for (int64_t j = 0; j < g_.n; ++j) {
                if (g_.beta != 0)
                    d_.set(z, i, j, static_cast<double>(random.below(9) - 4));
                before_.push_back(d_.get(z, i, j));
            }
    for (Buffer* buffer : {&a_, &b_, &d_})
        buffer->upload();
}

void KGroupsTrial::send_sizes()
{
    std::vector<int64_t> offsets = {g_.ends ? 0 : g_.room};
    for (const int64_t count : g_.counts)
        offsets.push_back(offsets.back() + count);
    if (g_.ends)
        offsets.erase(offsets.begin());
    set_sizes(offsets);
}

void KGroupsTrial::set_sizes(const std::vector<int64_t>& sizes)
{
    const std::vector<int32_t> narrow(sizes.begin(), sizes.end());
    sizes_.copy_in(g_.narrow ? static_cast<const void*>(narrow.data()) : sizes.data());
}

void KGroupsTrial::set_counts(const std::vector<int64_t>& counts)
{
    g_.counts = counts;
    send_sizes();
    size_t at = 0;
    for (int64_t z = 0; z < std::ssize(g_.counts); ++z)
        for (int64_t i = 0; i < g_.m; ++i)
            for (int64_t j = 0; j < g_.n; ++j)
                d_.set(z, i, j, before_[at++]);
    d_.upload();
}

hgemm_grouped_args_t KGroupsTrial::args() const
{
    hgemm_grouped_args_t args;
    hgemm_grouped_args_init(&args, sizeof args);
    args.grouping = HGEMM_GROUPED_K;
    args.transa = g_.transa;
    args.transb = g_.transb;
    args.type_ab = g_.type_ab;
    args.type_d = g_.type_d;
    args.group_count = std::ssize(g_.counts);
    args.m = g_.m;
    args.n = g_.n;
    args.k = k_;
    args.alpha = g_.alpha;
    args.beta = g_.beta;
    args.a = a_.ptr();
    args.lda = a_.extent().ld;
    args.b = b_.ptr();
    args.ldb = b_.extent().ld;
    args.d = d_.ptr();
    args.ldd = d_.extent().ld;
    args.stride_d = d_.extent().stride;
    if (g_.narrow)
        (g_.ends ? args.ends_i32 : args.offsets_i32) = sizes_.get<const int32_t>();
    else
        (g_.ends ? args.ends : args.offsets) = sizes_.get<const int64_t>();
    return args;
}

hgemm_status_t KGroupsTrial::start(Library& library) const
{
    const hgemm_grouped_args_t grouped = args();
    return hgemm_grouped_ex(library.handle(), &grouped);
}

void KGroupsTrial::expect_right()
{
    for (Buffer* buffer : {&a_, &b_, &d_})
        buffer->download();
    EXPECT_EQ(a_.damage(true) + b_.damage(true) + d_.damage(false), "");
    int64_t first = g_.ends ? 0 : g_.room, wrong = 0;
    size_t at = 0;
    for (int64_t z = 0; z < std::ssize(g_.counts); ++z) {
        const int64_t end = first + g_.counts[static_cast<size_t>(z)];
        for (int64_t i = 0; i < g_.m; ++i)
            for (int64_t j = 0; j < g_.n; ++j) {
                double sum = 0;
                for (int64_t p = first; p < end; ++p)
                    sum += a(i, p) * b(p, j);
                const double old = before_[at++], result = d_.get(z, i, j);
                const double product = end > first ? double{g_.alpha} * sum : 0;
                const double value = product + (g_.beta != 0 ? double{g_.beta} * old : 0);
                if (matches(g_.type_d, result, value, 0) || wrong++ > 0)
                    continue;
                ADD_FAILURE() << "group " << z << " (" << i << ", " << j << ") is " << result
                              << ", should be " << value;
            }
        first = end;
    }
    EXPECT_EQ(wrong, 0) << g_.describe();
}

std::string KGroupsCase::describe() const
{
    char text[256];
    std::snprintf(text, sizeof text,
                  "k groups: %zu, m %" PRId64 " n %" PRId64
                  " %s to %s a %s b %s alpha %g beta %g room %" PRId64 " shift %" PRId64 " pad %" PRId64,
                  counts.size(), m, n, name_of(type_ab), name_of(type_d), transa == HGEMM_TRANS ? "t" : "n",
                  transb == HGEMM_TRANS ? "t" : "n", double{alpha}, double{beta}, room, shift, pad);
    return text;
}

std::vector<KGroupsCase> k_groups_cases()
{
    const std::vector<int64_t> few = {3, 0, 70, 1, 16, 0}, high = {128, 0, 300, 64, 129};
    std::vector<int64_t> many(70);
    Random random(5);
    for (size_t i = 2; i < many.size() - 1; ++i)
        many[i] = random.one_in(3) ? 0 : random.below(20);
    constexpr auto f16 = HGEMM_F16, bf16 = HGEMM_BF16, f32 = HGEMM_F32;
    constexpr auto t = HGEMM_TRANS, n = HGEMM_NO_TRANS;
    return {
        // As weights' gradients are computed: aligned, rows of A and B are tokens.
        {high, 136, 72, bf16, f32, t, n, 1, 0, 0, 0, 0},
        {high, 200, 264, f16, f16, t, n, 1, -1, 5, 0, 0},
        {many, 72, 40, f16, f32, t, n, 0.5f, 1, 3, 0, 8},
        {few, 64, 64, bf16, bf16, t, n, 1, 0, 0, 0, 0, true, true},
        {few, 8, 24, f16, f32, t, n, 2, 2, 0, 0, 0, true, false},
        {few, 24, 8, f16, bf16, t, n, 1, 0, 2, 0, 0, false, true},
        // The other layouts, odd sizes and addresses.
        {few, 40, 24, f16, f32, n, n, 1, 1, 1, 0, 0},
        {few, 24, 40, bf16, f32, t, t, 1, 0, 4, 0, 0},
        {high, 19, 33, f16, f16, n, t, 1, 0, 3, 1, 3},
        {few, 41, 53, bf16, bf16, t, n, -1, 1, 2, 3, 1},
        {few, 1, 1, f16, f16, t, n, 1, 0, 0, 0, 0},
        // Nothing is multiplied.
        {{0, 0, 0}, 40, 40, f16, f32, t, n, 1, 3, 0, 0, 0},
        {high, 40, 40, f16, f32, t, n, 0, 2, 0, 0, 0},
        {{77}, 72, 72, f16, f16, t, n, 1, 1, 0, 0, 0},
        // Groups without K, which an alpha that is no number does not touch.
        {{0, 0}, 40, 40, f16, f32, t, n, INFINITY, 2, 3, 0, 0},
        {{0, 0}, 19, 40, bf16, bf16, t, n, NAN, 0, 3, 1, 1},
    };
}

void check_k_groups(Library& library, const KGroupsCase& grouped)
{
    SCOPED_TRACE(grouped.describe());
    KGroupsTrial trial(library.memory(), grouped);
    EXPECT_EQ(trial.run(library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    trial.expect_right();
}

void check_k_groups(Library& library)
{
    for (const KGroupsCase& grouped : k_groups_cases())
        check_k_groups(library, grouped);
    KGroupsTrial trial(library.memory(), k_groups_cases()[0]);
    const auto expect_refused = [&](auto change, const char* text) {
        hgemm_grouped_args_t args = trial.args();
        change(args);
        EXPECT_EQ(hgemm_grouped_ex(library.handle(), &args), HGEMM_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(std::string(hgemm_last_error()).find(text), std::string::npos) << hgemm_last_error();
    };
    using Args = hgemm_grouped_args_t;
    expect_refused([](Args& g) { g.transa = static_cast<hgemm_op_t>(7); }, "args->transa) is 7");
    expect_refused([](Args& g) { g.grouping = HGEMM_GROUPED_CONTIGUOUS; },
                   "args->transa) is 112, must be 111");
    expect_refused([](Args& g) { g.flags = 1; }, "args->flags) is 1, must be 0");
    expect_refused([](Args& g) { g.lda = g.m - 1; }, "args->lda) is 135, must be at least m = 136");
    expect_refused([](Args& g) { g.ldb = g.n - 1; }, "args->ldb) is 71");
    expect_refused([](Args& g) { g.transb = HGEMM_TRANS, g.ldb = g.k - 1; }, "must be at least k = 621");
    expect_refused([](Args& g) { g.stride_d = 0; }, "args->stride_d) is 0");
    expect_refused([](Args& g) { g.a = nullptr; }, "args->a");
    expect_refused([](Args& g) { g.d = nullptr; }, "args->d");
    expect_refused([](Args& g) { g.offsets = nullptr; }, "args->offsets) is NULL, must hold the groups' k");
    expect_refused([](Args& g) { g.counts = g.offsets; },
                   "args->counts) is not NULL, must be NULL for k groups");
    expect_refused([](Args& g) { g.k = -1; }, "args->k) is -1");
    EXPECT_EQ(trial.run(library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    trial.expect_right();
}

}  // namespace hg::test
