// The model against published measurements, and against what the emulator counts.
#include "arch/sm100/kernels.hpp"
#include "arch/sm100/model.hpp"
#include "counts.hpp"
#include "ladder.hpp"
#include "tables.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace hg::evidence {
namespace {

constexpr double bound = 0.15;

TEST(Model, PublishedTimes)
{
    for (const Rung& rung : rungs())
        EXPECT_TRUE(rung.outside || std::abs(rung.error()) < bound) << rung.source << ' ' << rung.name;
}

TEST(Model, PublishedSteps)
{
    int steps = 0;
    for (const Rung& rung : rungs()) {
        const Rung* earlier = before(rung);
        if (!earlier || rung.outside || earlier->outside)
            continue;
        ++steps;
        EXPECT_LT(std::abs(step_error(rung, *earlier)), bound) << rung.source << ' ' << rung.name;
    }
    EXPECT_GE(steps, 14);
}

TEST(Model, PublishedLoadAndClock)
{
    for (const Rung& rung : rungs())
        if (const Load* load = load_of(rung)) {
            const sm100::Prediction p = rung.predicted();
            EXPECT_LT(std::abs(p.ghz / load->ghz - 1), 0.05) << rung.source << ' ' << rung.name;
            EXPECT_LT(std::abs(p.busy / load->busy - 1), bound) << rung.source << ' ' << rung.name;
        }
}

// A kernel is left out only because the model is wrong about it.
TEST(Model, WhatIsOutsideIsMissed)
{
    for (const Rung& rung : rungs())
        EXPECT_TRUE(!rung.outside || std::abs(rung.error()) > bound) << rung.source << ' ' << rung.name;
}

TEST(Model, CommittedTableIsItsOwn)
{
    std::ifstream file(SM100_MODEL);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find(ladder_table()), std::string::npos) << "sm100-evidence writes " SM100_MODEL;
}

// The bytes and flop that the model takes for a k tile are those that the kernel moves and multiplies.
TEST(Model, AgreesWithTheEmulator)
{
    for (int kernel = 0; kernel < sm100::kernel_count; ++kernel) {
        const sm100::Pipeline pipeline = sm100::pipeline_of(sm100::configs[kernel], 1);
        const Counts counts = count(SM100_IMAGE, kernel);
        const double loaded = sm100::k_tile(pipeline).bytes * static_cast<double>(counts.cta_k_tiles);
        EXPECT_EQ(counts.hazards, 0u) << sm100::kernels[kernel].name;
        EXPECT_GE(static_cast<double>(counts.bulk_bytes), loaded) << sm100::kernels[kernel].name;
        // What is not an operand is at most the output.
        const double output = static_cast<double>(counts.stores) * sm100::staging_buffer_bytes;
        EXPECT_LE(static_cast<double>(counts.bulk_bytes), loaded + output) << sm100::kernels[kernel].name;
    }
}

}  // namespace
}  // namespace hg::evidence
