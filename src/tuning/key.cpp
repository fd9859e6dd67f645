#include "src/tuning/key.hpp"

#include "arch/common/types.hpp"
#include "src/plan/problem.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace hg {
namespace {

// Bytes, 16 at most, that the address and the strides of a matrix are multiples of. Two's complement has
// the same low bits for a negative stride.
int alignment_of(const void* ptr, int64_t stride_bytes, int64_t batch_stride_bytes)
{
    const uint64_t bits = reinterpret_cast<uintptr_t>(ptr) | static_cast<uint64_t>(stride_bytes) |
                          static_cast<uint64_t>(batch_stride_bytes) | 16;
    return static_cast<int>(bits & -bits);
}

// A word of the key with what is unusual about a matrix: ",<name>=<trait>+<trait>".
class Traits {
public:
    explicit Traits(const char* name) : text_(std::string(",") + name) {}

    Traits& add(bool holds, const char* trait)
    {
        if (holds)
            text_.append(count_++ == 0 ? "=" : "+").append(trait);
        return *this;
    }
    Traits& add_alignment(int bytes) { return add(bytes < 16, std::to_string(bytes).c_str()); }
    std::string word() const { return text_; }
    std::string word_if_any() const { return count_ > 0 ? text_ : ""; }

private:
    std::string text_;
    int count_ = 0;
};

std::string describe(const char* name, const Operand& o, int64_t batch)
{
    const int64_t line = o.k_stride == 1 ? o.row_stride : o.row_stride == 1 ? o.k_stride : 0;
    const int64_t step = batch > 1 && !o.array ? o.batch_stride : 0;
    return Traits(name)
        .add_alignment(alignment_of(o.ptr, 2 * line, 2 * step))
        .add(o.array, "array")
        .add(batch > 1 && !o.array && step == 0, "shared")
        .add(step < 0, "reversed")
        .word_if_any();
}

Traits describe(const char* name, const Matrix& matrix, int64_t batch, Type usual)
{
    const int64_t bytes = bytes_of(matrix.type), step = batch > 1 ? matrix.batch_stride : 0;
    Traits traits(name);
    traits.add(matrix.type != usual, name_of(matrix.type))
        .add_alignment(alignment_of(matrix.ptr, bytes * matrix.ld, bytes * step))
        .add(matrix.array, "array");
    return traits;
}

std::string describe(const Bias& bias, Type usual)
{
    if (bias.along == BiasAlong::None)
        return "";
    return Traits("bias")
        .add(true, bias.along == BiasAlong::Rows ? "rows" : "columns")
        .add(bias.type != usual, name_of(bias.type))
        .word();
}

const char* describe(Activation activation)
{
    switch (activation) {
    case Activation::None: break;
    case Activation::Relu: return ",relu";
    case Activation::GeluTanh: return ",gelu_tanh";
    case Activation::GeluErf: return ",gelu_erf";
    case Activation::Silu: return ",silu";
    }
    return "";
}

// In the letters of column-major BLAS, as hgemm-bench has them: t and n mean that A and B are contiguous
// along K, n and t along the other dimension. s: along neither.
char letter_of(const Operand& o, char along_k, char along_rows)
{
    return o.k_stride == 1 ? along_k : o.row_stride == 1 ? along_rows : 's';
}

}  // namespace

std::string tuning_key(const Problem& p, Mode mode)
{
    char sizes[96], batch[24] = "";
    if (p.batch > 1)
        std::snprintf(batch, sizeof batch, "x%" PRId64, p.batch);
    std::snprintf(sizes, sizeof sizes, "%" PRId64 "x%" PRId64 "x%" PRId64 "%s,%s,%c%c", p.m, p.n, p.k,
                  batch, name_of(p.type_ab), letter_of(p.a, 't', 'n'), letter_of(p.b, 'n', 't'));
    std::string key = sizes;
    key += describe("a", p.a, p.batch) + describe("b", p.b, p.batch);
    key += describe("d", p.d, p.batch, p.type_ab).word_if_any();
    if (p.c.exists())
        key += describe("c", p.c, p.batch, p.d.type)
                   .add(p.batch > 1 && !p.c.array && p.c.batch_stride == 0, "shared")
                   .word();
    key += describe(p.bias, p.type_ab) + describe(p.activation);
    key += p.is_gated() ? ",gate" + std::to_string(p.gate.block) : "";
    if (p.aux.ptr)
        key += describe("aux", p.aux, p.batch, p.d.type).word();
    key += p.groups.contiguous() ? ",offsets" : p.groups.masked() ? ",counts" : p.is_grouped() ? ",k" : "";
    key += mode == Mode::BatchInvariant ? ",invariant" : "";
    return key;
}

}  // namespace hg
