#include "triangle_rules.hpp"

#include "conformance.hpp"
#include "handle_scopes.hpp"
#include "library_rules.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace hg::test {
namespace {

constexpr hgemm_uplo_t uplos[] = {HGEMM_UPPER, HGEMM_LOWER, HGEMM_BOTH};

}  // namespace

GemmCase triangle_case(unsigned form, int64_t n, int64_t k)
{
    GemmCase g;
    g.uplo = uplos[form % 3];
    g.layout = form & 1 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = form & 2 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.transb = form & 2 ? HGEMM_NO_TRANS : HGEMM_TRANS;
    g.type_ab = g.type_c = g.type_d = halves[form / 2 % 2];
    g.m = g.n = n;
    g.k = k;
    g.data = Data::Normal;
    g.seed = form + 1;
    return g;
}

namespace {

// By the general form, or by a function of its own.
void expect_triangle(Library& library, const GemmCase& g, std::optional<Syrk> form = {})
{
    Trial trial(g, library.memory());
    trial.upload();
    const hgemm_status_t status =
        form ? library.wait(call_syrk(*form, library.handle(), trial.args())) : library.run(trial.args());
    ASSERT_EQ(status, HGEMM_STATUS_SUCCESS) << g.print() << ": " << hgemm_last_error();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "")
        << g.print() << ": " << library.explain(trial.args());
}

void check_epilogues(Library& library, unsigned form)
{
    GemmCase g = triangle_case(form, 70, 40);
    g.beta = -1;
    g.alpha = 0.5f;
    expect_triangle(library, g);
    g.in_place = false;
    g.type_c = g.type_d = HGEMM_F32;
    g.c.gap = 3;
    g.device_scalars = library.memory().on_device();
    expect_triangle(library, g);
    g.d.shift = 1;
    g.d.gap = 1;
    g.a.gap = 1;
    expect_triangle(library, g);
    // Nothing is multiplied; D stays as it is, but what is mirrored.
    g = triangle_case(form, 70, 0);
    g.beta = 2;
    expect_triangle(library, g);
    g.beta = 1;
    expect_triangle(library, g);
    g.beta = 0;
    expect_triangle(library, g);
}

void check_batches(Library& library, unsigned form)
{
    GemmCase g = triangle_case(form, 33, 24);
    g.batch = Batch::Strided;
    g.batch_count = 5;
    g.beta = 1;
    expect_triangle(library, g);
    expect_triangle(library, g, Syrk::Strided);
    g.b.step = g.a.step = 0;
    g.d.step = -3;
    expect_triangle(library, g);
}

// Large enough for tiles beside the diagonal, which GPUs move by vectors if D's rows and problems begin at
// multiples of 16 bytes.
void check_vectors(Library& library)
{
    for (unsigned form = 0; form < 6; ++form) {
        GemmCase g = triangle_case(form, 200, 16);
        g.batch = Batch::Strided;
        g.batch_count = 2;
        g.beta = -1;  // of a C that is not symmetric: the mirror is seen
        expect_triangle(library, g);
        g.type_c = g.type_d = HGEMM_F32;
        expect_triangle(library, g);
        const unsigned unaligned = form / 2;
        g.d.shift = unaligned == 0;
        g.d.gap = unaligned == 1;
        g.d.step = unaligned == 2 ? 2 : 1;
        expect_triangle(library, g);
    }
}

// Blocks of a matrix in a pointer array lie as far behind each of its pointers.
void check_arrays(Library& library)
{
    for (unsigned form = 0; form < 6; ++form) {
        GemmCase g = triangle_case(form, 40, 24);
        g.batch = Batch::Arrays;
        g.batch_count = 3;
        g.beta = -1;
        expect_triangle(library, g);
        g.in_place = false;
        g.type_c = g.type_d = HGEMM_F32;
        g.a.gap = g.d.gap = g.d.shift = 1;
        expect_triangle(library, g);
        // Several blocks: see check_triangle_bits().
        g = triangle_case(form, g.uplo == HGEMM_BOTH ? 520 : 600, 32);
        g.batch = Batch::Arrays;
        g.batch_count = 2;
        const WithWorkspace workspace(library, size_t{600} * 600 * 2 - 256);
        if (thinning() == 1 || form < 3)
            expect_triangle(library, g);
    }
}

// In a mode, the elements of the whole product.
void expect_bits_of_whole(Library& library, const GemmCase& g, hgemm_mode_t mode)
{
    const InMode in_mode(library, mode);
    GemmCase all = g;
    all.uplo = HGEMM_UPLO_NONE;
    Trial whole(all, library.memory()), half(g, library.memory());
    whole.fill_b([a = Trial::data_a(g)](int64_t z, int64_t p, int64_t j) { return a(z, j, p); });
    whole.upload();
    half.upload();
    ASSERT_EQ(library.run(whole.args()), HGEMM_STATUS_SUCCESS) << library.story();
    ASSERT_EQ(library.run(half.args()), HGEMM_STATUS_SUCCESS) << library.story();
    whole.download();
    half.download();
    EXPECT_EQ(half.judge_memory(false).message, "") << g.print();
    int64_t wrong = 0;
    for (int64_t i = 0; i < g.n; ++i)
        for (int64_t j = 0; j < g.n; ++j)
            wrong += is_computed(g.uplo, i, j) && half.result(0, i, j) != whole.result(0, i, j);
    EXPECT_EQ(wrong, 0) << g.print() << ": " << library.explain(half.args());
}

}  // namespace

