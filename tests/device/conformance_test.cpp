// The conformance suite on the GPU: each backend that the device has, then each kernel forced in turn.
#include "../conformance.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace hg::test {
namespace {

void report(const Suite& suite)
{
    std::printf("%s\n", suite.summary().c_str());
    for (const std::string& failure : suite.failures())
        ADD_FAILURE() << failure;
}

class DeviceConformance : public testing::TestWithParam<std::tuple<const char*, Family>> {};

TEST_P(DeviceConformance, holds)
{
    const auto& [backend, family] = GetParam();
    NEEDS_BACKEND(backend);
    const auto library = make(backend);
    Suite suite(*library, thinning());
    family.run(suite);
    report(suite);
    EXPECT_TRUE(suite.cases() > 0 || thinning() > 1);
}

INSTANTIATE_TEST_SUITE_P(, DeviceConformance,
                         testing::Combine(testing::ValuesIn(backends),
                                          testing::ValuesIn(families().begin(), families().end())),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param)) + "_" +
                                    std::get<1>(info.param).name;
                         });

// A kernel need not serve every problem, but one that serves none is never tested.
TEST(DeviceKernels, each_one_forced)
{
    NEEDS_GPU();
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name);
        if (!library.created()) {
            std::printf("%-24s not on this device: %s\n", name.c_str(), library.story().c_str());
            continue;
        }
        SCOPED_TRACE(name);
        const Trial trial(GemmCase{}, library.memory());
        EXPECT_NE(library.explain(trial.args()).find(name), std::string::npos)
            << library.explain(trial.args());
        Suite suite(library, 5 * thinning());
        for (const Family& family : families())
            family.run(suite);
        std::printf("%-24s ", name.c_str());
        report(suite);
        EXPECT_GT(suite.cases(), suite.not_applicable()) << "no case reaches this kernel";
    }
}

// From here on nobody cuts k into slices, but for kernels whose warps do.
void keep_k_whole(Library& library, const std::string& kernel)
{
    if (!shares_k_among_warps(kernel)) {
        EXPECT_TRUE(library.set_batch_invariant(true));
    }
}

void check_each_kernel(const std::vector<GemmCase>& cases, bool whole_k = false)
{
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name);
        if (!library.created())
            continue;
        SCOPED_TRACE(name);
        if (whole_k)
            keep_k_whole(library, name);
        Suite suite(library);
        for (const GemmCase& g : cases)
            suite.check(g);
        std::printf("%-24s ", name.c_str());
        report(suite);
        EXPECT_GT(suite.cases(), suite.not_applicable()) << "no case reaches this kernel";
    }
}

GemmCase aligned_case(int64_t m, int64_t n, int64_t k)
{
    GemmCase g;
    g.m = m;
    g.n = n;
    g.k = k;
    g.aligned = true;
    return g;
}

// Tiles in every number from one to dozens, odd ones too, for clusters that need two or more and persistent
// CTAs that take several; m and n below half a tile, and just past one.
TEST(DeviceKernels, numbers_of_tiles)
{
    NEEDS_GPU();
    std::vector<GemmCase> cases;
    for (const int64_t m :
         thinning() > 1 ? std::vector<int64_t>{1, 520} : std::vector<int64_t>{1, 120, 300, 520})
        for (const int64_t n : {8, 71, 259, 520}) {
            GemmCase g = aligned_case(m, n, 72);
            const size_t form = cases.size();
            g.transa = form & 1 ? HGEMM_TRANS : HGEMM_NO_TRANS;
            g.transb = form & 2 ? HGEMM_TRANS : HGEMM_NO_TRANS;
            g.layout = form & 4 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
            cases.push_back(g);
        }
    check_each_kernel(cases);
}

// From fewer k tiles than a kernel ends with to more than it has stages, all by one CTA.
TEST(DeviceKernels, each_one_deep)
{
    NEEDS_GPU();
    const std::vector<int64_t> depths =
        thinning() > 1 ? std::vector<int64_t>{72, 584} : std::vector<int64_t>{64, 136, 200, 584, 1032};
    std::vector<GemmCase> cases;
    for (const int64_t k : depths) {
        cases.push_back(aligned_case(136, 104, k));
        cases.back().transa = HGEMM_TRANS;
    }
    // Of operands that lie the other way round, which some kernels want.
    cases.push_back(aligned_case(136, 104, depths.back()));
    cases.back().transb = HGEMM_TRANS;
    check_each_kernel(cases, true);
}

