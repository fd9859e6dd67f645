// The second half of gate_rules.hpp: bits, workspaces, repeats and refusals.
#include "conformance.hpp"
#include "gate_rules.hpp"
#include "handle_scopes.hpp"
#include "library_rules.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace hg::test {
namespace {

// A row's bits are those of the first rows of a smaller product, and of its fp32 product gated by itself.
void expect_bits_of_rows(Library& library, const GemmCase& g)
{
    GemmCase fewer = g, product = g;
    fewer.m = 3;
    product.gate = {};
    product.activation = HGEMM_ACTIVATION_NONE;
    product.type_d = HGEMM_F32;
    Trial all(g, library.memory()), some(fewer, library.memory()), sums(product, library.memory());
    for (Trial* const trial : {&all, &some, &sums}) {
        trial->upload();
        ASSERT_EQ(library.run(trial->args()), HGEMM_STATUS_SUCCESS) << library.story();
        trial->download();
    }
    EXPECT_EQ(all.judge(library.arithmetic()).message, "") << g.print();
    EXPECT_TRUE(some.results(3) == all.results(3)) << g.print() << ": " << library.explain(all.args());
    for (const int64_t row : {int64_t{0}, g.m / 2, g.m - 1}) {
        GemmCase line = g;
        line.m = 1;
        line.k = 0;
        line.beta = 1;
        line.in_place = false;
        line.type_c = HGEMM_F32;
        line.bias = HGEMM_BIAS_NONE;
        Trial alone(line, library.memory());
        alone.fill_c([&](int64_t, int64_t, int64_t j) { return sums.result(0, row, j); });
        alone.upload();
        ASSERT_EQ(library.run(alone.args()), HGEMM_STATUS_SUCCESS) << library.story();
        alone.download();
        int64_t wrong = 0;
        for (int64_t j = 0; j < g.columns_of_d(); ++j)
            wrong += alone.result(0, 0, j) != all.result(0, row, j);
        EXPECT_EQ(wrong, 0) << g.print() << " row " << row << ": " << library.explain(all.args());
    }
}

}  // namespace

void check_gate_bits(Library& library)
{
    for (const int64_t block : {0, 32, 1}) {
        for (const hgemm_mode_t mode : {HGEMM_MODE_BATCH_INVARIANT, HGEMM_MODE_TREE}) {
            const InMode in_mode(library, mode);
            GemmCase g = gate_case(7, 140, 64, mode == HGEMM_MODE_TREE ? 1024 : 200, block);
            g.aligned = true;
            expect_bits_of_rows(library, g);
            g.type_d = HGEMM_F32;
            g.bias = HGEMM_BIAS_N;
            expect_bits_of_rows(library, g);
        }
    }
    // Room for a few rows of a thousand columns at a time.
    const InMode in_mode(library, HGEMM_MODE_BATCH_INVARIANT);
    GemmCase g = gate_case(1, 60, 1200, 16);
    g.type_d = HGEMM_F32;
    Trial whole(g, library.memory()), parts(g, library.memory());
    whole.upload();
    parts.upload();
    ASSERT_EQ(library.run(whole.args()), HGEMM_STATUS_SUCCESS) << library.story();
    const WithWorkspace workspace(library, size_t{1} << 18);
    ASSERT_EQ(library.run(parts.args()), HGEMM_STATUS_SUCCESS) << library.story();
    whole.download();
    parts.download();
    EXPECT_TRUE(whole.results(g.m) == parts.results(g.m)) << library.explain(parts.args());
}

