// Outputs that are more than the product: their text, what they move, and how results are judged.
#include "src/tools/bench/check.hpp"
#include "src/tools/bench/ours.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hg::bench {
namespace {

Product product_of(const std::string& output, hgemm_type_t type = HGEMM_BF16, const char* layout = "tn")
{
    Product product{24, 40, 16, type, layout};
    product.output = Output(output);
    return product;
}

std::string message_of(const std::string& text)
{
    try {
        return Output(text).text();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

TEST(Outputs, are_words_in_one_order)
{
    EXPECT_TRUE(Output("plain").plain());
    EXPECT_EQ(Output("plain"), Output());
    for (const char* text : {"plain", "f32+beta", "bias+relu+aux", "f32+beta+bias+gelu+aux", "silu"})
        EXPECT_EQ(Output(text).text(), text);
    EXPECT_EQ(Output("aux+gelu+bias"), Output("bias+gelu+aux"));
    EXPECT_EQ(Output("beta").beta(), 0.5f);
    EXPECT_EQ(Output("bias").beta(), 0.0f);
    EXPECT_EQ(Output("bias+gelu").activation(), HGEMM_ACTIVATION_GELU_TANH);
}

TEST(Outputs, name_what_they_do_not_understand)
{
    EXPECT_EQ(message_of("bias+tanh"),
              "no output 'tanh'; plain is known, and f32, beta, bias, relu, gelu, silu, aux, symmetric, "
              "gated, joined by '+'");
    for (const char* text : {"", "+", "bias+", "+bias", "bias gelu", "Bias"})
        EXPECT_EQ(message_of(text).rfind("no output '", 0), 0u) << text;
    EXPECT_EQ(message_of("relu+silu"), "'relu+silu' has more than one of relu, gelu and silu");
    EXPECT_EQ(message_of("beta+symmetric"), "'beta+symmetric' has more than symmetric and f32");
    EXPECT_EQ(message_of("gated+aux"), "'gated+aux' has more than gated, f32 and an activation");
}

TEST(Outputs, move_bytes)
{
    const double operands = 2 * (24 * 16 + 40 * 16), result = 24 * 40;
    EXPECT_EQ(product_of("plain").bytes(), operands + 2 * result);
    EXPECT_EQ(product_of("relu").bytes(), operands + 2 * result);
    EXPECT_EQ(product_of("bias").bytes(), operands + 2 * result + 2 * 40);
    EXPECT_EQ(product_of("beta").bytes(), operands + 4 * result);
    EXPECT_EQ(product_of("gelu+aux").bytes(), operands + 4 * result);
    EXPECT_EQ(product_of("f32").bytes(), operands + 4 * result);
    EXPECT_EQ(product_of("f32+beta+aux").bytes(), operands + 12 * result);
}

TEST(Outputs, belong_to_the_product)
{
    EXPECT_EQ(product_of("plain").shape(), "24x40x16");
    EXPECT_EQ(product_of("bias+gelu").shape(), "24x40x16 bias+gelu");
    EXPECT_NE(product_of("bias"), product_of("beta"));
    EXPECT_LT(product_of("beta").intensity(), product_of("plain").intensity());
}

// On the host, where everything that is judged can be computed.
class HostOutputs : public testing::Test {
protected:
    // Of `computed`, as if it were `wanted`.
    Verdict verdict_of(const Product& wanted, const Product& computed)
    {
        return verdict_of(wanted, [&](const Operands& operands) { ours_.multiply(computed, operands); });
    }
    Verdict verdict_of(const Product& wanted, const std::function<void(const Operands&)>& multiply)
    {
        Arena& arena = wanted.type == HGEMM_F16 ? f16_ : bf16_;
        const Operands operands = arena.operands(wanted, 2)[1];
        return Expectation(arena.numbers(), wanted, operands, arithmetic_of(0)).check(memory_, 1, [&] {
            multiply(operands);
        });
    }

    test::HostMemory memory_;
    Arena f16_{memory_, HGEMM_F16}, bf16_{memory_, HGEMM_BF16};
    Ours ours_{"host"};
};

TEST_F(HostOutputs, are_right)
{
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (const char* layout : {"tn", "nn", "nt", "tt"})
            for (const char* output : {"f32", "beta", "bias", "relu", "gelu", "silu", "aux", "f32+beta",
                                       "bias+relu+aux", "beta+bias+gelu", "f32+beta+bias+silu+aux"}) {
                Product product = product_of(output, type, layout);
                EXPECT_TRUE(verdict_of(product, product).right()) << product.shape() << " " << layout;
                product.offset = 1;
                product.pad = 3;
                EXPECT_TRUE(verdict_of(product, product).right()) << product.shape() << " " << layout;
            }
}

// D[i][j] and D[j][i] of one matrix: what is symmetric is right as the whole product is.
TEST_F(HostOutputs, symmetric_ones_are_right)
{
    for (const char* output : {"symmetric", "f32+symmetric"})
        for (const char* layout : {"tn", "nt"}) {
            Product product = product_of(output, HGEMM_F16, layout);
            product.m = product.n;
            product.pad = 3;
            EXPECT_TRUE(verdict_of(product, product).right()) << output << " " << layout;
            const Operands operands = f16_.operands(product, 1)[0];
            EXPECT_EQ(operands.a, operands.b);
            EXPECT_EQ(args_of(product, operands).uplo, HGEMM_BOTH);
        }
    EXPECT_EQ(product_of("symmetric").bytes(), 2 * (24 * 16 + 24 * 40));
}

// Other libraries' product has room where D is, and is judged as what it is.
TEST_F(HostOutputs, gated_ones_are_right)
{
    for (const char* output : {"gated", "f32+gated", "silu+gated", "f32+gelu+gated", "relu+gated"})
        for (const char* layout : {"tn", "nt"}) {
            Product product = product_of(output, HGEMM_F16, layout);
            product.batch = 2;
            EXPECT_TRUE(verdict_of(product, product).right()) << output << " " << layout;
            product.pad = 3;
            EXPECT_TRUE(verdict_of(product, product).right()) << output << " " << layout;
            EXPECT_TRUE(verdict_of(product.ungated(), product.ungated()).right());
            EXPECT_FALSE(verdict_of(product, product.ungated()).right());
            const Operands operands = f16_.operands(product, 1)[0];
            EXPECT_EQ(args_of(product, operands).gate.block, product.n / 2);
            ours_.multiply(product.ungated(), operands);
        }
    EXPECT_FALSE(verdict_of(product_of("gated"), product_of("relu+gated")).right());
    EXPECT_TRUE(product_of("silu+gated").ungated().output.plain());
    EXPECT_EQ(product_of("silu+gated").bytes(), 2 * (24 * 16 + 40 * 16 + 24 * 20));
    EXPECT_EQ(product_of("silu+gated").flops(), product_of("plain").flops());
}

TEST_F(HostOutputs, are_wrong_without_one_of_their_words)
{
    for (const auto& [whole, part] : {std::pair{"beta+bias", "bias"},
                                      {"beta+bias", "beta"},
                                      {"bias+relu", "bias"},
                                      {"bias+gelu", "bias+silu"},
                                      {"gelu+aux", "aux"},
                                      {"f32+beta+aux", "f32+aux"}})
        EXPECT_FALSE(verdict_of(product_of(whole), product_of(part)).right()) << whole << " " << part;
}

TEST_F(HostOutputs, aux_is_looked_at_like_d)
{
    Product product = product_of("gelu+aux", HGEMM_F16);
    product.pad = 2;
    const auto spoiled = [&](int64_t place, uint16_t bits) {
        return verdict_of(product, [&](const Operands& operands) {
            ours_.multiply(product, operands);
            static_cast<uint16_t*>(operands.aux)[place] = bits;
        });
    };
    const uint16_t nan = 0xffff, seven = 0x4700;
    EXPECT_TRUE(spoiled(40, nan).right());               // the gap behind the first line, as it was
    EXPECT_FALSE(spoiled(40, 0).right());                // ... written
    EXPECT_FALSE(spoiled(39, nan).right());              // not written
    EXPECT_FALSE(spoiled(23 * 42 + 39, seven).right());  // the last element
    EXPECT_FALSE(spoiled(-1, 0).right());                // before aux
    EXPECT_FALSE(spoiled(product.d_span(), 0).right());  // behind it
}

TEST_F(HostOutputs, c_is_there_for_every_check)
{
    const Product product = product_of("f32+beta");
    const Operands operands = bf16_.operands(product, 1)[0];
    const Expectation expectation(bf16_.numbers(), product, operands, arithmetic_of(0));
    for (int i = 0; i < 2; ++i)
        EXPECT_TRUE(expectation.check(memory_, 1, [&] { ours_.multiply(product, operands); }).right());
    EXPECT_FALSE(expectation.check(memory_, 1, [] {}).right());  // C alone
}

}  // namespace
}  // namespace hg::bench
