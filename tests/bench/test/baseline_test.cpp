// The baselines' arguments, on libraries that take them at their word; and the check that judges results.
#include "src/tools/bench/check.hpp"
#include "src/tools/bench/cublas.hpp"
#include "src/tools/bench/cublaslt.hpp"

#include <gtest/gtest.h>

namespace hg::bench {
namespace {

Expectation expectation_of(Arena& arena, const Product& product, const Operands& operands)
{
    return {arena.numbers(), product, operands, arithmetic_of(0)};
}

std::vector<Product> products()
{
    std::vector<Product> list;
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (const char* layout : {"tn", "nn", "nt", "tt"}) {
            list.push_back({24, 40, 16, type, layout});
            list.push_back({1, 33, 65, type, layout});
            list.push_back({7, 5, 9, type, layout, 1, 3});
            list.push_back({5, 6, 7, type, layout, 0, 2, "", {}, 3});
        }
    return list;
}

class Baselines : public testing::Test {
protected:
    Arena& arena_of(hgemm_type_t type) { return type == HGEMM_F16 ? f16_ : bf16_; }

    test::HostMemory memory_;
    Arena f16_{memory_, HGEMM_F16}, bf16_{memory_, HGEMM_BF16};
    std::string why_;
};

TEST_F(Baselines, cublas_multiplies_every_layout)
{
    const auto cublas = Cublas::load(FAKE_CUBLAS, memory_, nullptr, &why_);
    ASSERT_TRUE(cublas) << why_;
    EXPECT_EQ(cublas->version(), "990100");
    for (const Product& p : products()) {
        Arena& arena = arena_of(p.type);
        const Operands operands = arena.operands(p, 2)[1];
        const Verdict verdict =
            expectation_of(arena, p, operands).check(memory_, 1, [&] { cublas->multiply(p, operands); });
        EXPECT_TRUE(verdict.right()) << p.shape() << " " << p.layout << " " << verdict.error;
    }
}

TEST_F(Baselines, cublaslt_multiplies_every_layout_with_every_algorithm)
{
    const auto lt = CublasLt::load(FAKE_CUBLAS, memory_, nullptr, &why_);
    ASSERT_TRUE(lt) << why_;
    EXPECT_EQ(lt->version(), "990200");
    for (const Product& p : products()) {
        Arena& arena = arena_of(p.type);
        const std::vector<Operands> sets = arena.operands(p, 2);
        const auto algorithms = lt->algorithms(p, sets, 16);
        // For pointers of odd elements only what needs no more than two bytes of alignment.
        EXPECT_EQ(algorithms->count(), p.offset == 0 ? 8u : 1u) << p.shape();
        const Expectation expectation = expectation_of(arena, p, sets[1]);
        for (size_t i = 0; i < algorithms->count(); ++i) {
            bool ran = false;
            const Verdict verdict =
                expectation.check(memory_, 1, [&] { ran = algorithms->multiply(i, sets[1]); });
            EXPECT_TRUE(ran && verdict.right()) << p.shape() << " " << p.layout << " " << verdict.error;
        }
    }
}

TEST_F(Baselines, outputs_are_those_that_were_asked_for)
{
    const auto cublas = Cublas::load(FAKE_CUBLAS, memory_, nullptr, &why_);
    const auto lt = CublasLt::load(FAKE_CUBLAS, memory_, nullptr, &why_);
    ASSERT_TRUE(cublas && lt) << why_;
    for (const char* output : {"f32", "beta", "f32+beta", "bias", "relu", "gelu", "bias+relu",
                               "beta+bias+gelu", "gelu+aux", "f32+beta+bias+gelu+aux"})
        for (Product p : products()) {
            p.output = Output(output);
            Arena& arena = arena_of(p.type);
            const Operands operands = arena.operands(p, 2)[1];
            const Expectation expectation = expectation_of(arena, p, operands);
            const auto expect_right = [&](const std::function<void()>& multiply, Tanh tanh) {
                const Verdict verdict = expectation.check(memory_, 1, multiply, tanh);
                EXPECT_TRUE(verdict.right()) << p.shape() << " " << p.layout << " " << verdict.error;
            };
            if (Cublas::serves(p))
                expect_right([&] { cublas->multiply(p, operands); }, Tanh::Exact);
            if (!CublasLt::serves(p))
                continue;
            const auto algorithms = lt->algorithms(p, {operands}, 16);
            ASSERT_GT(algorithms->count(), 0u) << p.shape();
            expect_right([&] { algorithms->multiply(0, operands); }, Tanh::Approximate);
        }
}

TEST_F(Baselines, only_theirs_may_approximate_tanh)
{
    const auto lt = CublasLt::load(FAKE_CUBLAS, memory_, nullptr, &why_);
    ASSERT_TRUE(lt) << why_;
    const Product p{24, 40, 16, HGEMM_BF16, "tn", 0, 0, "", Output("f32+gelu")};
    const Operands operands = bf16_.operands(p, 1)[0];
    const Expectation expectation = expectation_of(bf16_, p, operands);
    const auto algorithms = lt->algorithms(p, {operands}, 16);
    const auto multiply = [&] { algorithms->multiply(0, operands); };
    EXPECT_TRUE(expectation.check(memory_, 1, multiply, Tanh::Approximate).right());
    EXPECT_FALSE(expectation.check(memory_, 1, multiply).right());
}

TEST(BaselineOutputs, are_what_the_libraries_offer)
{
    const auto product = [](const char* output, int64_t n = 16) {
        return Product{16, n, 16, HGEMM_F16, "tn", 0, 0, "", Output(output)};
    };
    for (const char* output : {"plain", "f32", "beta", "f32+beta"})
        EXPECT_TRUE(Cublas::serves(product(output)) && CublasLt::serves(product(output))) << output;
    for (const char* output : {"bias", "relu", "bias+gelu", "gelu+aux"})
        EXPECT_TRUE(!Cublas::serves(product(output)) && CublasLt::serves(product(output))) << output;
    for (const char* output : {"silu", "aux", "relu+aux", "bias+silu+aux"})
        EXPECT_FALSE(Cublas::serves(product(output)) || CublasLt::serves(product(output))) << output;
    EXPECT_FALSE(CublasLt::serves(product("gelu+aux", 20)));
    EXPECT_FALSE(Cublas::serves(product("plain", int64_t{1} << 31)));
}

TEST_F(Baselines, no_more_algorithms_than_wanted)
{
    const auto lt = CublasLt::load(FAKE_CUBLAS, memory_, nullptr, &why_);
    ASSERT_TRUE(lt) << why_;
    const Product p{16, 16, 16, HGEMM_F16, "tn"};
    Arena& arena = arena_of(p.type);
    EXPECT_EQ(lt->algorithms(p, arena.operands(p, 1), 4)->count(), 2u);  // two of the four do not hold
}

TEST_F(Baselines, absent_ones_say_so)
{
    EXPECT_FALSE(Cublas::load("/nowhere/libcublas.so", memory_, nullptr, &why_));
    EXPECT_NE(why_.find("/nowhere/libcublas.so"), std::string::npos) << why_;
    EXPECT_FALSE(CublasLt::load("/nowhere/libcublasLt.so", memory_, nullptr, &why_));
    EXPECT_NE(why_.find("/nowhere/libcublasLt.so"), std::string::npos) << why_;
}

TEST_F(Baselines, check_sees_wrong_missing_and_stray_elements)
{
    const auto cublas = Cublas::load(FAKE_CUBLAS, memory_, nullptr, &why_);
    ASSERT_TRUE(cublas) << why_;
    const Product p{20, 30, 40, HGEMM_F16, "tn", 0, 2};
    Arena& arena = arena_of(p.type);
    const Operands operands = arena.operands(p, 1)[0];
    const Expectation expectation = expectation_of(arena, p, operands);
    const auto spoiled = [&](int64_t place, uint16_t bits) {
        return expectation.check(memory_, 1, [&] {
            cublas->multiply(p, operands);
            static_cast<uint16_t*>(operands.d)[place] = bits;
        });
    };
    const uint16_t nan = 0xffff, seven = 0x4700;
    EXPECT_TRUE(spoiled(30, nan).right());               // the gap behind the first line, as it was
    EXPECT_FALSE(spoiled(30, 0).right());                // ... written
    EXPECT_FALSE(spoiled(29, nan).right());              // not written
    EXPECT_FALSE(spoiled(19 * 32 + 29, seven).right());  // the last element
    EXPECT_FALSE(spoiled(-1, 0).right());                // before D
    EXPECT_FALSE(spoiled(p.d_span() + 5, 0).right());    // behind it
}

TEST(RotatingSets, exceed_the_cache_and_fit)
{
    const Product small{128, 128, 128, HGEMM_F16, "tn"}, mid{2048, 2048, 2048, HGEMM_F16, "tn"};
    EXPECT_EQ(rotating_sets(small, 50 << 20, size_t{1} << 40, 32), 32);
    EXPECT_EQ(rotating_sets(mid, 50 << 20, size_t{1} << 40, 32), 8);  // 24 MiB each, 180 MB wanted
    EXPECT_EQ(rotating_sets(mid, 50 << 20, size_t{1} << 20, 32), 1);  // nothing fits: one must
}

}  // namespace
}  // namespace hg::bench