namespace {

void run_trial(Library& library, Trial& trial)
{
    trial.upload();
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    trial.download();
}

// Elements of D and of aux that differ from those of calls that compute one of them alone.
void expect_bits_of_aux(Library& library, const GemmCase& g)
{
    GemmCase without = g, product = g;
    without.aux = false;
    product.aux = false;
    product.gate = {};
    product.activation = HGEMM_ACTIVATION_NONE;
    Trial both(g, library.memory()), alone(without, library.memory()), sums(product, library.memory());
    // First without aux: plans that are kept are not those with it.
    for (Trial* const trial : {&alone, &both, &sums})
        run_trial(library, *trial);
    EXPECT_EQ(both.judge(library.arithmetic()).message, "") << g.print();
    int64_t of_aux = 0, of_d = 0;
    for (int64_t z = 0; z < g.batch_count; ++z)
        for (int64_t i = 0; i < g.m; ++i) {
            for (int64_t j = 0; j < g.n; ++j)
                of_aux += both.aux(z, i, j) != sums.result(z, i, j);
            for (int64_t j = 0; j < g.columns_of_d(); ++j)
                of_d += both.result(z, i, j) != alone.result(z, i, j);
        }
    EXPECT_EQ(of_aux, 0) << g.print() << ": " << library.explain(both.args());
    EXPECT_EQ(of_d, 0) << g.print() << ": " << library.explain(both.args());
}

}  // namespace

// As one kernel serves them, but for an aux whose lines are not aligned, a D of fp32, and blocks of 3.
void check_gate_aux(Library& library)
{
    for (const hgemm_mode_t mode : {HGEMM_MODE_BATCH_INVARIANT, HGEMM_MODE_TREE})
        for (const int64_t block : {0, 8, 32, 1, 3})
            for (const unsigned form : {1u, 3u, 5u, 7u}) {
                const bool is_picked = mode == HGEMM_MODE_BATCH_INVARIANT &&
                                       (form / 2 + static_cast<unsigned>(block)) % 4 == 0;
                if (thinning() > 1 && !is_picked)
                    continue;
                const InMode in_mode(library, mode);
                GemmCase g = gate_case(form, 140, 96, mode == HGEMM_MODE_TREE ? 1024 : 192, block);
                g.transa = HGEMM_NO_TRANS;
                g.transb = HGEMM_TRANS;
                g.type_d = form == 7 ? HGEMM_F32 : g.type_ab;
                g.aux = true;
                g.aux_place.gap = form == 3 ? 8 : 0;
                g.aux_place.shift = form == 5 ? 1 : 0;
                g.alpha = form == 3 ? -0.5f : 1;
                g.bias = form % 4 == 1 ? HGEMM_BIAS_N : HGEMM_BIAS_NONE;
                g.bias_type = g.type_ab;
                expect_bits_of_aux(library, g);
                g.m = 37;
                g.batch = Batch::Strided;
                g.batch_count = 3;
                expect_bits_of_aux(library, g);
            }
}

void check_gate_workspaces(Library& library)
{
    for (const int64_t block : {0, 32, 3}) {
        GemmCase g = gate_case(5, thinning() > 1 ? 20 : 50, block == 3 ? 1056 : 1088, 24, block);
        g.batch = Batch::Strided;
        g.batch_count = 3;
        g.aux = true;
        g.bias = HGEMM_BIAS_N;
        g.in_place = false;
        g.beta = 1;
        Trial trial(g, library.memory());
        const auto told_with = [&](size_t bytes) {
            const WithWorkspace workspace(library, bytes);
            size_t told = 0;
            EXPECT_EQ(hgemm_workspace_size(library.handle(), &trial.args(), &told), HGEMM_STATUS_SUCCESS)
                << hgemm_last_error();
            return told;
        };
        const size_t told = told_with(size_t{1} << 17);
        for (const size_t bytes : {told, told + 256, told * 3 / 2, told * 2, told * 5}) {
            EXPECT_LE(told_with(bytes), bytes) << told;
            if (thinning() > 1 && bytes != told && bytes != told * 2)
                continue;
            const WithWorkspace workspace(library, bytes);
            expect_gate(library, g);
        }
    }
    // Hardly any: elements one after the other.
    GemmCase g = gate_case(9, 3, 40, 16);
    Trial trial(g, library.memory());
    size_t least = 0;
    {
        const WithWorkspace workspace(library, 256);
        EXPECT_EQ(hgemm_workspace_size(library.handle(), &trial.args(), &least), HGEMM_STATUS_SUCCESS);
    }
    const WithWorkspace workspace(library, least);
    expect_gate(library, g);
    EXPECT_NE(library.explain(trial.args()), "");
}

