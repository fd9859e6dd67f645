// Products end while other kernels hold the other SMs and wait, perhaps for these products.
#include "../conformance.hpp"
#include "../grouped_rules.hpp"
#include "gpu.hpp"
#include "held_sms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace hg::test {
namespace {

// What a product on a single SM takes, many times over.
constexpr double long_enough = 8, not_at_all = 0.5;  // seconds

class DeviceProgress : public testing::Test {
protected:
    void SetUp() override
    {
        NEEDS_GPU();
        if (const std::string why = HeldSms::unavailable(); !why.empty())
            GTEST_SKIP() << why;
    }
};

// The CTAs of a cluster that a plan's line names.
int cluster_of(const std::string& plan)
{
    const std::string name = " cluster=";
    const size_t at = plan.find(name);
    return at == std::string::npos ? 1 : std::max(1, std::atoi(plan.c_str() + at + name.size()));
}

// A product that was right once beside nothing, so that its kernels are loaded, and then runs beside
// others.
class Product {
public:
    virtual ~Product() = default;
    virtual hgemm_status_t start(Library& library) = 0;
    virtual void reset() = 0;  // D as before
    virtual void expect_right(Library& library) = 0;
    virtual std::string plan(Library& library) = 0;
};

// The first result is judged, unless that takes the CPU long; later ones must have the same bits.
class Single : public Product {
public:
    Single(const GemmCase& g, Library& library) : case_(g), trial_(g, library.memory()) {}
    hgemm_status_t start(Library& library) override { return library.start(trial_.args()); }
    void reset() override { trial_.upload(); }
    void expect_right(Library& library) override
    {
        trial_.download();
        const std::vector<double> result = trial_.results(case_.m);
        if (!first_.empty()) {
            EXPECT_TRUE(result == first_) << "other bits than beside nothing";
            return;
        }
        first_ = result;
        const double products = static_cast<double>(case_.batch_count) * static_cast<double>(case_.m) *
                                static_cast<double>(case_.n) * static_cast<double>(case_.k);
        if (products < 1e8) {
            EXPECT_EQ(trial_.judge(library.arithmetic()).message, "");
        }
    }
    std::string plan(Library& library) override { return library.explain(trial_.args()); }

private:
    GemmCase case_;
    Trial trial_;
    std::vector<double> first_;
};

class Groups : public Product {
public:
    Groups(const GroupedCase& g, Library& library) : rows_(g.rows), trial_(library.memory(), g) {}
    hgemm_status_t start(Library& library) override { return trial_.start(library); }
    void reset() override { trial_.set_rows(rows_); }
    void expect_right(Library&) override { trial_.expect_right(); }
    // hgemm_explain() knows no groups; the widest clusters of their kernels are pairs.
    std::string plan(Library&) override { return "groups cluster=2"; }

private:
    std::vector<int64_t> rows_;
    GroupedTrial trial_;
};

// Runs beside nothing. False if the library does not serve the product.
bool runs(Product& product, Library& library)
{
    product.reset();
    const hgemm_status_t status = library.wait(product.start(library));
    if (status == HGEMM_STATUS_NOT_SUPPORTED)
        return false;
    EXPECT_EQ(status, HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    product.expect_right(library);
    return true;
}

// Runs on the free SMs alone.
void expect_end(Product& product, Library& library, const Sms& free, Priority priority)
{
    product.reset();
    const PriorityStream stream(priority);
    ASSERT_EQ(hgemm_set_stream(library.handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    {
        HeldSms held(free, priority == Priority::Lowest ? Priority::Highest : Priority::Lowest);
        EXPECT_EQ(product.start(library), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_TRUE(stream.ends_within(long_enough))
            << "ends only after the kernel that holds the other SMs; free are " << free.size() << ": "
            << product.plan(library);
    }
    Cuda::get()->wait(stream);
    product.expect_right(library);
    ASSERT_EQ(hgemm_set_stream(library.handle(), nullptr), HGEMM_STATUS_SUCCESS);
}

constexpr Priority priorities[] = {Priority::Lowest, Priority::Highest};

// A cluster runs where as many SMs are free as it has CTAs, in one GPC, and waits where one is missing. Is
// it enough for a pair that they are of two TPCs?
TEST_F(DeviceProgress, clusters_need_their_SMs)
{
    if (Cuda::get()->cc() < 90)
        GTEST_SKIP() << "has no clusters";
    for (const int ctas : {2, 4, 8}) {
        Sms free = ProbeCluster::places(ctas);
        ProbeCluster cluster(ctas), waiting(ctas);
        const PriorityStream stream(Priority::Highest);
        {
            const HeldSms held(free);
            cluster.start(stream);
            EXPECT_TRUE(stream.ends_within(long_enough)) << ctas << " CTAs";
        }
        free.pop_back();
        {
            const HeldSms held(free);
            waiting.start(stream);
            EXPECT_FALSE(stream.ends_within(not_at_all)) << ctas << " CTAs on " << free.size() << " SMs";
        }
        Cuda::get()->wait(stream);
    }
    const Sms places = ProbeCluster::places(4);
    const auto other = std::find_if(places.begin(), places.end(),
                                    [&](uint32_t sm) { return sm / 2 != places.front() / 2; });
    ASSERT_NE(other, places.end());
    ProbeCluster pair(2);
    const PriorityStream stream(Priority::Highest);
    {
        const HeldSms held({places.front(), *other});
        pair.start(stream);
        std::printf("two CTAs of a cluster run on SMs %u and %u of one GPC, of two TPCs: %s\n",
                    places.front(), *other, stream.ends_within(not_at_all) ? "yes" : "no");
    }
    Cuda::get()->wait(stream);
}

GemmCase case_of(int64_t m, int64_t n, int64_t k)
{
    GemmCase g;
    g.layout = HGEMM_ROW_MAJOR;
    g.transb = HGEMM_TRANS;
    g.m = m, g.n = n, g.k = k;
    g.aligned = true;
    return g;
}

GemmCase unaligned(int64_t m, int64_t n, int64_t k)
{
    GemmCase g = case_of(m, n, k);
    g.aligned = false;
    g.a.gap = g.b.gap = 1;
    g.b.shift = 3;
    return g;
}

GemmCase batch_of(int64_t count, GemmCase g)
{
    g.batch = Batch::Strided;
    g.batch_count = count;
    return g;
}

// Sums of slices in a cluster and in global memory, stream-K, tiles from a counter, copies of operands,
// batches, and columns. The first is that of 16384 columns.
std::vector<GemmCase> products()
{
    return {case_of(512, 16384, 512), case_of(512, 512, 16384),  case_of(64, 512, 8192),
            case_of(16, 4096, 4096),  case_of(2048, 4096, 2048), unaligned(1023, 1025, 519),
            unaligned(8, 4097, 4099), case_of(4096, 1, 4096),    batch_of(8, case_of(200, 136, 264))};
}

GroupedCase groups_of(hgemm_grouping_t grouping, int64_t n, int64_t k)
{
    GroupedCase g;
    g.grouping = grouping;
    g.rows = {130, 0, 264, 5, 200, 128};
    g.n = n, g.k = k;
    return g;
}

std::vector<std::unique_ptr<Product>> all_products(Library& library)
{
    std::vector<std::unique_ptr<Product>> all;
    for (GemmCase g : products()) {
        g.type_ab = g.type_c = g.type_d = halves[all.size() % 2];
        all.push_back(std::make_unique<Single>(g, library));
    }
    for (const hgemm_grouping_t grouping : {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED})
        for (const int64_t n : {264, 2048})
            all.push_back(std::make_unique<Groups>(groups_of(grouping, n, 2056), library));
    return all;
}

// The library's own choices, with as many free SMs as one cluster needs, in one GPC.
TEST_F(DeviceProgress, products_end)
{
    Library library(Cuda::get());
    ASSERT_TRUE(library.created()) << library.story();
    for (const auto& product : all_products(library)) {
        ASSERT_TRUE(runs(*product, library)) << hgemm_last_error();
        const std::string plan = product->plan(library);
        SCOPED_TRACE(plan);
        std::printf("%s\n", plan.c_str());
        for (const Priority priority : priorities)
            expect_end(*product, library, ProbeCluster::places(cluster_of(plan)), priority);
    }
}

// So many SMs, as far from each other as they can be: one of each pair, and only then the others.
Sms scattered(int count)
{
    const int pairs = Cuda::get()->sm_count() / 2, first = std::min(count, pairs), second = count - first;
    Sms sms;
    for (int i = 0; i < first; ++i)
        sms.push_back(static_cast<uint32_t>(2 * (i * pairs / first)));
    for (int i = 0; i < second; ++i)
        sms.push_back(static_cast<uint32_t>(2 * (i * pairs / second) + 1));
    return sms;
}

// With hgemm_set_sm_count() so many free SMs are enough wherever they are.
TEST_F(DeviceProgress, products_end_on_the_SMs_that_are_left)
{
    Library library(Cuda::get());
    ASSERT_TRUE(library.created()) << library.story();
    const int sms = Cuda::get()->sm_count();
    for (const int count : {1, 2, 3, 8, 16, sms / 2, sms / 2 + 1, sms - 20}) {
        ASSERT_EQ(hgemm_set_sm_count(library.handle(), count), HGEMM_STATUS_SUCCESS);
        for (const auto& product : all_products(library)) {
            ASSERT_TRUE(runs(*product, library)) << hgemm_last_error();
            SCOPED_TRACE(testing::Message() << count << " SMs");
            expect_end(*product, library, scattered(count), priorities[count % 2]);
            if (HasFailure())
                break;  // each takes long_enough
        }
    }
}

// May the kernel's tiles be shared so?
bool may_have(const std::string& kernel, const std::string& options)
{
    const bool persistent = kernel.starts_with("sm90_coop") || kernel.starts_with("sm90_pingpong");
    return options.empty() || (options == "/stream_k=1") == persistent;
}

// A kernel with what may follow its name in HGEMM_KERNEL, if it serves a product so.
bool expect_end_of_kernel(const std::string& name, const std::string& options)
{
    Library library(Cuda::get(), "", name + options);
    if (!library.created())
        return false;
    SCOPED_TRACE(name + options);
    GemmCase g = options.starts_with("/split") ? case_of(100, 136, 2056) : case_of(264, 392, 328);
    if (wants_rows_side_by_side(name))
        g.transa = HGEMM_TRANS, g.n = 4;
    for (const int64_t n : {g.n, int64_t{1}}) {
        g.n = n;
        Single product(g, library);
        const std::string plan = product.plan(library);
        if (plan.find(options.empty() ? name : options.substr(1)) == std::string::npos ||
            !runs(product, library))
            continue;
        for (const Priority priority : priorities)
            expect_end(product, library, ProbeCluster::places(cluster_of(plan)), priority);
        std::printf("%-44s free SMs %d\n", (name + options).c_str(), cluster_of(plan));
        return true;
    }
    return false;
}

TEST_F(DeviceProgress, each_kernel)
{
    int ended = 0;
    for (const std::string& name : kernel_names())
        for (const std::string options : {"", "/stream_k=1", "/split=2", "/split=8", "/split=16"})
            ended += may_have(name, options) && expect_end_of_kernel(name, options);
    EXPECT_GT(ended, 0) << "no kernel serves any product";
}

TEST_F(DeviceProgress, each_kernel_for_groups)
{
    std::vector<std::string> names = grouped_kernel_names();
    for (const std::string& name : kernel_names())
        if (name.starts_with("sm80_"))
            names.push_back(name);
    int ended = 0;
    for (const std::string& name : names) {
        Library library(Cuda::get(), "", name);
        if (!library.created())
            continue;
        SCOPED_TRACE(name);
        const int cluster = name.ends_with("_1x2") ? 2 : 1;
        for (const hgemm_grouping_t grouping : {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED}) {
            Groups product(groups_of(grouping, 2048, 2056), library);
            if (!runs(product, library))
                continue;
            for (const Priority priority : priorities)
                expect_end(product, library, ProbeCluster::places(cluster), priority);
            std::printf("%-44s free SMs %d\n", name.c_str(), cluster);
            ++ended;
        }
    }
    EXPECT_GT(ended, 0) << "no kernel serves any groups";
}

}  // namespace
}  // namespace hg::test
