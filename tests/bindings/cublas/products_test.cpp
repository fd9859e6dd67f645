// Every product that is taken over gives the right result and does not reach the real library.
#include "shim_fixture.hpp"

namespace hg::test {
namespace {

using namespace shim;

constexpr int pairs[][2] = {{r_16f, r_16f}, {r_16f, r_32f}, {r_16bf, r_16bf}, {r_16bf, r_32f}};

TEST_F(Shim, serves_gemm_ex_in_all_types_and_transposes)
{
    for (const auto& [in, out] : pairs)
        for (const int transa : {op_n, op_t, op_c})
            for (const int transb : {op_n, op_t, op_c}) {
                const Operands o(*memory_, {}, transa, transb, in, out);
                EXPECT_EQ(o.gemm_ex(handle_), 0);
                EXPECT_EQ(o.wrong(), 0) << in << out << transa << transb;
            }
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(served(), 36u);
    EXPECT_EQ(passed_on(), 0u);
}

TEST_F(Shim, serves_64_bit_sizes)
{
    const Operands o(*memory_, {});
    EXPECT_EQ(cublasGemmEx_64(handle_, 0, 0, o.size.m, o.size.n, o.size.k, &o.alpha, o.a.ptr(), r_16f,
                              o.a.ld(), o.b.ptr(), r_16f, o.b.ld(), &o.beta, o.c.ptr(), r_16f, o.c.ld(),
                              compute_32f, algo_default),
              0);
    EXPECT_EQ(o.wrong(), 0);
    const Operands h(*memory_, {});
    EXPECT_EQ(cublasHgemm_64(handle_, 0, 0, h.size.m, h.size.n, h.size.k, &h.half_alpha,
                             static_cast<uint16_t*>(h.a.ptr()), h.a.ld(), static_cast<uint16_t*>(h.b.ptr()),
                             h.b.ld(), &h.half_beta, static_cast<uint16_t*>(h.c.ptr()), h.c.ld()),
              0);
    EXPECT_EQ(h.wrong(), 0);
    EXPECT_EQ(calls(), "");
}

template <typename Int, typename Ex, typename Half>
void check_strided(Memory& memory, void* handle, Ex ex, Half half)
{
    const Operands o(memory, {24, 17, 40, 3}), h(memory, {24, 17, 40, 3});
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    EXPECT_EQ(ex(handle, 0, 0, i(o.size.m), i(o.size.n), i(o.size.k), &o.alpha, o.a.ptr(), r_16f,
                 i(o.a.ld()), o.a.stride(), o.b.ptr(), r_16f, i(o.b.ld()), o.b.stride(), &o.beta, o.c.ptr(),
                 r_16f, i(o.c.ld()), o.c.stride(), i(3), compute_32f, algo_default),
              0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(half(handle, 0, 0, i(h.size.m), i(h.size.n), i(h.size.k), &h.half_alpha,
                   static_cast<uint16_t*>(h.a.ptr()), i(h.a.ld()), h.a.stride(),
                   static_cast<uint16_t*>(h.b.ptr()), i(h.b.ld()), h.b.stride(), &h.half_beta,
                   static_cast<uint16_t*>(h.c.ptr()), i(h.c.ld()), h.c.stride(), i(3)),
              0);
    EXPECT_EQ(h.wrong(), 0);
}

TEST_F(Shim, serves_strided_batches)
{
    check_strided<int>(*memory_, handle_, cublasGemmStridedBatchedEx, cublasHgemmStridedBatched);
    check_strided<int64_t>(*memory_, handle_, cublasGemmStridedBatchedEx_64, cublasHgemmStridedBatched_64);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(served(), 4u);
}

template <typename Int, typename Ex, typename Half>
void check_arrays(Memory& memory, void* handle, Ex ex, Half half)
{
    const Operands o(memory, {24, 17, 40, 3}), h(memory, {24, 17, 40, 3});
    const Block a = o.a.pointers(memory), b = o.b.pointers(memory), c = o.c.pointers(memory);
    const auto i = [](int64_t value) { return static_cast<Int>(value); };
    EXPECT_EQ(ex(handle, 0, 0, i(o.size.m), i(o.size.n), i(o.size.k), &o.alpha, a.get<const void*>(), r_16f,
                 i(o.a.ld()), b.get<const void*>(), r_16f, i(o.b.ld()), &o.beta, c.get<void*>(), r_16f,
                 i(o.c.ld()), i(3), compute_32f, algo_default),
              0);
    EXPECT_EQ(o.wrong(), 0);
    const Block ha = h.a.pointers(memory), hb = h.b.pointers(memory), hc = h.c.pointers(memory);
    EXPECT_EQ(half(handle, 0, 0, i(h.size.m), i(h.size.n), i(h.size.k), &h.half_alpha,
                   ha.get<const uint16_t*>(), i(h.a.ld()), hb.get<const uint16_t*>(), i(h.b.ld()),
                   &h.half_beta, hc.get<uint16_t*>(), i(h.c.ld()), i(3)),
              0);
    EXPECT_EQ(h.wrong(), 0);
}

TEST_F(Shim, serves_pointer_arrays)
{
    check_arrays<int>(*memory_, handle_, cublasGemmBatchedEx, cublasHgemmBatched);
    check_arrays<int64_t>(*memory_, handle_, cublasGemmBatchedEx_64, cublasHgemmBatched_64);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(served(), 4u);
}

TEST_F(Shim, serves_hgemm)
{
    const Operands o(*memory_, {}, op_t, op_n);
    EXPECT_EQ(cublasHgemm(handle_, op_t, op_n, 24, 17, 40, &o.half_alpha, static_cast<uint16_t*>(o.a.ptr()),
                          static_cast<int>(o.a.ld()), static_cast<uint16_t*>(o.b.ptr()),
                          static_cast<int>(o.b.ld()), &o.half_beta, static_cast<uint16_t*>(o.c.ptr()),
                          static_cast<int>(o.c.ld())),
              0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(Shim, serves_sgemm_ex)
{
    const auto product = [&](const Operands& o) {
        return cublasSgemmEx(handle_, 0, 0, 24, 17, 40, &o.alpha, o.a.ptr(), o.type_ab,
                             static_cast<int>(o.a.ld()), o.b.ptr(), o.type_ab, static_cast<int>(o.b.ld()),
                             &o.beta, o.c.ptr(), o.type_d, static_cast<int>(o.c.ld()));
    };
    for (const auto& [in, out] : pairs) {
        const Operands o(*memory_, {}, op_n, op_n, in, out), wide(*memory_, {}, op_n, op_n, in, out);
        EXPECT_EQ(product(o), 0);
        EXPECT_EQ(o.wrong(), 0) << in << out;
        EXPECT_EQ(cublasSgemmEx_64(handle_, 0, 0, 24, 17, 40, &wide.alpha, wide.a.ptr(), in, wide.a.ld(),
                                   wide.b.ptr(), in, wide.b.ld(), &wide.beta, wide.c.ptr(), out,
                                   wide.c.ld()),
                  0);
        EXPECT_EQ(wide.wrong(), 0) << in << out;
    }
    EXPECT_EQ(calls(), "");
    const Operands single(*memory_, {}, op_n, op_n, r_32f, r_32f);
    EXPECT_EQ(product(single), 0);
    EXPECT_EQ(single.wrong(), 0);
    const Operands o(*memory_, {});
    cublasSetMathMode(handle_, math_pedantic);
    EXPECT_EQ(product(o), 0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "cublasSgemmEx cublasSgemmEx ");
}

TEST_F(Shim, reads_scalars_from_the_device)
{
    const Operands o(*memory_, {});
    const float values[] = {o.alpha, o.beta};
    Block scalars(*memory_, sizeof values);
    scalars.copy_in(values);
    cublasSetPointerMode_v2(handle_, pointers_device);
    EXPECT_EQ(cublasGemmEx(handle_, 0, 0, 24, 17, 40, scalars.get<float>(), o.a.ptr(), r_16f,
                           static_cast<int>(o.a.ld()), o.b.ptr(), r_16f, static_cast<int>(o.b.ld()),
                           scalars.get<float>() + 1, o.c.ptr(), r_16f, static_cast<int>(o.c.ld()),
                           compute_32f, algo_default),
              0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "");
}

// hgemm takes fp32 scalars alone.
TEST_F(Shim, passes_on_half_scalars_on_the_device)
{
    const Operands o(*memory_, {});
    Block scalars(*memory_, 4);
    cublasSetPointerMode_v2(handle_, pointers_device);
    const auto* alpha = scalars.get<uint16_t>();
    EXPECT_EQ(cublasHgemm(handle_, 0, 0, 24, 17, 40, alpha, alpha, 24, alpha, 40, alpha,
                          static_cast<uint16_t*>(o.c.ptr()), 24),
              0);
    EXPECT_EQ(calls(), "cublasHgemm ");
}

}  // namespace
}  // namespace hg::test