void check_gate_repeats(Library& library)
{
    GemmCase g = gate_case(4, 40, 64, 40);
    Trial trial(g, library.memory());
    hgemm_args_t args = trial.args();
    args.activation = HGEMM_ACTIVATION_SILU;
    args.gate = {64, 0, 0, 0, 0};
    const auto bits_with = [&](const hgemm_gate_t& gate) {
        args.gate = gate;
        trial.upload();
        EXPECT_EQ(library.run(args), HGEMM_STATUS_SUCCESS) << library.story();
        trial.download();
        return trial.results(g.rows_of_d());
    };
    for (const hgemm_gate_t& gate :
         {hgemm_gate_t{64, 0, 0, 0, 0}, hgemm_gate_t{64, 1, 0, 0, 7}, hgemm_gate_t{64, 1, 2, 0, 0},
          hgemm_gate_t{64, 1, 2, 3, 0}, hgemm_gate_t{32, 1, 2, 3, 0}, hgemm_gate_t{64, 0, 0, 0, 0}}) {
        GemmCase described = g;
        described.activation = HGEMM_ACTIVATION_SILU;
        described.gate = gate;
        Trial judged(described, library.memory());
        judged.upload();
        ASSERT_EQ(library.run(judged.args()), HGEMM_STATUS_SUCCESS) << library.story();
        judged.download();
        EXPECT_EQ(judged.judge(library.arithmetic()).message, "") << described.print();
        for (int turn = 0; turn < 3; ++turn)
            EXPECT_TRUE(bits_with(gate) == judged.results(g.rows_of_d())) << described.print();
    }
    // As one of several problems.
    hgemm_grouped_args_t groups;
    hgemm_grouped_args_init(&groups, sizeof groups);
    groups.grouping = HGEMM_GROUPED_HOST;
    groups.group_count = 1;
    groups.problems = &trial.args();
    trial.upload();
    EXPECT_EQ(library.wait(hgemm_grouped_ex(library.handle(), &groups)), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "");
}

void check_gate_refusals(Library& library)
{
    GemmCase g = gate_case(9, 20, 16, 16);
    const auto invalid = HGEMM_STATUS_INVALID_ARGUMENT;
    expect_refused(library, g, invalid, "(args->gate.block) is -1, must be at least 0",
                   [](hgemm_args_t& args) { args.gate.block = -1; });
    expect_refused(library, g, invalid, "(args->gate.block) is 5, twice of it must divide args->n = 32",
                   [](hgemm_args_t& args) { args.gate.block = 5; });
    expect_refused(library, g, invalid, "(args->gate.limit) is inf, must be finite and at least 0",
                   [](hgemm_args_t& args) { args.gate.limit = std::numeric_limits<float>::infinity(); });
    expect_refused(library, g, invalid, "(args->d) overlaps args->a",
                   [](hgemm_args_t& args) { args.a = args.d; });
    // Whatever kernel there is does without a workspace, or there is none.
    hgemm_handle_t without = nullptr;
    ASSERT_EQ(hgemm_create_sized(
                  &without, library.memory().on_device() ? HGEMM_DEVICE_CURRENT : HGEMM_DEVICE_HOST, 0),
              HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    g = gate_case(9, 20, 256, 16, 64);
    g.aux = true;
    g.activation = HGEMM_ACTIVATION_GELU_ERF;
    g.gate.slope = 0;
    g.d.shift = 1;
    Trial trial(g, library.memory());
    trial.upload();
    EXPECT_EQ(hgemm_gemm_ex(without, &trial.args()), HGEMM_STATUS_WORKSPACE_TOO_SMALL);
    EXPECT_NE(std::string(hgemm_last_error()).find("of workspace for gates, has 0"), std::string::npos)
        << hgemm_last_error();
    trial.download();
    EXPECT_EQ(trial.judge_memory(true).message, "");
    hgemm_destroy(without);
    const WithWorkspace workspace(library, 256);
    expect_refused(library, g, HGEMM_STATUS_WORKSPACE_TOO_SMALL, "of workspace for gates, has 256");
}

}  // namespace hg::test
