// The search for the baseline mma-sync, on a stand-in for cuBLASLt whose choices are known.
#include "src/tools/bench/autotune.hpp"
#include "src/tools/bench/mma_sync.hpp"
#include "src/tools/bench/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hg::bench {
namespace {

class MmaSyncSearch : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(lt_) << why_; }
    MmaSync search(const Product& product)
    {
        return mma_sync_candidates(lt_.get(), 90, product, arena_.operands(product, 2));
    }

    test::HostMemory memory_;
    Arena arena_{memory_, HGEMM_F16};
    std::string why_;
    std::unique_ptr<CublasLt> lt_ = CublasLt::load(FAKE_CUBLAS, memory_, nullptr, &why_);
};

Product product_of(int64_t offset) { return {6, 8, 4, HGEMM_F16, "tn", offset}; }

TEST_F(MmaSyncSearch, visits_every_configuration_that_is_accepted)
{
    std::set<std::string> wanted = {"id23/tile=128x64/stages=any/split=1/swizzle=0"};
    for (const std::string tile : {"64x64", "128x64", "128x128"})
        for (const char* stages : {"32x5", "32x6"})
            for (const int split : {1, 2, 3, 4, 6, 8, 12, 16})
                for (const int swizzle : {0, 1})
                    if (!(tile == "128x128" && split > 4) && !(tile == "64x64" && split >= 12))
                        wanted.insert("id21/tile=" + tile + "/stages=" + stages + "/split=" +
                                      std::to_string(split) + "/swizzle=" + std::to_string(swizzle));
    const MmaSync found = search(product_of(0));
    ASSERT_TRUE(found.algorithms) << found.why_none;
    EXPECT_EQ(found.why_none, "");
    EXPECT_EQ(found.tried, "21:72 23:1 24:absent");
    std::set<std::string> names;
    for (size_t i = 0; i < found.algorithms->count(); ++i)
        names.insert(found.algorithms->configuration(i).text());
    EXPECT_EQ(names, wanted);
    EXPECT_EQ(found.algorithms->count(), wanted.size());
}

TEST_F(MmaSyncSearch, every_configuration_computes_the_product)
{
    for (const int64_t offset : {0, 8}) {
        const Product p = product_of(offset);
        const MmaSync found = search(p);
        const Operands operands = arena_.operands(p, 2)[1];
        const Expectation expectation(arena_.numbers(), p, operands, arithmetic_of(0));
        for (size_t i = 0; i < found.algorithms->count(); ++i) {
            bool ran = false;
            const Verdict verdict =
                expectation.check(memory_, 1, [&] { ran = found.algorithms->multiply(i, operands); });
            EXPECT_TRUE(ran && verdict.right()) << found.algorithms->configuration(i).text();
        }
    }
}

TEST_F(MmaSyncSearch, leaves_out_what_the_operands_are_not_aligned_for)
{
    EXPECT_EQ(search(product_of(4)).tried, "21:0 23:1 24:absent");
}

TEST_F(MmaSyncSearch, says_why_there_is_none)
{
    const Product p = product_of(0);
    const auto sets = arena_.operands(p, 1);
    const auto expect = [&](const CublasLt* lt, int cc, const char* wanted) {
        const MmaSync found = mma_sync_candidates(lt, cc, p, sets);
        EXPECT_NE(found.why_none.find(wanted), std::string::npos) << found.why_none;
        EXPECT_FALSE(found.algorithms);
    };
    expect(lt_.get(), 80, "known on compute capability 9.0 alone, this GPU has 8.0");
    expect(nullptr, 90, "no cuBLASLt");
}

TEST_F(MmaSyncSearch, says_so_where_no_configuration_is_accepted)
{
    Product p = product_of(0);
    p.k = 131;  // the stand-in's algorithms for configuration want even sizes
    const MmaSync found = search(p);
    EXPECT_EQ(found.why_none, "cuBLASLt accepts no configuration of the algorithms, 21:0 23:0 24:absent");
    EXPECT_EQ(found.fastest, -1);
}

TEST(Shortlist, is_of_the_fastest_that_run_and_are_right)
{
    const std::vector<double> times = {9, unknown, 2, 7, 1, 5, 3};
    std::vector<size_t> timed, checked;
    const auto time_us = [&](size_t which) {
        timed.push_back(which);
        return times[which];
    };
    const auto is_right = [&](size_t which) {
        checked.push_back(which);
        return which != 4;
    };
    EXPECT_EQ(shortlist(times.size(), 3, time_us, is_right), (std::vector<size_t>{2, 6, 5}));
    EXPECT_EQ(timed, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(checked, (std::vector<size_t>{4, 2, 6, 5}));
    EXPECT_EQ(shortlist(times.size(), 9, time_us, [](size_t) { return true; }),
              (std::vector<size_t>{4, 2, 6, 5, 3, 0}));
    EXPECT_TRUE(shortlist(times.size(), 3, time_us, [](size_t) { return false; }).empty());
}

}  // namespace
}  // namespace hg::bench
