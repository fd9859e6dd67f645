#include "arch/host/passes/experts.hpp"

#include "src/base/convert.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hg {
namespace {

constexpr int64_t columns_at_once = 256;  // elements of a row that are added at a time

// -1: none.
int64_t expert_of(const Route& what, int64_t choice)
{
    const int64_t place = choice / what.choices * what.ld + choice % what.choices;
    return what.narrow ? static_cast<const int32_t*>(what.chosen)[place]
                       : static_cast<const int64_t*>(what.chosen)[place];
}

bool exists(const RowMove& what, int32_t number) { return 0 <= number && number < what.all_choices(); }

float weight_of(const RowMove& what, int64_t choice)
{
    float weight = 1.0f;
    if (what.weights)
        to_float(what.type_weights, what.weights, choice / what.choices * what.ldw + choice % what.choices,
                 1, 1, &weight);
    return weight;
}

const void* row_of(const RowMove& what, int64_t row)
{
    return static_cast<const char*>(what.a) + row * what.lda * bytes_of(what.type_a);
}

void gather_choice(const RowMove& what, int64_t choice)
{
    const int32_t row = what.row_of_choice[choice];
    if (!exists(what, row))
        return;
    const void* const from = row_of(what, choice / what.choices);
    if (!what.weights && what.type_a == what.type_d) {
        const int64_t bytes = bytes_of(what.type_d);
        std::memcpy(static_cast<char*>(what.d) + row * what.ldd * bytes, from,
                    static_cast<size_t>(what.columns * bytes));
        return;
    }
    const float weight = weight_of(what, choice);
    float values[columns_at_once];
    for (int64_t j = 0; j < what.columns; j += columns_at_once) {
        const int64_t count = std::min(columns_at_once, what.columns - j);
        to_float(what.type_a, from, j, 1, count, values);
        for (int64_t e = 0; e < count; ++e)
            values[e] *= weight;
        from_float(what.type_d, values, count, what.d, row * what.ldd + j);
    }
}

// Products are rounded before they are added.
void add_choice(const RowMove& what, int64_t choice, int64_t j, int64_t count, float* sums)
{
    const int32_t row = what.row_of_choice[choice];
    if (!exists(what, row))
        return;
    const float weight = weight_of(what, choice);
    float values[columns_at_once];
    to_float(what.type_a, row_of(what, row), j, 1, count, values);
    for (int64_t e = 0; e < count; ++e)
        values[e] *= weight;
    for (int64_t e = 0; e < count; ++e)
        sums[e] += values[e];
}

void combine_row(const RowMove& what, int64_t token)
{
    for (int64_t j = 0; j < what.columns; j += columns_at_once) {
        const int64_t count = std::min(columns_at_once, what.columns - j);
        float sums[columns_at_once] = {};
        for (int64_t c = 0; c < what.choices; ++c)
            add_choice(what, token * what.choices + c, j, count, sums);
        from_float(what.type_d, sums, count, what.d, token * what.ldd + j);
    }
}

// In 16 sums, of which each gets every 16th product.
float dot_product(const RowMove& what, int64_t token, int64_t row)
{
    constexpr int64_t lanes = 16;
    static_assert(columns_at_once % lanes == 0);
    float sums[lanes] = {};
    for (int64_t j = 0; j < what.columns; j += columns_at_once) {
        const int64_t count = std::min(columns_at_once, what.columns - j);
        float a[columns_at_once] = {}, b[columns_at_once] = {};
        to_float(what.type_a, what.a, token * what.lda + j, 1, count, a);
        to_float(what.type_b, what.b, row * what.ldb + j, 1, count, b);
        for (int64_t e = 0; e < count; ++e)
            sums[e % lanes] += a[e] * b[e];
    }
    for (int64_t apart = lanes / 2; apart > 0; apart /= 2)
        for (int64_t lane = 0; lane < apart; ++lane)
            sums[lane] += sums[lane + apart];
    return sums[0];
}

void dot_choice(const RowMove& what, int64_t choice)
{
    const int32_t row = what.row_of_choice[choice];
    const int64_t token = choice / what.choices;
    const float sum = exists(what, row) ? dot_product(what, token, row) : 0.0f;
    from_float(what.type_d, &sum, 1, what.d, token * what.ldd + choice % what.choices);
}

}  // namespace

void route(const Route& what)
{
    const int64_t all = what.all_choices();
    std::fill_n(what.ends, what.experts, 0);
    for (int64_t choice = 0; choice < all; ++choice)
        if (const int64_t expert = expert_of(what, choice); expert >= 0)
            ++what.ends[expert];
    int32_t rows = 0;
    for (int64_t expert = 0; expert < what.experts; ++expert) {
        const int32_t begin = rows;
        rows += what.ends[expert];
        what.ends[expert] = begin;  // where its next row lies
    }
    for (int64_t choice = 0; choice < all; ++choice) {
        const int64_t expert = expert_of(what, choice);
        const int32_t row = expert >= 0 ? what.ends[expert]++ : -1;
        what.row_of_choice[choice] = row;
        if (row >= 0 && what.choice_of_row)
            what.choice_of_row[row] = static_cast<int32_t>(choice);
    }
    if (what.choice_of_row)
        std::fill(what.choice_of_row + rows, what.choice_of_row + all, -1);
}

void move_rows(Pool& pool, const RowMove& what, int threads)
{
    // Fewer elements are not worth a second thread.
    constexpr int64_t elements_of_part = int64_t{1} << 14;
    const auto parts =
        std::clamp<int64_t>(what.all_choices() * what.columns / elements_of_part, 1, threads);
    pool.parallel_for(static_cast<int>(parts), what.tokens, [&](int64_t begin, int64_t end) {
        if (what.how == Rows::Combine)
            for (int64_t token = begin; token < end; ++token)
                combine_row(what, token);
        else
            for (int64_t choice = begin * what.choices; choice < end * what.choices; ++choice)
                (what.how == Rows::Gather ? gather_choice : dot_choice)(what, choice);
    });
}

void clear_rows(const RowClear& what)
{
    const auto size_at = [&](int64_t i) {
        return what.groups.narrow ? static_cast<const int32_t*>(what.groups.sizes)[i]
                                  : static_cast<const int64_t*>(what.groups.sizes)[i];
    };
    const int64_t bytes = bytes_of(what.d.type), groups = what.group_count;
    const bool masked = what.groups.masked(), offsets = what.groups.by == GroupsBy::Offsets;
    for (int64_t z = 0; z < what.matrices(); ++z) {
        const int64_t first = groups > 0 && offsets ? size_at(0) : 0;
        const int64_t last = groups == 0 ? 0 : size_at(masked ? z : offsets ? groups : groups - 1);
        char* const d = static_cast<char*>(what.d.ptr) + z * what.d.batch_stride * bytes;
        for (int64_t i = 0; i < what.rows; i = i + 1 == first ? last : i + 1)
            if (i < first || i >= last)
                std::memset(d + i * what.d.ld * bytes, 0, static_cast<size_t>(what.columns * bytes));
    }
}

}  // namespace hg