void check_triangles(Library& library)
{
    for (unsigned form = 0; form < 12; ++form) {
        if (thinning() > 1 && form % 5 != 0)
            continue;
        for (const int64_t n : {1, 7, 130})
            expect_triangle(library, triangle_case(form, n, 50), n == 7 ? Syrk::Two : Syrk::One);
        check_epilogues(library, form);
        check_batches(library, form);
    }
    check_vectors(library);
    check_arrays(library);
    GemmCase exact = triangle_case(2, 257, 64);
    exact.data = Data::Integers;
    exact.aligned = true;
    expect_triangle(library, exact);
}

void check_triangle_bits(Library& library)
{
    for (const hgemm_uplo_t uplo : uplos) {
        GemmCase g = triangle_case(1, 300, 48);
        g.uplo = uplo;
        expect_bits_of_whole(library, g, HGEMM_MODE_BATCH_INVARIANT);
        g.k = 1024;
        g.m = g.n = 40;
        expect_bits_of_whole(library, g, HGEMM_MODE_TREE);
        if (uplo == HGEMM_BOTH) {  // large enough for several blocks on the host and an emulated sm80
            g.k = 128;
            g.m = g.n = 520;
            g.aligned = true;
            expect_bits_of_whole(library, g, HGEMM_MODE_BATCH_INVARIANT);
            continue;
        }
        // There is room for blocks of 384, of which 600 takes two, but not for one of 600.
        g = triangle_case(1, 600, 32);
        g.uplo = uplo;
        g.aligned = true;
        const WithWorkspace workspace(library, size_t{600} * 600 * 2 - 256);
        expect_bits_of_whole(library, g, HGEMM_MODE_BATCH_INVARIANT);
    }
}

void check_triangle_symmetry(Library& library)
{
    for (const int64_t n : {65, 145, 256}) {
        GemmCase g = triangle_case(2, n, 1024);
        g.type_c = g.type_d = HGEMM_F32;
        expect_triangle(library, g);
        Trial trial(g, library.memory());
        trial.upload();
        hgemm_args_t args = trial.args();
        args.b = args.a;  // as hsyrk has it, with an fp32 result
        args.ldb = args.lda;
        ASSERT_EQ(library.run(args), HGEMM_STATUS_SUCCESS) << library.story();
        trial.download();
        EXPECT_EQ(trial.judge(library.arithmetic()).message, "") << library.explain(args);
    }
}

void check_triangle_workspaces(Library& library)
{
    GemmCase g = triangle_case(3, 300, 64);
    g.uplo = HGEMM_UPPER;
    g.batch = Batch::Strided;
    g.batch_count = 4;
    Trial trial(g, library.memory());
    const auto told_with = [&](size_t bytes) {
        const WithWorkspace workspace(library, bytes);
        size_t told = 0;
        EXPECT_EQ(hgemm_workspace_size(library.handle(), &trial.args(), &told), HGEMM_STATUS_SUCCESS);
        return told;
    };
    const size_t told = told_with(256);
    EXPECT_GT(told, 256u);
    for (size_t bytes = told; bytes < 8 * told; bytes += told / 16)
        EXPECT_LE(told_with(bytes), bytes) << told;
    const WithWorkspace workspace(library, told);
    expect_triangle(library, g);
}

void check_triangle_refusals(Library& library)
{
    GemmCase g = triangle_case(1, 20, 16);
    const auto invalid = HGEMM_STATUS_INVALID_ARGUMENT;
    expect_refused(library, g, invalid,
                   "(args->uplo) is 120, must be 0 (none), 121 (upper), 122 (lower) or 123 (both)",
                   [](hgemm_args_t& args) { args.uplo = static_cast<hgemm_uplo_t>(120); });
    expect_refused(library, g, invalid, "(args->uplo) is 122, so args->m = 19 must equal args->n = 20",
                   [](hgemm_args_t& args) { --args.m; });
    expect_refused(library, g, invalid, "(args->uplo) is 122, so args->activation must be 0",
                   [](hgemm_args_t& args) { args.activation = HGEMM_ACTIVATION_RELU; });
    expect_refused(library, g, invalid, "(args->d) overlaps args->a",
                   [](hgemm_args_t& args) { args.a = args.d; });
    const WithWorkspace workspace(library, 256);
    expect_refused(library, g, HGEMM_STATUS_WORKSPACE_TOO_SMALL, "of workspace for a triangle, has 256");
    // Nothing is to be done.
    Trial trial(g, library.memory());
    hgemm_args_t args = trial.args();
    args.k = 0;
    args.beta = 1;
    hgemm_grouped_args_t groups;
    hgemm_grouped_args_init(&groups, sizeof groups);
    groups.grouping = HGEMM_GROUPED_HOST;
    groups.group_count = 1;
    groups.problems = &args;
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), &args), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_grouped_ex(library.handle(), &groups), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    g.uplo = HGEMM_BOTH;
    g.aligned = true;
    if (library.memory().on_device())
        expect_triangle(library, g);
}

}  // namespace hg::test
