// Shape sets, regions, floors, statistics.
#include "src/tools/bench/region.hpp"
#include "src/tools/bench/shapes.hpp"
#include "src/tools/bench/statistics.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>

namespace hg::bench {
namespace {

std::vector<Product> set_of(const std::string& name)
{
    Selection selection;
    selection.sets = {name};
    return select(selection);
}

TEST(Shapes, sets_have_what_they_promise)
{
    EXPECT_EQ(set_of("square").size(), 14u);
    EXPECT_EQ(set_of("llm").size(), 187u);
    EXPECT_EQ(set_of("grid").size(), 160u);
    EXPECT_EQ(set_of("odd").size(), 36u);
    EXPECT_EQ(set_of("mirror").size(), 120u);
    EXPECT_EQ(set_of("batch").size(), 30u);
    EXPECT_EQ(set_of("all").size(), 14u + 187u + 160u + 36u + 120u + 30u);
    EXPECT_THROW(set_of("oval"), std::runtime_error);
    for (const Product& p : set_of("odd"))
        EXPECT_STREQ(region_of(p), "odd") << p.shape();
    std::set<std::string> layouts, shapes;
    for (const Product& p : set_of("mirror")) {
        layouts.insert(p.layout);
        shapes.insert(p.shape());
    }
    EXPECT_EQ(layouts, (std::set<std::string>{"nn", "nt", "tt"}));
    EXPECT_EQ(shapes.size(), 40u);
}

TEST(Shapes, grid_is_sampled_reproducibly)
{
    Selection selection;
    selection.sets = {"grid"};
    const auto first = select(selection);
    EXPECT_EQ(select(selection), first);
    selection.sample = "160/2";
    EXPECT_NE(select(selection), first);
    selection.sample = "1000/1";
    std::set<std::string> points;
    for (const Product& p : select(selection))
        points.insert(p.shape());
    EXPECT_EQ(points.size(), 1000u);
    selection.sample = "many";
    EXPECT_THROW(select(selection), std::runtime_error);
}

TEST(Shapes, lists_types_and_layouts_multiply)
{
    Selection selection;
    selection.shapes = "1x2x3,16x32x64";
    selection.dtype = "both";
    selection.layouts = {"tn", "nt"};
    selection.offset = 1;
    selection.pad = 3;
    const auto products = select(selection);
    ASSERT_EQ(products.size(), 8u);
    EXPECT_EQ(products[0], (Product{1, 2, 3, HGEMM_F16, "tn", 1, 3, "list"}));
    EXPECT_EQ(products[7], (Product{16, 32, 64, HGEMM_BF16, "nt", 1, 3, "list"}));
    EXPECT_EQ(products[0].shape(), "1x2x3@1+3");
    EXPECT_EQ(products[0].ldd(), 5);
    selection.outputs = {"plain", "bias+gelu"};
    const auto outputs = select(selection);
    ASSERT_EQ(outputs.size(), 16u);
    EXPECT_EQ(outputs[0], products[0]);
    EXPECT_EQ(outputs[1], (Product{1, 2, 3, HGEMM_F16, "tn", 1, 3, "list", Output("bias+gelu")}));
    for (const char* wrong : {"1x2", "0x1x1", "axbxc"}) {
        selection.shapes = wrong;
        EXPECT_THROW(select(selection), std::runtime_error) << wrong;
    }
}

TEST(Shapes, files_are_read_with_and_without_heading)
{
    const std::string path = testing::TempDir() + "my_grid_shapes.csv";
    std::ofstream(path) << "# device: none\nregion,m,n,k,us\nmid,1,2,3,4.5\nlarge,4,5,6,7.5\n";
    Selection selection;
    selection.files = {path};
    auto products = select(selection);
    ASSERT_EQ(products.size(), 2u);
    EXPECT_EQ(products[1], (Product{4, 5, 6, HGEMM_F16, "tn", 0, 0, "grid"}));
    std::ofstream(path) << "7x8x9\n\n10,11,12\n";
    products = select(selection);
    ASSERT_EQ(products.size(), 2u);
    EXPECT_EQ(products[0].shape(), "7x8x9");
    EXPECT_EQ(products[1].shape(), "10x11x12");
    std::remove(path.c_str());
}

TEST(Regions, follow_the_protocol)
{
    const auto region = [](int64_t m, int64_t n, int64_t k, int64_t offset = 0) {
        return std::string(region_of({m, n, k, HGEMM_F16, "tn", offset}));
    };
    EXPECT_EQ(region(128, 128, 128), "tiny");
    EXPECT_EQ(region(1, 4096, 4096), "gemv");
    EXPECT_EQ(region(2, 4096, 4096), "decode");
    EXPECT_EQ(region(63, 4096, 4096), "decode");  // rows of a short m need not be eights
    EXPECT_EQ(region(65, 4096, 4096), "odd");
    EXPECT_EQ(region(72, 4096, 4096), "mid");
    EXPECT_EQ(region(512, 8192, 8192), "mid");
    EXPECT_EQ(region(2048, 2048, 2048), "mid");  // floor under 30 us
    EXPECT_EQ(region(4096, 4096, 64), "thin-K");
    EXPECT_EQ(region(256, 512, 16384), "deep-K");
    EXPECT_EQ(region(4096, 4096, 4096), "large");
    EXPECT_EQ(region(4096, 4096, 4096, 1), "odd");
    EXPECT_EQ(region(1024, 1024, 1025), "odd");
}

TEST(Regions, floor_and_bound)
{
    const Product large{8192, 8192, 8192, HGEMM_F16, "tn"}, gemv{1, 8192, 8192, HGEMM_F16, "tn"};
    EXPECT_NEAR(ideal_us(large), 2.0 * 8192 * 8192 * 8192 / 800e12 * 1e6 + 2, 1e-9);
    EXPECT_STREQ(bound_of(large), "compute");
    EXPECT_NEAR(ideal_us(gemv), 2.0 * (8192 + 8192 + 8192.0 * 8192) / 4.3e12 * 1e6 + 2, 1e-9);
    EXPECT_STREQ(bound_of(gemv), "memory");
    EXPECT_NEAR(large.intensity(), 8192 / 3.0, 1e-9);
}

// Every product of the three main sets has a goal of its own besides the common one.
TEST(Regions, goals_cover_the_sets_once)
{
    for (const char* set : {"llm", "grid", "odd", "mirror"})
        for (const Product& p : set_of(set)) {
            int count = 0;
            for (const Goal& goal : goals())
                count += goal.has(p);
            EXPECT_EQ(count, std::string(set) == "llm" || std::string(set) == "grid" ? 2 : 1)
                << set << " " << p.shape();
        }
}

TEST(Statistics, quantiles_and_geomean)
{
    EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
    EXPECT_DOUBLE_EQ(median({1, 2, 3, 4}), 2.5);
    EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.05), 0.5);
    EXPECT_TRUE(std::isnan(median({})));
    EXPECT_NEAR(geomean({0.5, 2}), 1, 1e-12);
    const Spread s = spread_of({0.97, unknown, 0.98, 1.1, 1.2});
    EXPECT_EQ(s.count, 4u);
    EXPECT_DOUBLE_EQ(s.below, 0.25);
    EXPECT_DOUBLE_EQ(s.p50, 1.04);
    EXPECT_EQ(spread_of({unknown}).count, 0u);
}

}  // namespace
}  // namespace hg::bench
