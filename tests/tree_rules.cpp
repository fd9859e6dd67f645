#include "tree_rules.hpp"

#include "conformance.hpp"
#include "handle_scopes.hpp"
#include "library_rules.hpp"
#include "src/plan/tree.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace hg::test {
namespace {

using Values = std::vector<float>;

// alpha * op(A) * op(B) over `count` of the k's from `first` on, in fp32.
Values product_over(Library& library, const GemmCase& g, const hgemm_args_t& whole, int64_t first,
                    int64_t count, hgemm_mode_t mode)
{
    const InMode in_mode(library, mode);
    const auto elements = static_cast<size_t>(g.m * g.n);
    Values values(elements, NAN);
    Block d(library.memory(), elements * sizeof(float));
    library.memory().copy_in(d.get<float>(), values.data(), elements * sizeof(float));
    hgemm_args_t args = whole;
    args.k = count;
    args.a = static_cast<const uint16_t*>(whole.a) + first * (g.a_by_rows() ? 1 : whole.lda);
    args.b = static_cast<const uint16_t*>(whole.b) + first * (g.b_by_rows() ? whole.ldb : 1);
    args.d = d.get<float>();
    args.ldd = g.d_by_rows() ? g.n : g.m;
    args.type_d = HGEMM_F32;
    EXPECT_EQ(library.run(args), HGEMM_STATUS_SUCCESS) << library.story();
    library.memory().copy_out(values.data(), d.get<float>(), elements * sizeof(float));
    return values;
}

// Products of `count` equal parts of k, added up pairwise.
Values add_parts(Library& library, const GemmCase& g, const hgemm_args_t& whole, int64_t count,
                 hgemm_mode_t mode)
{
    std::vector<Values> parts;
    const int64_t k = g.k / count;
    for (int64_t i = 0; i < count; ++i)
        parts.push_back(product_over(library, g, whole, i * k, k, mode));
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
        for (size_t i = 0; i < parts.size() / 2; ++i) {
            Values sum = parts[2 * i];
            for (size_t e = 0; e < sum.size(); ++e)
                sum[e] += parts[2 * i + 1][e];
            parts[i] = std::move(sum);
        }
    return parts[0];
}

GemmCase bits_case(unsigned form)
{
    GemmCase g;
    g.layout = form & 1 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = form & 2 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.transb = form & 4 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.type_ab = halves[form / 2 % 2];
    g.type_c = g.type_d = HGEMM_F32;
    g.m = form % 3 == 0 ? 1 : 37;
    g.n = 24;
    g.k = form % 4 == 3 ? 5120 : 2048;  // leaves of 640 and 512
    g.alpha = form & 1 ? 1.0f : 0.75f;
    g.aligned = form >= 8;
    g.data = Data::Wide;
    g.seed = form + 1;
    return g;
}

void expect_bits(Library& library, const GemmCase& g)
{
    Trial trial(g, library.memory());
    trial.upload();
    const int64_t leaves = count_leaves(g.k);
    const Values wanted = add_parts(library, g, trial.args(), leaves, HGEMM_MODE_BATCH_INVARIANT);
    const auto tree = [&] { return product_over(library, g, trial.args(), 0, g.k, HGEMM_MODE_TREE); };
    EXPECT_EQ(tree(), wanted) << g.print();
    EXPECT_EQ(add_parts(library, g, trial.args(), 2, HGEMM_MODE_TREE), wanted) << g.print();
    EXPECT_EQ(add_parts(library, g, trial.args(), 4, HGEMM_MODE_TREE), wanted) << g.print();
}

// Some rows at a time: D has more than a workspace holds. The products' operands are aligned, since kernels
// that copy operands want room for them.
void expect_bits_in_little_room(Library& library)
{
    GemmCase g = bits_case(15);
    g.k = 2048;
    g.transa = HGEMM_NO_TRANS;
    Trial trial(g, library.memory());
    trial.upload();
    const auto tree = [&] { return product_over(library, g, trial.args(), 0, g.k, HGEMM_MODE_TREE); };
    const Values wanted = tree();
    const InMode in_mode(library, HGEMM_MODE_TREE);
    size_t bytes = 0;
    ASSERT_EQ(hgemm_workspace_size(library.handle(), &trial.args(), &bytes), HGEMM_STATUS_SUCCESS);
    // As much as it says; room for some blocks; for the smallest.
    const size_t element = static_cast<size_t>(count_leaves(g.k)) * sizeof(float);
    const size_t products = bytes - (static_cast<size_t>(g.m * g.n) * element + 255) / 256 * 256;
    for (const size_t elements : {size_t{300}, size_t{64}}) {
        const WithWorkspace workspace(library, (products + elements * element + 255) / 256 * 256);
        EXPECT_EQ(tree(), wanted) << elements << ": " << library.explain(trial.args());
    }
    const WithWorkspace workspace(library, (bytes + 255) / 256 * 256);
    EXPECT_EQ(tree(), wanted) << bytes << " bytes: " << library.explain(trial.args());
}

// Fills what `g` leaves open and judges the result by the reference.
void expect_right_in_tree(Library& library, const GemmCase& g)
{
    Trial trial(g, library.memory());
    trial.upload();
    const InMode in_mode(library, HGEMM_MODE_TREE);
    ASSERT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << g.print() << ": " << library.story();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "") << g.print();
}

