// Calibrations: their lines in a tuning file, and what cost models make of them.
#include "src/plan/calibration.hpp"

#include "tuning_fixture.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace hg {
namespace {

constexpr const char* date = "2026-01-31";

// Lines for all kernels of a backend, each with the same factors.
std::string lines_of(const char* name, const Factors& common, const Factors& own = {})
{
    for (const Backend* backend : all_backends())
        if (std::string(backend->name) == name) {
            std::string text = calibration_line(name, common, backend->kernel_count, date);
            for (int i = 0; i < backend->kernel_count; ++i)
                text += calibration_line(backend->kernels[i].name, own, -1, date);
            return text;
        }
    return "";
}

Factors with(double Factors::*which, double value)
{
    Factors factors;
    factors.*which = value;
    return factors;
}

constexpr int64_t shapes[][3] = {{1, 4096, 4096},   {64, 4096, 4096},   {300, 2112, 7168},
                                 {4096, 4096, 64},  {4096, 4096, 4096}, {128, 128, 16384},
                                 {511, 1023, 1025}, {16384, 64, 16384}};

TEST(Calibration, LineIsReadAsItIsWritten)
{
    const Factors factors{.multiply = 1.25, .cycles = 0.5, .memory = 8, .l2 = 0.125, .fixed = 1};
    const std::string of_backend = calibration_line("sm80", factors, 25, date);
    EXPECT_EQ(of_backend, "calibration sm80 multiply=1.2500 cycles=0.5000 memory=8.0000 l2=0.1250 "
                          "fixed=1.0000 kernels=25 date=2026-01-31\n");
    CalibrationLine line;
    ASSERT_EQ(read_calibration_line(std::string_view(of_backend).substr(0, of_backend.size() - 1), line),
              nullptr);
    EXPECT_EQ(line.name, "sm80");
    EXPECT_EQ(line.factors, factors);
    EXPECT_EQ(line.kernels, 25);
    EXPECT_EQ(line.line(), of_backend);
    EXPECT_EQ(calibration_line("sm80_x", with(&Factors::fixed, 2), -1, date),
              "calibration sm80_x fixed=2.0000 date=2026-01-31\n");
}

TEST(Calibration, FactorsMultiply)
{
    const Factors x{.multiply = 1, .cycles = 2, .memory = 3, .l2 = 4, .fixed = 5};
    const Factors y{.multiply = 2, .cycles = 3, .memory = 4, .l2 = 5, .fixed = 6};
    EXPECT_EQ(x * y, (Factors{.multiply = 2, .cycles = 6, .memory = 12, .l2 = 20, .fixed = 30}));
}

TEST_F(TuningFile, BadCalibrationLinesAreSkipped)
{
    NEEDS_CUDA_BUILD();
    const std::pair<const char*, const char*> bad[] = {
        {"", "a calibration has no name"},
        {" sm80", "a calibration must end with its date"},
        {" sm80 cycles=1", "a calibration must end with its date"},
        {" sm80 date=2026-1-31", "a calibration must end with its date"},
        {" sm80 date=", "a calibration must end with its date"},
        {" sm80 date=2026-01-31 cycles=1", "a calibration must end with its date"},
        {" sm80 speed=1 date=2026-01-31", "a calibration has no factor of that name"},
        {" sm80 cycles date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 cycles= date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 cycles=nan date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 cycles=inf date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 cycles=-1 date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 cycles=1e300 date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 cycles=0.1 date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 cycles=1x date=2026-01-31", "a factor must be a number from 0.125 to 8"},
        {" sm80 kernels=-1 date=2026-01-31", "the kernels of a calibration must be a number"},
        {" sm80 kernels=99999999999 date=2026-01-31", "the kernels of a calibration must be a number"}};
    for (const auto& [text, why] : bad) {
        write(header() + "calibration" + text + '\n' + line(layer, splitk));
        open();
        EXPECT_TRUE(is_tuned(layer)) << text;
        EXPECT_EQ(handle.device.calibration, nullptr) << text;
        EXPECT_TRUE(contains(log(), std::string("line 4 is skipped: ") + why)) << text << log();
    }
}

TEST_F(TuningFile, CalibrationIsUsedIfItIsWhole)
{
    NEEDS_CUDA_BUILD();
    const std::string good = lines_of("sm90", with(&Factors::memory, 2));
    write(header() + good + line(layer, splitk));
    open();
    EXPECT_NE(handle.device.calibration, nullptr);
    EXPECT_TRUE(is_tuned(layer));
    EXPECT_TRUE(contains(log(), "backend sm90 is calibrated")) << log();
    EXPECT_EQ(plan(linear_layer(64, 4096, 8192)).why, Why::Calibrated);
    const size_t second = good.find('\n') + 1;
    const std::pair<std::string, const char*> broken[] = {
        {good.substr(second), "it has no line of its own"},
        {good.substr(0, good.rfind("calibration")), "kernels, not "},
        {good + calibration_line("sm90", {}, 3, date), "kernels, not 3"},
        {calibration_line("sm90", {}, -1, date), "it has lines of 0 kernels, not -1"},
        {calibration_line("host", {}, 0, date), "the backend has no cost model"}};
    for (const auto& [text, why] : broken) {
        write(header() + text + line(layer, splitk));
        open();
        EXPECT_EQ(handle.device.calibration, nullptr) << text;
        EXPECT_TRUE(contains(log(), " is not used: ")) << log();
        EXPECT_TRUE(contains(log(), why)) << log();
        EXPECT_TRUE(is_tuned(layer));
        EXPECT_NE(plan(linear_layer(64, 4096, 8192)).why, Why::Calibrated);
    }
    write(header() + good + calibration_line("sm77", {}, 0, date));  // of a backend that there is not
    open();
    EXPECT_NE(handle.device.calibration, nullptr);
}

TEST_F(TuningFile, CalibrationOfNothingChangesNoPrediction)
{
    NEEDS_CUDA_BUILD();
    const std::pair<Device, const char*> cards[] = {{a100, "sm80"}, {rtx5090, "sm120"}, {b200, "sm100"}};
    for (const auto& [device, backend] : cards) {
        fs::remove(path);
        open(device);
        std::vector<Plan> plans;
        for (const auto& [m, n, k] : shapes)
            plans.push_back(plan(linear_layer(m, n, k)));
        write(header(device) + lines_of(backend, {}) + lines_of("sm80", {}));
        open(device);
        ASSERT_NE(handle.device.calibration, nullptr);
        for (size_t i = 0; const auto& [m, n, k] : shapes) {
            const Plan now = plan(linear_layer(m, n, k));
            EXPECT_EQ(kernel_of(now), kernel_of(plans[i])) << m << 'x' << n << 'x' << k;
            EXPECT_EQ(now.split, plans[i].split);
            EXPECT_EQ(now.predicted_us, plans[i].predicted_us);
            EXPECT_EQ(now.why, Why::Calibrated);
            ++i;
        }
    }
}

// The networks and the measured exceptions are of other devices.
TEST_F(TuningFile, CalibrationSwitchesOffWhatIsFittedToOtherCards)
{
    NEEDS_CUDA_BUILD();
    write(header() + lines_of("sm90", {}));
    open();
    for (const auto& [m, n, k] : shapes) {
        const Problem problem = linear_layer(m, n, k);
        const Plan now = plan(problem);
        EXPECT_EQ(now.why, Why::Calibrated) << m << 'x' << n << 'x' << k;
        if (!now.repacks() && std::string(now.backend->name) == "sm90") {
            EXPECT_EQ(now.predicted_us, now.backend->predict_plan(problem, h200, now, h200.sm_count));
        }
    }
}

TEST_F(TuningFile, EachFactorMakesSomePredictionLonger)
{
    NEEDS_CUDA_BUILD();
    const std::pair<Device, const char*> cards[] = {
        {a100, "sm80"}, {rtx5090, "sm120"}, {b200, "sm100"}, {h200, "sm90"}};
    for (const auto& [device, name] : cards)
        for (const NamedFactor& factor : named_factors) {
            write(header(device) + lines_of(name, with(factor.value, 4)));
            open(device);
            double longest = 1;
            for (const auto& [m, n, k] : shapes) {
                const Problem problem = linear_layer(m, n, k);
                const Chosen own = choose(device, problem, name, "", 64 * mib);
                if (own.plan.repacks() || std::string(own.plan.backend->name) != name)
                    continue;
                const auto predict = own.plan.backend->predict_plan;
                const double ratio = predict(problem, handle.device, own.plan, device.sm_count) /
                                     predict(problem, device, own.plan, device.sm_count);
                EXPECT_GE(ratio, 1) << name << ' ' << factor.name;
                EXPECT_LE(ratio, 4.001) << name << ' ' << factor.name;
                longest = std::max(longest, ratio);
            }
            EXPECT_GT(longest, 1.2) << name << ' ' << factor.name;
        }
}

TEST_F(TuningFile, CalibrationOfAKernelIsItsOwn)
{
    NEEDS_CUDA_BUILD();
    fs::remove(path);
    open(a100);
    const Problem problem = linear_layer(4096, 4096, 4096);
    const std::string fastest = kernel_of(plan(problem));
    write(header(a100) + calibration_line("sm80", {}, 1, date) +
          calibration_line(fastest, with(&Factors::cycles, 4), -1, date));
    open(a100);
    ASSERT_NE(handle.device.calibration, nullptr);
    EXPECT_NE(kernel_of(plan(problem)), fastest);
}

// In batch-invariant mode a calibration chooses a kernel, but no backend: that could depend on M.
TEST_F(TuningFile, CalibrationKeepsTheBackendOfTheBatchInvariantMode)
{
    NEEDS_CUDA_BUILD();
    write(header(rtx5090) + lines_of("sm120", with(&Factors::cycles, 8)));
    open(rtx5090);
    const Problem problem = linear_layer(4096, 4096, 4096);
    EXPECT_STREQ(plan(problem).backend->name, "sm80");
    handle.options.mode = Mode::BatchInvariant;
    handle.cache->clear();
    for (const int64_t m : {1, 16, 100, 1024, 4096}) {
        const Problem layers = linear_layer(m, 4096, 4096);
        Options options{};
        options.mode = Mode::BatchInvariant;
        options.workspace = handle.planning_options().workspace;
        options.counters = handle.planning_options().counters;
        Plan usual{};
        ASSERT_EQ(make_plan(layers, rtx5090, options, handle.served_by(), usual), ok);
        EXPECT_EQ(plan(layers).backend, usual.backend) << m;
    }
}

}  // namespace
}  // namespace hg
