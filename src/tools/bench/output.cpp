#include "src/tools/bench/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <sstream>
#include <stdexcept>

namespace hg::bench {
namespace {

constexpr unsigned activations = Output::Relu | Output::Gelu | Output::Silu;
constexpr const char* names[] = {"f32",  "beta", "bias",      "relu", "gelu",
                                 "silu", "aux",  "symmetric", "gated"};  // by bit

unsigned word_of(const std::string& text)
{
    if (text == "plain")
        return 0;
    unsigned word = 1;
    for (const char* name : names) {
        if (text == name)
            return word;
        word *= 2;
    }
    throw std::runtime_error(
        fmt::format("no output '{}'; plain is known, and {}, joined by '+'", text, fmt::join(names, ", ")));
}

}  // namespace

Output::Output(const std::string& text)
{
    std::istringstream stream(text + "+");  // so that nothing behind a '+' is a word as well
    for (std::string word; std::getline(stream, word, '+');)
        words_ |= word_of(word);
    if (std::popcount(words_ & activations) > 1)
        throw std::runtime_error(fmt::format("'{}' has more than one of relu, gelu and silu", text));
    if (has(Symmetric) && has(~unsigned{Symmetric | F32}))
        throw std::runtime_error(fmt::format("'{}' has more than symmetric and f32", text));
    if (has(Gated) && has(~unsigned{Gated | F32 | activations}))
        throw std::runtime_error(fmt::format("'{}' has more than gated, f32 and an activation", text));
}

Output Output::ungated() const
{
    Output output = *this;
    if (has(Gated))
        output.words_ &= F32;
    return output;
}

std::string Output::text() const
{
    std::vector<std::string> words;
    for (unsigned bit = 0; bit < std::size(names); ++bit)
        if (has(1u << bit))
            words.push_back(names[bit]);
    return plain() ? "plain" : fmt::format("{}", fmt::join(words, "+"));
}

hgemm_activation_t Output::activation() const
{
    return has(Relu)   ? HGEMM_ACTIVATION_RELU
           : has(Gelu) ? HGEMM_ACTIVATION_GELU_TANH
           : has(Silu) ? HGEMM_ACTIVATION_SILU
                       : HGEMM_ACTIVATION_NONE;
}

}  // namespace hg::bench
