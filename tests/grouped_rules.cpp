#include "grouped_rules.hpp"

#include "conformance.hpp"
#include "handle_scopes.hpp"
#include "library_rules.hpp"
#include "src/tools/support/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <vector>

namespace hg::test {

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
    const int64_t ldaux = g_.n + g_.aux_pad;
    if (g_.aux)
        aux_ = Buffer(memory, g_.type_d, {lines_, g_.n, ldaux, matrices, lines_ * ldaux + g_.aux_pad},
                      g_.aux_shift, Guard::Pads);
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
                    buffer->set(z, i, j,
                                g_.exact ? static_cast<double>(random.below(5) - 2)
                                         : normal(33, random.bits()));
    for (int64_t z = 0; z < d_.extent().batch; ++z)
        for (int64_t i = 0; i < lines_; ++i)
            for (int64_t j = 0; j < g_.width(); ++j) {
                if (g_.beta != 0)
                    d_.set(z, i, j, static_cast<double>(random.below(9) - 4));
                before_.push_back(d_.get(z, i, j));
            }
    for (Buffer* buffer : {&a_, &b_, &d_, &bias_})
        buffer->upload();
    fill_aux();
}

double GroupedTrial::aux_before(int64_t z, int64_t row, int64_t j) const
{
    return round_to(g_.type_d, static_cast<double>(((z * lines_ + row) * g_.n + j) % 509) + 0.5);
}

void GroupedTrial::fill_aux()
{
    for (int64_t z = 0; z < aux_.extent().batch && g_.aux; ++z)
        for (int64_t i = 0; i < lines_; ++i)
            for (int64_t j = 0; j < g_.n; ++j)
                aux_.set(z, i, j, aux_before(z, i, j));
    if (g_.aux)
        aux_.upload();
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
    fill_aux();
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
        if (g_.aux) {
            p.aux = aux_.ptr(z);
            p.ldaux = aux_.extent().ld;
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
    // Not read where there is none, or where problems have their own.
    const bool has_aux = g_.aux && !is_host;
    args.aux = has_aux ? aux_.ptr() : is_host ? reinterpret_cast<void*>(uintptr_t{1}) : nullptr;
    args.ldaux = has_aux ? aux_.extent().ld : -1;
    args.stride_aux = has_aux ? aux_.extent().stride : std::numeric_limits<int64_t>::max();
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

// What D and aux should hold, line by line. A matrix at a time: element by element takes longer than the
// kernels.
GroupedTrial::Lines GroupedTrial::expected() const
{
    const int64_t lines = lines_ * d_.extent().batch;
    Lines d{Dense(lines, g_.width()), Dense(lines, g_.width()), Dense(g_.aux ? lines : 0, g_.n)};
    d.value.values = before_;
    for (int64_t line = 0; line < d.aux.rows; ++line)
        for (int64_t j = 0; j < g_.n; ++j)
            d.aux(line, j) = aux_before(line / lines_, line % lines_, j);
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
        Dense product = multiply(a, b, Arithmetic::of_cpu()).sum;
        for (int64_t i = 0; i < a.rows; ++i)
            for (int64_t j = 0; j < g_.n; ++j)
                product(i, j) = double{g_.alpha} * product(i, j) + (g_.bias ? bias_.get(group, 0, j) : 0);
        expect_group(product, z * lines_ + first, d);
    }
    return d;
}

// What a group's rows should hold, from line `first` on.
void GroupedTrial::expect_group(const Dense& product, int64_t first, Lines& d) const
{
    for (int64_t i = 0; i < product.rows; ++i) {
        for (int64_t j = 0; j < g_.n && g_.aux; ++j)
            d.aux(first + i, j) = product(i, j);
        for (int64_t j = 0; j < g_.width(); ++j) {
            double& value = d.value(first + i, j);
            if (g_.gate.block == 0) {
                value = product(i, j) + (g_.beta != 0 ? double{g_.beta} * value : 0);
                continue;
            }
            const int64_t place = place_of_gate(g_.gate.block, j);
            const Estimate wanted = gated(g_.gate, g_.activation, {product(i, place), 0},
                                          {product(i, place + g_.gate.block), 0});
            value = wanted.value;
            d.error(first + i, j) = wanted.error;
        }
    }
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

void GroupedTrial::download()
{
    for (Buffer* buffer : {&a_, &b_, &d_, &bias_, &aux_})
        if (buffer->exists())
            buffer->download();
    EXPECT_EQ(a_.damage(true) + b_.damage(true) + d_.damage(false) + bias_.damage(true), "");
    EXPECT_EQ(aux_.exists() ? aux_.damage(false) : "", "");
}

void GroupedTrial::expect_right()
{
    download();
    const Lines right = expected();
    expect_elements("D", d_, right.value, right.error);
    if (g_.aux)
        expect_elements("aux", aux_, right.aux, Dense(right.aux.rows, g_.n));
}

void GroupedTrial::expect_elements(const char* what, const Buffer& buffer, const Dense& right,
                                   const Dense& error) const
{
    int64_t wrong = 0, line = 0;
    for (const int64_t group : owners()) {
        const int64_t z = line / lines_, row = line % lines_;
        for (int64_t j = 0; j < right.columns; ++j) {
            const double result = buffer.get(z, row, j), value = right(line, j);
            if (matches(g_.type_d, result, value, error(line, j)) || wrong++ > 0)
                continue;
            ADD_FAILURE() << what << ": matrix " << z << " row " << row << " (group " << group
                          << ") column " << j << " is " << result << ", should be " << value;
        }
        ++line;
    }
    EXPECT_EQ(wrong, 0) << what << ": " << g_.describe();
}

std::string GroupedCase::describe() const
{
    char text[256];
    std::snprintf(text, sizeof text,
                  "%s, %zu groups, %" PRId64 " rows, n %" PRId64 " k %" PRId64
                  " %s to %s b %s alpha %g beta %g room %" PRId64 " shift %" PRId64 " pad %" PRId64
                  " gate block %" PRId64 "%s%s%s",
                  grouping == HGEMM_GROUPED_CONTIGUOUS ? "contiguous"
                  : grouping == HGEMM_GROUPED_MASKED   ? "masked"
                                                       : "host",
                  rows.size(), std::accumulate(rows.begin(), rows.end(), int64_t{0}), n, k,
                  name_of(type_ab), name_of(type_d), transb == HGEMM_TRANS ? "t" : "n", double{alpha},
                  double{beta}, room, shift, pad, gate.block, bias ? " bias " : "",
                  bias ? name_of(type_bias) : "", aux ? " aux" : "");
    return text;
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
    // On slow devices each kind of groups has every other one.
    const std::vector<GroupedCase> with_aux = aux_cases(grouping);
    for (size_t i = thinning() > 1 ? grouping % 2 : 0; i<with_aux.size(); i += thinning()> 1 ? 2 : 1)
        supported = check_grouped(library, with_aux[i]) && supported;
    return check_parts_of_groups(library, grouping) && supported;
}

}  // namespace hg::test
