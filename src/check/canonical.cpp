#include "src/check/canonical.hpp"

#include "src/check/request.hpp"

#include <algorithm>
#include <limits>

namespace hg {
namespace {

// A C that is read. It may be NULL only where pointers are not checked (hgemm_explain); it then counts as
// aligned.
Matrix to_c(const hgemm_args_t& g, bool arrays)
{
    constexpr uintptr_t anywhere = 256;
    void* ptr = arrays ? nullptr : const_cast<void*>(g.c);
    if (!ptr && !g.c_array)
        ptr = reinterpret_cast<void*>(anywhere);
    return {ptr, const_cast<void* const*>(g.c_array), g.ldc, g.stride_c, static_cast<Type>(g.type_c), 0};
}

Operand to_operand(const void* ptr, const void* const* array, int64_t ld, int64_t batch_stride,
                   bool contiguous_k)
{
    return {ptr, array, contiguous_k ? ld : 1, contiguous_k ? 1 : ld, batch_stride, 0};
}

}  // namespace

// An infinite limit and an offset of -0 are neutral. Any slope so steep makes a step at 0, and kernels
// multiply it by log2(e), which must not overflow.
Gate to_gate(const hgemm_gate_t& gate)
{
    constexpr float none = std::numeric_limits<float>::infinity(), steepest = 0x1p127f;
    return {gate.block, gate.limit != 0.0f ? gate.limit : none,
            gate.slope != 0.0f ? std::min(gate.slope, steepest) : 1.0f,
            gate.offset != 0.0f ? gate.offset : -0.0f};
}

Problem to_problem(const hgemm_args_t& g)
{
    const bool column = g.layout == HGEMM_COL_MAJOR;
    const bool a_no = g.transa == HGEMM_NO_TRANS, b_no = g.transb == HGEMM_NO_TRANS;

    Problem p{};
    p.batch = g.batch_count;
    p.k = g.k;
    p.type_ab = static_cast<Type>(g.type_ab);
    p.alpha = g.alpha;
    p.alpha_device = g.alpha_device;
    p.beta = g.beta;
    p.beta_device = g.beta_device;

    const bool arrays = g.a_array || g.b_array || g.c_array || g.d_array;
    const Operand first = to_operand(g.a, g.a_array, g.lda, g.stride_a, column != a_no);
    const Operand second = to_operand(g.b, g.b_array, g.ldb, g.stride_b, column == b_no);
    p.m = column ? g.n : g.m;
    p.n = column ? g.m : g.n;
    if (reads_ab(g)) {
        p.a = column ? second : first;
        p.b = column ? first : second;
    } else {
        p.multiply_nothing();
    }
    if (reads_c(g))
        p.c = to_c(g, arrays);
    p.d = {arrays ? nullptr : g.d, g.d_array, g.ldd, g.stride_d, static_cast<Type>(g.type_d), 0};

    if (g.bias_mode != HGEMM_BIAS_NONE) {
        const bool along_rows = (g.bias_mode == HGEMM_BIAS_M) != column;
        p.bias = {g.bias, g.stride_bias, static_cast<Type>(g.bias_type),
                  along_rows ? BiasAlong::Rows : BiasAlong::Columns};
    }
    p.activation = static_cast<Activation>(g.activation);
    if (g.gate.block != 0)
        p.gate = to_gate(g.gate);
    if (g.aux)
        p.aux = {g.aux, nullptr, g.ldaux, g.stride_aux, static_cast<Type>(g.type_d), 0};
    if (g.uplo != HGEMM_UPLO_NONE) {
        // Of both halves the upper one is computed.
        p.triangle = (g.uplo == HGEMM_LOWER) != column ? Triangle::Lower : Triangle::Upper;
        p.mirrored = g.uplo == HGEMM_BOTH;
    }
    p.simplify();
    return p;
}

}  // namespace hg
