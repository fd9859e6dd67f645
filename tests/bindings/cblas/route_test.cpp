// Which products go to the GPU, and how one is divided.
#include "fit.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hg::cblas {
namespace {

hgemm_args_t square(int64_t size)
{
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.layout = HGEMM_ROW_MAJOR;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = g.ldd = size;
    return g;
}

TEST(Route, small_products_are_faster_on_the_host_and_large_ones_on_the_gpu)
{
    const Forecast small = forecast(square(32), 16), large = forecast(square(16384), 16);
    EXPECT_LT(small.host_us, small.gpu_us);
    EXPECT_GT(large.host_us, large.gpu_us);
}

TEST(Route, forecasts_grow_with_what_is_moved_and_computed)
{
    const Rates rates{.gpu_start_us = 10,
                      .staged_bytes_per_us = 100,
                      .gpu_flops_per_us = 1e6,
                      .host_start_us = 1,
                      .host_flops_per_us = 1000};
    hgemm_args_t g = square(100);
    EXPECT_DOUBLE_EQ(forecast(g, 2, rates).host_us, 1 + 2e6 / 2000);
    EXPECT_DOUBLE_EQ(forecast(g, 2, rates).gpu_us, 10 + 60000.0 / 100);
    g.beta = 1;  // C goes both ways
    EXPECT_DOUBLE_EQ(forecast(g, 2, rates).gpu_us, 10 + 80000.0 / 100);
    g.type_d = HGEMM_F32;
    EXPECT_DOUBLE_EQ(forecast(g, 2, rates).gpu_us, 10 + 120000.0 / 100);
}

TEST(Route, rates_are_found_from_times)
{
    const Rates true_rates{
        .gpu_start_us = 71, .staged_bytes_per_us = 9.3e3, .host_start_us = 2.6, .host_flops_per_us = 6.1e4};
    std::vector<Times> times;
    for (int64_t size = 64; size <= 8192; size *= 2) {
        const Forecast f = forecast(square(size), 16, true_rates);
        times.push_back({square(size), f.host_us, f.gpu_us});
    }
    const Rates found = fit(times, 16);
    EXPECT_NEAR(found.gpu_start_us, true_rates.gpu_start_us, 2);
    EXPECT_NEAR(found.staged_bytes_per_us, true_rates.staged_bytes_per_us, 200);
    EXPECT_NEAR(found.host_start_us, true_rates.host_start_us, 0.1);
    EXPECT_NEAR(found.host_flops_per_us, true_rates.host_flops_per_us, 1e3);
    EXPECT_DOUBLE_EQ(loss_of(times, 16, true_rates).most, 1);
    Rates wrong = true_rates;
    wrong.gpu_start_us = 1e9;
    const Loss loss = loss_of(times, 16, wrong);
    EXPECT_GT(loss.most, 2);
    EXPECT_GT(loss.mean, 1);
    EXPECT_LT(loss.mean, loss.most);
}

TEST(Route, column_major_becomes_row_major)
{
    hgemm_args_t g = square(4);
    const int a = 0, b = 0;
    g.layout = HGEMM_COL_MAJOR;
    g.m = 2;
    g.n = 3;
    g.a = &a;
    g.b = &b;
    g.lda = 7;
    g.transb = HGEMM_TRANS;
    const hgemm_args_t r = row_major(g);
    EXPECT_EQ(r.layout, HGEMM_ROW_MAJOR);
    EXPECT_EQ(r.m, 3);
    EXPECT_EQ(r.n, 2);
    EXPECT_EQ(r.a, &b);
    EXPECT_EQ(r.b, &a);
    EXPECT_EQ(r.ldb, 7);
    EXPECT_EQ(r.transa, HGEMM_TRANS);
    EXPECT_EQ(r.transb, HGEMM_NO_TRANS);
}

TEST(Route, parts_begin_at_their_elements)
{
    const std::vector<uint16_t> a(100), b(100);
    std::vector<float> d(100);
    hgemm_args_t g = square(10);
    g.type_c = g.type_d = HGEMM_F32;
    g.a = a.data();
    g.b = b.data();
    g.c = g.d = d.data();
    const hgemm_args_t plain = part(g, 3, 2, 4, 5);
    EXPECT_EQ(plain.m, 2);
    EXPECT_EQ(plain.n, 5);
    EXPECT_EQ(plain.a, a.data() + 30);
    EXPECT_EQ(plain.b, b.data() + 4);
    EXPECT_EQ(plain.d, d.data() + 34);
    EXPECT_EQ(plain.c, plain.d);
    g.transa = g.transb = HGEMM_TRANS;
    const hgemm_args_t turned = part(g, 3, 2, 4, 5);
    EXPECT_EQ(turned.a, a.data() + 3);
    EXPECT_EQ(turned.b, b.data() + 40);
}

}  // namespace
}  // namespace hg::cblas
