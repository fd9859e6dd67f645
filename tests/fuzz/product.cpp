#include "product.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace hg::fuzz {

Extent Product::extent_a() const
{
    const bool along_m = (g.layout == HGEMM_COL_MAJOR) == (g.transa == HGEMM_NO_TRANS);
    return {along_m ? g.k : g.m, along_m ? g.m : g.k, g.lda, g.batch_count, g.stride_a};
}

Extent Product::extent_b() const
{
    const bool along_k = (g.layout == HGEMM_COL_MAJOR) == (g.transb == HGEMM_NO_TRANS);
    return {along_k ? g.n : g.k, along_k ? g.k : g.n, g.ldb, g.batch_count, g.stride_b};
}

Extent Product::extent_product(int64_t ld, int64_t stride) const
{
    return {g.layout == HGEMM_COL_MAJOR ? g.n : g.m, line(), ld, g.batch_count, stride};
}

Extent Product::extent_d() const
{
    Extent d = extent_product(g.ldd, g.stride_d);
    d.length /= is_gated() ? 2 : 1;
    return d;
}

Extent Product::extent_c() const { return extent_product(g.ldc, g.stride_c); }

Extent Product::extent_aux() const { return extent_product(g.ldaux, g.stride_aux); }

std::vector<unsigned char> Product::bytes() const
{
    const size_t length = sizeof g + static_cast<size_t>(tail);
    std::vector<unsigned char> copy(length);
    std::memcpy(copy.data(), &g, sizeof g);
    if (dirty_tail)
        copy.back() = 1;
    // What a wrong size reaches is there, and is not 0.
    copy.resize(std::max(length, most_struct_bytes), foreign_byte);
    return copy;
}

std::string Product::describe() const
{
    char text[768];
    std::snprintf(text, sizeof text,
                  "%s size=%zu tail=%d%s layout=%d ops=%d,%d types=%d,%d,%d %" PRId64 "x%" PRId64
                  "x%" PRId64 " x%" PRId64 " alpha=%g%s beta=%g%s lda=%" PRId64 " ldb=%" PRId64
                  " ldc=%" PRId64 " ldd=%" PRId64 " strides=%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                  " a=%p b=%p c=%p d=%p%s bias=%d,%d,%p,%" PRId64 " activation=%d aux=%p,%" PRId64
                  ",%" PRId64 " flags=%u uplo=%d gate=%" PRId64 ",%g,%g,%g%s",
                  test::function_name(form, g).c_str(), g.size, tail, dirty_tail ? " (not 0)" : "",
                  g.layout, g.transa, g.transb, g.type_ab, g.type_c, g.type_d, g.m, g.n, g.k, g.batch_count,
                  double{g.alpha}, g.alpha_device ? " (read)" : "", double{g.beta},
                  g.beta_device ? " (read)" : "", g.lda, g.ldb, g.ldc, g.ldd, g.stride_a, g.stride_b,
                  g.stride_c, g.stride_d, g.a, g.b, g.c, g.d, is_array() ? " in arrays" : "", g.bias_mode,
                  g.bias_type, g.bias, g.stride_bias, g.activation, g.aux, g.ldaux, g.stride_aux, g.flags,
                  static_cast<int>(g.uplo), g.gate.block, double{g.gate.limit}, double{g.gate.slope},
                  double{g.gate.offset}, special ? " special" : "");
    return text;
}

}  // namespace hg::fuzz