GemmCase results_case(hgemm_type_t type)
{
    GemmCase g;
    g.layout = HGEMM_ROW_MAJOR;
    g.transb = HGEMM_TRANS;
    g.type_ab = g.type_c = g.type_d = type;
    g.m = 19;
    g.n = 40;
    g.k = 1024;
    g.data = Data::Normal;
    return g;
}

}  // namespace

void check_tree_bits(Library& library)
{
    for (unsigned form = 0; form < 16; ++form)
        if (thinning() <= 1 || form % 3 == 0)
            expect_bits(library, bits_case(form));
    expect_bits_in_little_room(library);
}

void check_tree_results(Library& library)
{
    for (const hgemm_type_t type : halves) {
        GemmCase g = results_case(type);
        g.beta = -1;
        g.bias = type == HGEMM_F16 ? HGEMM_BIAS_M : HGEMM_BIAS_N;
        g.activation = HGEMM_ACTIVATION_SILU;
        g.aux = true;
        expect_right_in_tree(library, g);
        g.layout = HGEMM_COL_MAJOR;
        g.in_place = false;
        g.type_c = g.type_d = HGEMM_F32;
        g.device_scalars = library.memory().on_device();
        g.data = Data::Wide;
        expect_right_in_tree(library, g);
        g = results_case(type);
        g.batch = Batch::Strided;
        g.batch_count = 7;
        g.m = 3;
        g.beta = 0.5f;
        g.bias = HGEMM_BIAS_N;
        g.bias_step = 1;
        expect_right_in_tree(library, g);
        g.batch_count = 2;
        g.k = 4096;
        expect_right_in_tree(library, g);
        // A matrix times a vector; k that is not halved; k = 0; alpha = 0 in memory.
        g = results_case(type);
        g.n = 1;
        expect_right_in_tree(library, g);
        g.k = 1032;
        expect_right_in_tree(library, g);
        g.k = 0;
        g.beta = 1;
        g.bias = HGEMM_BIAS_N;
        expect_right_in_tree(library, g);
        g = results_case(type);
        g.alpha = 0;
        g.beta = 1;
        g.device_scalars = library.memory().on_device();
        expect_right_in_tree(library, g);
    }
}

