#include "src/run/trace.hpp"

#include <cinttypes>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

namespace hg {
namespace {

// hgemm-bench has no command for groups.
void trace_groups(const Log& log, const Problem& p)
{
    char asked[256];
    p.print(asked, sizeof asked);
    log.line("trace grouped %s", asked);
}

// Operands of hgemm-bench have no gaps within a line, and a vector is one line.
bool is_strided(const Problem& p)
{
    const auto has_gaps = [&](const Operand& o, int64_t rows) {
        return p.k > 1 && o.k_stride != 1 && (o.row_stride != 1 || rows == 1);
    };
    return has_gaps(p.a, p.m) || has_gaps(p.b, p.n) || (p.n == 1 && p.m > 1 && p.d.ld != 1);
}

bool mixes_types(const Problem& p)
{
    const Type d = p.d.type;
    return (d != p.type_ab && d != Type::F32) || (p.c.exists() && p.c.type != d) ||
           (p.bias.along != BiasAlong::None && p.bias.type != p.type_ab);
}

// Is a matrix one for the whole batch?
bool is_shared(const Problem& p)
{
    const auto is = [](bool array, int64_t stride) { return !array && stride == 0; };
    return p.batch > 1 && p.k > 0 &&
           (is(p.a.array, p.a.batch_stride) || is(p.b.array, p.b.batch_stride) ||
            (p.c.ptr && is(p.c.array, p.c.batch_stride)));
}

// As hgemm-bench has them: in front of the others, and without numbers.
bool has_plain_gates(const Problem& p)
{
    return p.gate == Gate{p.n / 2, std::numeric_limits<float>::infinity(), 1.0f, -0.0f};
}

// The words of hgemm-bench's --output for what is done with the product. Where it has none for something
// that kernels depend on, the word is one that it refuses, so that nobody measures another product.
std::string describe_output(const Problem& p)
{
    const std::pair<bool, const char*> words[] = {
        {p.a.array || p.b.array || p.c.array || p.d.array, "array"},
        {is_shared(p), "shared"},
        {p.a.batch_stride < 0 || p.b.batch_stride < 0, "reversed"},
        {is_strided(p), "strided"},
        {mixes_types(p), "mixed_types"},
        {p.d.type == Type::F32, "f32"},
        {p.c.exists(), "beta"},
        {p.bias.along == BiasAlong::Columns, "bias"},
        {p.bias.along == BiasAlong::Rows, "bias_rows"},
        {p.is_gated(), has_plain_gates(p) ? "gated" : "gate"},
        {p.triangle != Triangle::Whole, "triangle"},
        {p.activation == Activation::Relu, "relu"},
        {p.activation == Activation::GeluTanh, "gelu"},
        {p.activation == Activation::GeluErf, "gelu_erf"},
        {p.activation == Activation::Silu, "silu"},
        {p.aux.ptr, "aux"}};
    std::string text;
    for (const auto& [is_done, word] : words)
        if (is_done)
            text.append(text.empty() ? " --output " : "+").append(word);
    return text;
}

}  // namespace

void trace(const Log& log, const Problem& p)
{
    if (p.is_grouped())
        return trace_groups(log, p);
    char batch[24] = "";
    if (p.batch > 1)
        std::snprintf(batch, sizeof batch, "x%" PRId64, p.batch);
    log.line("trace hgemm-bench compare --shapes %" PRId64 "x%" PRId64 "x%" PRId64
             "%s --dtype %s --layout %s%s%s",
             p.m, p.n, p.k, batch, name_of(p.type_ab), p.a.k_stride == 1 || p.m == 1 ? "t" : "n",
             p.b.k_stride == 1 || p.n == 1 ? "n" : "t", describe_output(p).c_str());
}

}  // namespace hg