// An alpha on the device that is 0: no operand is read, nothing is multiplied, and D is 0. k in one slice,
// since what some do at the end then waits for others.
TEST(DeviceKernels, each_one_without_operands)
{
    NEEDS_GPU();
    constexpr int64_t m = 136, n = 104, k = 584;
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name);
        if (!library.created())
            continue;
        keep_k_whole(library, name);
        const Block a(library.memory(), 2 * m * k), b(library.memory(), 2 * k * n),
            d(library.memory(), 2 * m * n), alpha(library.memory(), sizeof(float));
        for (const Block* block : {&a, &b, &d})
            library.memory().fill(block->get(), 0xff, block->bytes());
        library.memory().fill(alpha.get(), 0, alpha.bytes());
        hgemm_args_t args;
        hgemm_args_init(&args, sizeof args);
        args.layout = HGEMM_ROW_MAJOR;
        const bool side_by_side = wants_rows_side_by_side(name);
        args.transa = side_by_side ? HGEMM_TRANS : HGEMM_NO_TRANS;
        args.transb = side_by_side ? HGEMM_NO_TRANS : HGEMM_TRANS;
        args.m = m, args.n = n, args.k = k;
        args.alpha_device = alpha.get<float>();
        args.a = a.get(), args.lda = side_by_side ? m : k;
        args.b = b.get(), args.ldb = side_by_side ? n : k;
        args.d = d.get(), args.ldd = n;
        EXPECT_EQ(library.run(args), HGEMM_STATUS_SUCCESS) << name << ": " << library.story();
        std::vector<uint16_t> out(m * n);
        d.copy_out(out.data());
        EXPECT_EQ(out, std::vector<uint16_t>(m * n)) << name;
    }
}

// Kernels that start alone may count their clusters in another order than that of their launch. Halves of k
// make clusters of all kernels that can be split.
TEST(DeviceKernels, alone)
{
    NEEDS_GPU();
    const std::vector<int64_t> widths =
        thinning() > 1 ? std::vector<int64_t>{136} : std::vector<int64_t>{136, 456};
    int kernels = 0;
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name + "/pdl=off/split=2");
        if (!library.created())
            continue;
        SCOPED_TRACE(name);
        Suite suite(library);
        for (const int64_t n : widths) {
            GemmCase g = aligned_case(200, n, 136);
            g.transa = HGEMM_TRANS;
            const Trial trial(g, library.memory());
            const std::string plan = library.explain(trial.args());  // or why the kernel does not serve
            EXPECT_EQ(plan.find(" pdl=off ") != std::string::npos,
                      plan.find("kernel=") != std::string::npos);
            suite.check(g);
        }
        report(suite);
        kernels += suite.cases() > suite.not_applicable();
    }
    if (names_all_kernels()) {
        EXPECT_EQ(kernels > 0, Cuda::get()->cc() / 10 >= 9 && Cuda::get()->cc() / 10 <= 11);
    }
}

// Operands that end with their allocation, at no multiple of what a load takes: an emulated device counts
// bytes.
TEST(DeviceKernels, each_one_reads_operands_alone)
{
    NEEDS_GPU();
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name);
        if (!library.created())
            continue;
        for (const int64_t k : {64, 71, 129, 256})
            for (const bool rows_contiguous : {false, true}) {
                const int64_t m = 37, n = 67, lda = (rows_contiguous ? m : k) + 1,
                              ldb = (rows_contiguous ? n : k) + 1;
                const auto span = [&](int64_t rows, int64_t ld) {
                    return 2 *
                           static_cast<size_t>(rows_contiguous ? (k - 1) * ld + rows : (rows - 1) * ld + k);
                };
                const Block a(library.memory(), span(m, lda)), b(library.memory(), span(n, ldb)),
                    d(library.memory(), static_cast<size_t>(2 * m * n));
                library.memory().fill(a.get(), 0, a.bytes());
                library.memory().fill(b.get(), 0, b.bytes());
                hgemm_args_t args;
                hgemm_args_init(&args, sizeof args);
                args.layout = HGEMM_ROW_MAJOR;
                args.transa = rows_contiguous ? HGEMM_TRANS : HGEMM_NO_TRANS;
                args.transb = rows_contiguous ? HGEMM_NO_TRANS : HGEMM_TRANS;
                args.m = m, args.n = n, args.k = k;
                args.a = a.get(), args.lda = lda;
                args.b = b.get(), args.ldb = ldb;
                args.d = d.get(), args.ldd = n;
                const hgemm_status_t status = library.run(args);
                EXPECT_TRUE(status == HGEMM_STATUS_SUCCESS || status == HGEMM_STATUS_NOT_SUPPORTED)
                    << name << ", k = " << k << (rows_contiguous ? ", rows contiguous: " : ": ")
                    << library.story();
            }
    }
}