// A batch of pointer arrays has the bits of one with strides, also where D is cut into blocks.
void check_tree_arrays(Library& library)
{
    size_t bytes = size_t{1} << 20;  // then the least that suffices
    for (const bool ample : {true, false}) {
        const WithWorkspace workspace(library, bytes);
        GemmCase g = results_case(HGEMM_BF16);
        g.batch_count = 3;
        g.beta = -0.5f;
        g.bias = HGEMM_BIAS_N;
        g.a.gap = g.d.gap = 1;
        g.batch = Batch::Strided;
        Trial strided(g, library.memory());
        g.batch = Batch::Arrays;
        Trial arrays(g, library.memory());
        // A pointer array has A backwards, and C and D beginning at the second one (Trial::slot).
        const int64_t count = g.batch_count;
        strided.fill_a(
            [=, a = Trial::data_a(g)](int64_t z, int64_t i, int64_t p) { return a(count - 1 - z, i, p); });
        strided.fill_c([=, c = Trial::data_c(g)](int64_t z, int64_t i, int64_t j) {
            return c((z + 1) % count, i, j);
        });
        const InMode in_mode(library, HGEMM_MODE_TREE);
        for (Trial* const trial : {&strided, &arrays}) {
            trial->upload();
            ASSERT_EQ(library.run(trial->args()), HGEMM_STATUS_SUCCESS) << library.story();
            trial->download();
            EXPECT_EQ(trial->judge(library.arithmetic()).message, "") << library.explain(trial->args());
        }
        for (int64_t z = 0; z < g.batch_count; ++z)
            for (int64_t i = 0; i < g.m; ++i)
                for (int64_t j = 0; j < g.n; ++j)
                    ASSERT_EQ(arrays.result(z, i, j), strided.result(z, i, j)) << bytes;
        if (ample) {
            const WithWorkspace none(library, 256);
            EXPECT_EQ(hgemm_workspace_size(library.handle(), &arrays.args(), &bytes), HGEMM_STATUS_SUCCESS)
                << hgemm_last_error();
        }
    }
}

void check_long_k(Library& library)
{
    GemmCase g = results_case(HGEMM_BF16);
    g.m = g.n = 16;
    g.k = 32768;
    g.beta = 1;
    const auto is_cut = [&](const GemmCase& asked) {
        const Trial trial(asked, library.memory());
        return library.explain(trial.args()).find("tree of 32 leaves") != std::string::npos;
    };
    const bool cuts = std::string(hgemm_backend(library.handle())) == "sm90";
    EXPECT_EQ(is_cut(g), cuts);
    for (const hgemm_layout_t layout : {HGEMM_ROW_MAJOR, HGEMM_COL_MAJOR}) {
        g.layout = layout;
        Trial trial(g, library.memory());
        trial.upload();
        ASSERT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << g.print() << ": " << library.story();
        trial.download();
        EXPECT_EQ(trial.judge(library.arithmetic()).message, "") << g.print();
    }
    GemmCase other = g;
    other.k -= 64;
    EXPECT_FALSE(is_cut(other)) << "k is not halved often enough";
    other = g;
    other.m = 512;
    EXPECT_FALSE(is_cut(other)) << "D is large";
    const WithWorkspace workspace(library, 65536);
    EXPECT_FALSE(is_cut(g)) << "there is little workspace";
}

void check_tree_refusals(Library& library)
{
    GemmCase g = results_case(HGEMM_F16);
    g.a.gap = 1;  // so that no kernel of a backend's own adds up the leaves
    {
        const WithWorkspace workspace(library, 256);
        const InMode in_mode(library, HGEMM_MODE_TREE);
        expect_refused(library, g, HGEMM_STATUS_WORKSPACE_TOO_SMALL, "in tree mode, has 256");
    }
    {
        // What is needed is told all the same, and suffices.
        size_t bytes = 0;
        Trial trial(g, library.memory());
        trial.upload();
        {
            const WithWorkspace workspace(library, 256);
            const InMode in_mode(library, HGEMM_MODE_TREE);
            EXPECT_EQ(hgemm_workspace_size(library.handle(), &trial.args(), &bytes), HGEMM_STATUS_SUCCESS)
                << hgemm_last_error();
            EXPECT_NE(library.explain(trial.args()).find("tree of 2 leaves"), std::string::npos);
        }
        EXPECT_GT(bytes, 256u);
        const WithWorkspace workspace(library, bytes);
        const InMode in_mode(library, HGEMM_MODE_TREE);
        EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    }
}

}  // namespace hg::test
