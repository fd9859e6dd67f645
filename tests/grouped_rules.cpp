#include "grouped_rules.hpp"

#include "conformance.hpp"
#include "handle_scopes.hpp"
#include "library_rules.hpp"
#include "src/tools/support/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <numeric>

namespace hg::test {
namespace {

// More groups than a warp has lanes, and empty ones among the first, the last, and between.
std::vector<int64_t> many_groups()
{
    Random random(7);
    std::vector<int64_t> rows(70);
    for (size_t i = 2; i < 69; ++i)
        rows[i] = random.one_in(3) ? 0 : random.below(20);
    rows[40] = 140;
    return rows;
}

}  // namespace

GroupedTrial::GroupedTrial(Memory& memory, const GroupedCase& grouped) : g_(grouped)
{
    lines_ = contiguous() ? 2 * g_.room + std::accumulate(g_.rows.begin(), g_.rows.end(), int64_t{0})
                          : g_.room + *std::max_element(g_.rows.begin(), g_.rows.end());
    const int64_t matrices = contiguous() ? 1 : groups();
    const int64_t length = along_k() ? g_.k : g_.n, lda = g_.k + g_.pad, ldb = length + g_.pad,
                  ldd = g_.width() + g_.pad, lines_b = along_k() ? g_.n : g_.k;
    a_ = Buffer(memory, g_.type_ab, {lines_, g_.k, lda, matrices, lines_ * lda}, g_.shift, Guard::Pads);
    b_ = Buffer(memory, g_.type_ab, {lines_b, length, ldb, groups(), lines_b * ldb + g_.pad}, g_.shift,
                Guard::Pads);
    d_ =
        Buffer(memory, g_.type_d, {lines_, g_.width(), ldd, matrices, lines_ * ldd}, g_.shift, Guard::Pads);
    bias_ = Buffer(memory, g_.type_bias, {1, g_.n, g_.n, groups(), g_.n + g_.pad}, g_.shift, Guard::Pads);
    const size_t count = g_.rows.size() + (contiguous() && !g_.ends ? 1 : 0);
    sizes_ = Block(memory, count * (g_.narrow ? sizeof(int32_t) : sizeof(int64_t)), Guard::Fence);
    fill();
    send_sizes();
}

void GroupedTrial::fill()
{
    Random random(32);
    for (Buffer* buffer : {&a_, &b_, &bias_})
        for (int64_t z = 0; z < buffer->extent().batch; ++z)
            for (int64_t i = 0; i < buffer->extent().lines; ++i)
                for (int64_t j = 0; j < buffer->extent().length; ++j)
                    buffer->set(z, i, j, static_cast<double>(random.below(5) - 2));
    for (int64_t z = 0; z < d_.extent().batch; ++z)
        for (int64_t i = 0; i < lines_; ++i)
            for (int64_t j = 0; j < g_.width(); ++j) {
                if (g_.beta != 0)
                    d_.set(z, i, j, static_cast<double>(random.below(9) - 4));
                before_.push_back(d_.get(z, i, j));
            }
    for (Buffer* buffer : {&a_, &b_, &d_, &bias_})
        buffer->upload();
}

void GroupedTrial::send_sizes()
{
    offsets_ = {g_.ends ? 0 : g_.room};
    for (const int64_t count : g_.rows)
        offsets_.push_back(offsets_.back() + count);
    set_sizes(!contiguous() ? g_.rows
              : g_.ends     ? std::vector<int64_t>(offsets_.begin() + 1, offsets_.end())
                            : offsets_);
}

void GroupedTrial::set_sizes(const std::vector<int64_t>& sizes)
{
    const std::vector<int32_t> narrow(sizes.begin(), sizes.end());
    sizes_.copy_in(g_.narrow ? static_cast<const void*>(narrow.data()) : sizes.data());
}

void GroupedTrial::set_rows(const std::vector<int64_t>& rows)
{
    g_.rows = rows;
    send_sizes();
    for (int64_t z = 0; z < d_.extent().batch; ++z)
        for (int64_t i = 0; i < lines_; ++i)
            for (int64_t j = 0; j < g_.width(); ++j)
                d_.set(z, i, j, before(z, i, j));
    d_.upload();
}

std::vector<hgemm_args_t> GroupedTrial::problems() const
{
    std::vector<hgemm_args_t> list(g_.rows.size());
    for (int64_t z = 0; z < groups(); ++z) {
        hgemm_args_t& p = list[static_cast<size_t>(z)];
        hgemm_args_init(&p, sizeof p);
        p.layout = HGEMM_ROW_MAJOR;
        p.transb = g_.transb;
        p.type_ab = g_.type_ab;
        p.type_c = p.type_d = g_.type_d;
        p.m = g_.rows[static_cast<size_t>(z)];
        p.n = g_.n;
        p.k = g_.k;
        p.alpha = g_.alpha;
        p.beta = g_.beta;
        p.activation = g_.activation;
        p.gate = g_.gate;
        p.a = a_.ptr(z);
        p.b = b_.ptr(z);
        p.c = p.d = d_.ptr(z);
        p.lda = a_.extent().ld;
        p.ldb = b_.extent().ld;
        p.ldc = p.ldd = d_.extent().ld;
        if (g_.bias) {
            p.bias_mode = HGEMM_BIAS_N;
            p.bias_type = g_.type_bias;
            p.bias = bias_.ptr(z);
        }
    }
    return list;
}

hgemm_grouped_args_t GroupedTrial::args() const
{
    hgemm_grouped_args_t args;
    hgemm_grouped_args_init(&args, sizeof args);
    args.grouping = g_.grouping;
    args.transb = g_.transb;
    args.type_ab = g_.type_ab;
    args.type_d = g_.type_d;
    args.group_count = groups();
    args.m = lines_;
    args.n = g_.n;
    args.k = g_.k;
    args.alpha = g_.alpha;
    args.beta = g_.beta;
    const bool is_host = g_.grouping == HGEMM_GROUPED_HOST;
    args.activation = is_host ? HGEMM_ACTIVATION_NONE : g_.activation;
    args.gate = is_host ? hgemm_gate_t{} : g_.gate;
    args.a = g_.null_operands ? nullptr : a_.ptr();
    args.lda = a_.extent().ld;
    args.stride_a = a_.extent().stride;
    args.b = g_.null_operands ? nullptr : b_.ptr();
    args.ldb = b_.extent().ld;
    args.stride_b = b_.extent().stride;
    args.d = d_.ptr();
    args.ldd = d_.extent().ld;
    args.stride_d = d_.extent().stride;
    if (g_.bias && !is_host) {
        args.bias = bias_.ptr();
        args.stride_bias = bias_.extent().stride;
        args.bias_type = g_.type_bias;
    }
    const bool masked = g_.grouping == HGEMM_GROUPED_MASKED;
    if (g_.narrow)
        (masked    ? args.counts_i32
         : g_.ends ? args.ends_i32
                   : args.offsets_i32) = sizes_.get<const int32_t>();
    else
        (masked ? args.counts : g_.ends ? args.ends : args.offsets) = sizes_.get<const int64_t>();
    return args;
}

hgemm_status_t GroupedTrial::start(Library& library) const
{
    const std::vector<hgemm_args_t> list =
        g_.grouping == HGEMM_GROUPED_HOST ? problems() : std::vector<hgemm_args_t>();
    hgemm_grouped_args_t grouped = args();
    grouped.problems = list.data();
    return hgemm_grouped_ex(library.handle(), &grouped);
}

// What D should hold, line by line. A matrix at a time: element by element takes longer than the kernels.
GroupedTrial::Lines GroupedTrial::expected() const
{
    const int64_t lines = lines_ * d_.extent().batch;
    Lines d{Dense(lines, g_.width()), Dense(lines, g_.width())};
    d.value.values = before_;
    for (int64_t group = 0; group < groups(); ++group) {
        const int64_t z = contiguous() ? 0 : group,
                      first = contiguous() ? offsets_[static_cast<size_t>(group)] : 0;
        Dense a(g_.rows[static_cast<size_t>(group)], g_.k), b(g_.k, g_.n);
        for (int64_t i = 0; i < a.rows; ++i)
            for (int64_t p = 0; p < g_.k; ++p)
                a(i, p) = a_.get(z, first + i, p);
        for (int64_t p = 0; p < g_.k; ++p)
            for (int64_t j = 0; j < g_.n; ++j)
                b(p, j) = along_k() ? b_.get(group, j, p) : b_.get(group, p, j);
        const Dense sum = multiply(a, b, Arithmetic::of_cpu()).sum;
        for (int64_t i = 0; i < a.rows; ++i)
            for (int64_t j = 0; j < g_.width(); ++j) {
                double& value = d.value(z * lines_ + first + i, j);
                const auto product = [&](int64_t column) {
                    return double{g_.alpha} * sum(i, column) + (g_.bias ? bias_.get(group, 0, column) : 0);
                };
                if (g_.gate.block == 0) {
                    value = product(j) + (g_.beta != 0 ? double{g_.beta} * value : 0);
                    continue;
                }
                const int64_t place = place_of_gate(g_.gate.block, j);
                const Estimate wanted =
                    gated(g_.gate, g_.activation, {product(place), 0}, {product(place + g_.gate.block), 0});
                value = wanted.value;
                d.error(z * lines_ + first + i, j) = wanted.error;
            }
    }
    return d;
}

// The group of each row; -1: of none.
std::vector<int64_t> GroupedTrial::owners() const
{
    std::vector<int64_t> owners(static_cast<size_t>(lines_ * d_.extent().batch), -1);
    for (int64_t z = 0; z < groups(); ++z)
        std::fill_n(owners.begin() + (contiguous() ? offsets_[static_cast<size_t>(z)] : z * lines_),
                    g_.rows[static_cast<size_t>(z)], z);
    return owners;
}

void GroupedTrial::expect_right()
{
    for (Buffer* buffer : {&a_, &b_, &d_, &bias_})
        buffer->download();
    EXPECT_EQ(a_.damage(true) + b_.damage(true) + d_.damage(false) + bias_.damage(true), "");
    const Lines right = expected();
    int64_t wrong = 0, line = 0;
    for (const int64_t group : owners()) {
        const int64_t z = line / lines_, row = line % lines_;
        for (int64_t j = 0; j < g_.width(); ++j) {
            const double result = d_.get(z, row, j), value = right.value(line, j);
            if (matches(g_.type_d, result, value, right.error(line, j)) || wrong++ > 0)
                continue;
            ADD_FAILURE() << "matrix " << z << " row " << row << " (group " << group << ") column " << j
                          << " is " << result << ", should be " << value;
        }
        ++line;
    }
    EXPECT_EQ(wrong, 0) << g_.describe();
}

std::string GroupedCase::describe() const
{
    char text[256];
    std::snprintf(text, sizeof text,
                  "%s, %zu groups, %" PRId64 " rows, n %" PRId64 " k %" PRId64
                  " %s to %s b %s alpha %g beta %g room %" PRId64 " shift %" PRId64 " pad %" PRId64
                  " gate block %" PRId64 "%s%s",
                  grouping == HGEMM_GROUPED_CONTIGUOUS ? "contiguous"
                  : grouping == HGEMM_GROUPED_MASKED   ? "masked"
                                                       : "host",
                  rows.size(), std::accumulate(rows.begin(), rows.end(), int64_t{0}), n, k,
                  name_of(type_ab), name_of(type_d), transb == HGEMM_TRANS ? "t" : "n", double{alpha},
                  double{beta}, room, shift, pad, gate.block, bias ? " bias " : "",
                  bias ? name_of(type_bias) : "");
    return text;
}

std::vector<GroupedCase> grouped_cases(hgemm_grouping_t grouping)
{
    const std::vector<int64_t> few = {3, 0, 70, 1, 16}, high = {128, 0, 300, 64, 129};
    constexpr auto f16 = HGEMM_F16, bf16 = HGEMM_BF16, f32 = HGEMM_F32;
    constexpr auto t = HGEMM_TRANS, nt = HGEMM_NO_TRANS;
    const std::vector<GroupedCase> cases = {
        // Copied operands, D without vectors.
        {grouping, few, 40, 50, f16, f32, t, 1, 0, 0, 1, 5},
        {grouping, few, 41, 53, bf16, bf16, nt, 1, 0, 2, 3, 1},
        // Tiles that groups fill, and such as they do not.
        {grouping, high, 264, 136, f16, f16, t, 1, 0, 0, 0, 0},
        {grouping, high, 136, 584, bf16, bf16, nt, 2, 0, 3, 0, 8},
        {grouping, high, 136, 72, bf16, f32, t, 1, -1, 1, 0, 8},
        {grouping, high, 264, 200, f16, f16, nt, 0.5f, 2, 0, 0, 0},
        {grouping, high, 72, 72, f16, f16, t, 1, 3, 2, 1, 0},
        // A consumer that stores less than a tile, then takes C of a whole one.
        {grouping, {100, 128, 128, 100, 128, 128, 100}, 136, 72, f16, f16, t, 1, -1, 0, 0, 0},
        // D of the other type.
        {grouping, high, 136, 136, bf16, f16, t, 1, 0, 0, 0, 0},
        {grouping, many_groups(), 72, 72, f16, f16, t, 1, 0, 0, 0, 0},
        {grouping, {0, 0, 0}, 72, 72, f16, f16, t, 1, 0, 4, 0, 0},
        {grouping, {200}, 72, 72, f16, bf16, nt, 1, 1, 0, 0, 0},
        // Columns, and a line of few.
        {grouping, few, 1, 72, f16, f16, t, 1, 0, 0, 0, 0},
        {grouping, few, 8, 1, f16, f16, nt, 1, 0, 0, 0, 0},
        // Neither A nor B is read.
        {grouping, high, 72, 72, f16, f16, t, 0, 2, 0, 0, 0, true},
        {grouping, few, 72, 72, f16, f16, t, 0, 0, 1, 1, 3, true},
        // Other forms of the sizes.
        {grouping, many_groups(), 72, 72, f16, f16, t, 1, 0, 2, 0, 0, false, true, false},
        {grouping, many_groups(), 72, 72, bf16, bf16, t, 1, 0, 2, 0, 0, false, true, true},
        {grouping, high, 136, 72, f16, f16, nt, 1, -1, 2, 0, 0, false, false, true},
    };
    return cases;
}

std::vector<GroupedCase> gated_cases(hgemm_grouping_t grouping)
{
    constexpr hgemm_activation_t activations[] = {HGEMM_ACTIVATION_SILU, HGEMM_ACTIVATION_RELU,
                                                  HGEMM_ACTIVATION_NONE, HGEMM_ACTIVATION_GELU_ERF,
                                                  HGEMM_ACTIVATION_GELU_TANH};
    std::vector<GroupedCase> cases = grouped_cases(grouping);
    std::erase_if(cases, [](const GroupedCase& g) { return g.n % 4 != 0; });
    for (size_t i = 0; i < cases.size(); ++i) {
        GroupedCase& g = cases[i];
        g.beta = 0;
        const int64_t blocks[] = {g.n / 2, 1, g.n % 16 == 0 ? 8 : g.n / 4};
        g.activation = activations[i % 5];
        g.gate.block = blocks[i / 2 % 3];
        g.gate.limit = i % 3 == 0 ? 6.0f : 0.0f;
        g.gate.slope = g.activation == HGEMM_ACTIVATION_SILU ? 1.5f : 0.0f;
        g.gate.offset = i % 4 == 0 ? 1.0f : 0.0f;
    }
    return cases;
}

std::vector<GroupedCase> biased_cases(hgemm_grouping_t grouping)
{
    constexpr hgemm_type_t types[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};
    const std::vector<GroupedCase> plain = grouped_cases(grouping), gated = gated_cases(grouping);
    std::vector<GroupedCase> cases;
    for (size_t i = 1; i < plain.size(); i += 2 * thinning())
        cases.push_back(plain[i]);
    for (size_t i = 2; i < gated.size(); i += 4 * thinning())
        cases.push_back(gated[i]);
    for (size_t i = 0; i < cases.size(); ++i) {
        cases[i].bias = true;
        cases[i].type_bias = types[i % 3];
    }
    return cases;
}

bool check_grouped(Library& library, const GroupedCase& grouped)
{
    SCOPED_TRACE(grouped.describe());
    GroupedTrial trial(library.memory(), grouped);
    const hgemm_status_t status = trial.run(library);
    if (status == HGEMM_STATUS_NOT_SUPPORTED)
        return false;
    EXPECT_EQ(status, HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    trial.expect_right();
    return true;
}

namespace {

// In parts, which have as many rows as a small workspace has room for.
bool check_parts_of_groups(Library& library, hgemm_grouping_t grouping)
{
    bool supported = true;
    const std::vector<GroupedCase> cases = gated_cases(grouping);
    for (size_t i = 0; i < cases.size(); i += 3 * thinning()) {
        GroupedCase g = cases[i];
        g.activation = HGEMM_ACTIVATION_GELU_ERF;
        g.gate.slope = 0;
        g.bias = i % 2 == 0;
        const WithWorkspace small(library, i % 4 < 2 ? size_t{24} << 10 : size_t{90} << 10);
        supported = check_grouped(library, g) && supported;
    }
    return supported;
}

}  // namespace

bool check_grouped(Library& library, hgemm_grouping_t grouping)
{
    bool supported = true;
    for (const auto& cases : {grouped_cases(grouping), gated_cases(grouping), biased_cases(grouping)})
        for (const GroupedCase& grouped : cases)
            supported = check_grouped(library, grouped) && supported;
    return check_parts_of_groups(library, grouping) && supported;
}

}  // namespace hg::test