// Tiles that several CTAs share, with the sums passed through the workspace.
TEST(DeviceKernels, each_one_streamed)
{
    NEEDS_GPU();
    int streamed = 0;
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name + "/stream_k=1");
        GemmCase g;
        g.m = g.n = 264;
        g.k = 1000;
        const Trial trial(g, library.memory());
        if (!library.created() || library.explain(trial.args()).find(" stream_k=1 ") == std::string::npos)
            continue;
        SCOPED_TRACE(name);
        Suite suite(library, 5 * thinning());
        for (const Family& family : families())
            family.run(suite);
        std::printf("%-24s ", name.c_str());
        report(suite);
        EXPECT_GT(suite.cases(), suite.not_applicable()) << "no case is streamed";
        ++streamed;
    }
    if (names_all_kernels()) {
        EXPECT_EQ(streamed > 0, Cuda::get()->cc() == 90);
    }
}

// Tiles that clusters get one at a time: four waves and more of long ones, on four SMs. Several
// times with one handle, whose count of tiles has to begin anew.
TEST(DeviceKernels, each_one_handed_out)
{
    NEEDS_GPU();
    const bool slow = thinning() > 1;
    GemmCase plain = aligned_case(slow ? 520 : 1288, slow ? 520 : 776, 2056);
    plain.transa = HGEMM_TRANS;
    GemmCase with_c = plain;
    with_c.beta = 0.5f;
    with_c.type_ab = with_c.type_c = HGEMM_BF16;
    with_c.type_d = HGEMM_F32;
    with_c.in_place = false;
    int handed = 0, seen = 0;
    for (const std::string& name : kernel_names()) {
        Library library(Cuda::get(), "", name);
        if (!library.created())
            continue;
        EXPECT_EQ(hgemm_set_sm_count(library.handle(), 4), HGEMM_STATUS_SUCCESS);
        const Trial trial(plain, library.memory());
        if (library.explain(trial.args()).find(" schedule=dynamic ") == std::string::npos)
            continue;
        ++handed;
        if (slow && seen++ % 5 != 0)
            continue;
        SCOPED_TRACE(name);
        Suite suite(library);
        suite.check(plain);
        if (!slow) {
            suite.check(with_c);
            suite.check(plain);
        }
        std::printf("%-24s ", name.c_str());
        report(suite);
        EXPECT_GT(suite.cases(), suite.not_applicable());
    }
    if (names_all_kernels()) {
        EXPECT_EQ(handed > 0, Cuda::get()->cc() == 90);
    }
}

// Is a product of this size given the split that was asked for?
bool splits_some(Library& library, const std::string& asked, int64_t size, bool aligned)
{
    GemmCase g;
    g.m = g.n = size;
    g.k = 1024;
    g.aligned = aligned;
    const Trial trial(g, library.memory());
    return library.explain(trial.args()).find(asked + " ") != std::string::npos;
}

// Sums over slices of k, which small problems are not given otherwise. A kernel's cluster leaves room for
// some, and so do few SMs, for products of one size or the other.
TEST(DeviceKernels, each_split_forced)
{
    NEEDS_GPU();
    int splits = 0;
    for (const std::string& name : kernel_names())
        for (const char* split : {"split=2/swap_ab=0", "split=3/swap_ab=1", "split=5/swap_ab=0",
                                  "split=8/swap_ab=1", "split=11/swap_ab=1", "split=16/swap_ab=0"}) {
            Library library(Cuda::get(), "", name + "/" + split);
            const std::string asked(split, std::strchr(split, '/'));
            const bool aligned = name.starts_with("sm80_");
            if (!library.created() ||
                !(splits_some(library, asked, 100, aligned) || splits_some(library, asked, 264, aligned)))
                continue;
            SCOPED_TRACE(name + "/" + split);
            Suite suite(library, 5 * thinning());
            for (const Family& family : families())
                family.run(suite);
            std::printf("%-40s ", (name + "/" + split).c_str());
            report(suite);
            EXPECT_GT(suite.cases(), suite.not_applicable()) << "no case is split";
            ++splits;
        }
    if (names_all_kernels()) {
        EXPECT_GT(splits, 0);
    }
}

}  // namespace
}  // namespace hg::test
