// The cases of grouped_rules.hpp.
#include "conformance.hpp"
#include "grouped_rules.hpp"
#include "src/tools/support/number.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

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

// More than a warp reads at once in the kernels for few rows, most of them empty.
std::vector<int64_t> very_many_groups()
{
    std::vector<int64_t> rows(300);
    for (const size_t i : {0, 127, 128, 131, 255, 256, 299})
        rows[i] = static_cast<int64_t>(i % 5 + 15);
    return rows;
}

}  // namespace

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
        // Tiles of 16 and of 32 rows that groups fill, or overfill by one.
        {grouping, {16, 17, 32, 0, 33, 1}, 200, 136, f16, f16, t, 1, 0, 3, 0, 0},
        {grouping, {16, 17, 32, 0, 33, 1}, 136, 200, bf16, bf16, nt, 1, 0, 0, 0, 0, false, true, true},
        {grouping, very_many_groups(), 72, 72, bf16, bf16, t, 1, 0, 0, 0, 0, false, true, true},
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

namespace {

struct AuxForm {
    std::vector<int64_t> rows;
    int64_t n, k;
    hgemm_type_t type_ab, type_d;
    hgemm_op_t transb;
    hgemm_activation_t activation;
    hgemm_gate_t gate;
    int64_t aux_pad, aux_shift;            // 8 and 0 keep lines aligned
    int64_t shift = 0, pad = 0, room = 0;  // of the others
    bool bias = false, ends = false, narrow = false;
};

std::vector<AuxForm> aux_forms()
{
    const bool is_slow = thinning() > 1;
    const std::vector<int64_t> few = {3, 0, 70, 1, 16},
                               high = is_slow ? std::vector<int64_t>{64, 0, 130, 5}
                                              : std::vector<int64_t>{128, 0, 300, 64, 129};
    constexpr auto f16 = HGEMM_F16, bf16 = HGEMM_BF16, f32 = HGEMM_F32;
    constexpr auto t = HGEMM_TRANS, nt = HGEMM_NO_TRANS;
    constexpr auto silu = HGEMM_ACTIVATION_SILU, relu = HGEMM_ACTIVATION_RELU, none = HGEMM_ACTIVATION_NONE,
                   tanh = HGEMM_ACTIVATION_GELU_TANH, erf = HGEMM_ACTIVATION_GELU_ERF;
    return {
        // As one kernel serves them, with tiles that groups fill and such as they do not.
        {high, 256, 136, f16, f16, t, silu, {128, 0, 1.5f, 0, 0}, 0, 0},
        {high, 272, 72, bf16, bf16, t, relu, {136, 6, 0, 0, 0}, 8, 0, 0, 0, 3, true},
        {high, 192, 136, bf16, bf16, t, silu, {32, 6, 0, 1, 0}, 8, 0, 0, 8, 0, false, true},
        {high, 208, 72, f16, f16, t, tanh, {8, 0, 0, 0, 0}, 16, 0, 0, 0, 2, true, false, true},
        {high, 144, 128, f16, f16, t, silu, {1, 7, 1.702f, 1, 0}, 0, 0},
        {many_groups(), 160, 64, bf16, bf16, t, silu, {1, 0, 0, 0, 0}, 8, 0, 0, 0, 1, true, true, true},
        {many_groups(), 112, 72, f16, f16, t, none, {56, 0, 0, -0.5f, 0}, 0, 0},
        // The same with a B that is contiguous along N.
        {high, 256, 136, bf16, bf16, nt, silu, {128, 0, 1.5f, 0, 0}, 0, 0},
        {high, 272, 72, f16, f16, nt, silu, {1, 7, 1.702f, 1, 0}, 8, 0, 0, 0, 3, true},
        {many_groups(), 176, 64, bf16, bf16, nt, relu, {88, 0, 0, 0, 0}, 8, 0, 0, 0, 1, true, true, true},
        {high, 384, 72, f16, f16, nt, tanh, {64, 6, 0, 0, 0}, 16, 0, 0, 8, 0, true, true},
        {{0, 0, 0}, 64, 64, f16, f16, t, silu, {32, 0, 0, 0, 0}, 8, 0, 0, 0, 4},
        // In parts: an aux that is not aligned, other operands that are not, types, and GELU (erf).
        {few, 128, 72, f16, f16, t, silu, {64, 0, 0, 0, 0}, 5, 0},
        {few, 64, 72, bf16, bf16, t, relu, {8, 6, 0, 0, 0}, 0, 1, 0, 0, 2, true, true},
        {few, 96, 72, bf16, f32, nt, silu, {1, 0, 0, 1, 0}, 0, 0, 0, 0, 0, true, false, true},
        {high, 64, 72, f16, f32, t, silu, {32, 5, 0, 0, 0}, 3, 1, 1, 3},
        {few, 48, 50, f16, bf16, nt, erf, {24, 0, 0, 0, 0}, 1, 3, 1, 5, 1, true},
        {few, 42, 50, f16, f16, t, erf, {3, 6, 0, 0, 0}, 0, 0, 0, 2},
    };
}

}  // namespace

std::vector<GroupedCase> aux_cases(hgemm_grouping_t grouping)
{
    std::vector<GroupedCase> cases;
    for (const AuxForm& form : aux_forms()) {
        GroupedCase g{grouping, form.rows, form.n, form.k, form.type_ab, form.type_d, form.transb};
        g.alpha = cases.size() % 3 == 1 ? -0.5f : 1;
        g.room = form.room;
        g.shift = form.shift;
        g.pad = form.pad;
        g.ends = form.ends;
        g.narrow = form.narrow;
        g.activation = form.activation;
        g.gate = form.gate;
        g.bias = form.bias;
        g.type_bias = cases.size() % 4 == 1 ? HGEMM_F32 : form.type_ab;
        g.aux = true;
        g.aux_pad = form.aux_pad;
        g.aux_shift = form.aux_shift;
        cases.push_back(g);
    }
    return cases;
}

}  // namespace hg::test
