// A handle on a device of which nothing runs, with a tuning file.
#pragma once

#include "devices.hpp"
#include "src/run/execute.hpp"
#include "src/tools/support/environment.hpp"
#include "src/tuning/key.hpp"
#include "src/tuning/tuning.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace hg {

namespace fs = std::filesystem;

constexpr size_t mib = size_t{1} << 20;
constexpr const char* measured = " us=12.5 built_in_us=13 spread=0.004 date=2026-01-31\n";
constexpr const char* splitk = "sm90_splitk_64x64/split=2/swap_ab=1/pdl=late";

inline bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

inline std::string header(const Device& device = h200)
{
    return TuningOrigin(device, device.sm_count).header();
}

inline std::string line(const std::string& key, const std::string& kernel)
{
    return key + ' ' + kernel + measured;
}

inline std::string line(const Problem& problem, const std::string& kernel, Mode mode = Mode::Default)
{
    return line(tuning_key(problem, mode), kernel);
}

inline std::string kernel_of(const Plan& plan) { return plan.backend->kernels[plan.kernel].name; }

class TuningFile : public testing::Test {
protected:
    TuningFile()
    {
        std::string name = testing::TempDir() + "hgemm_tuning_XXXXXX";
        folder = mkdtemp(name.data());
        path = folder / "file";
    }
    ~TuningFile() override { fs::remove_all(folder); }

    void write(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
    Handle& open(const Device& device = h200, const char* backend = "")
    {
        handle = {};
        handle.device = device;
        handle.all_sm_count = device.sm_count;
        std::strcpy(handle.options.backend, backend);
        handle.cache = std::make_unique<PlanCache>();
        EXPECT_EQ(find_backends(device, handle.options, handle.backends, handle.backend_count), ok);
        set_workspace(192 * mib);
        lines.clear();
        handle.log.level = LogLevel::Plan;
        handle.log.logger = [](void* data, const char* text) {
            static_cast<std::vector<std::string>*>(data)->push_back(text);
        };
        handle.log.data = &lines;
        const test::Variable variable("HGEMM_TUNING", path);
        handle.tuning = Tuning::open(device, device.sm_count, handle.log);
        handle.device.calibration = handle.tuning ? handle.tuning->calibration() : nullptr;
        return handle;
    }
    void set_workspace(size_t bytes)
    {
        handle.own.bytes = bytes;
        handle.own.counter_words = bytes > 0 ? counter_words(handle.device, handle.served_by(), bytes) : 0;
    }
    Plan plan(const Problem& problem)
    {
        Plan decided{};
        EXPECT_EQ(decide(handle, problem, decided), ok) << hgemm_last_error();
        return decided;
    }
    bool is_tuned(const Problem& problem) { return plan(problem).why == Why::TunedHere; }
    // Is the file not used at all, and why?
    void expect_unused(const std::string& why)
    {
        open();
        EXPECT_FALSE(handle.tuning);
        EXPECT_TRUE(contains(log(), "is not used: " + why)) << log();
    }
    // Is the problem's line not used, and why?
    void expect_refused(const Problem& problem, const std::string& why)
    {
        EXPECT_FALSE(is_tuned(problem));
        EXPECT_TRUE(contains(log(), "is not used: " + why)) << log();
    }
    std::string log() const
    {
        std::string text;
        for (const std::string& each : lines)
            text += each + '\n';
        return text;
    }

    fs::path folder, path;
    Handle handle;
    std::vector<std::string> lines;
    const Problem layer = linear_layer(64, 4096, 4096);
};

}  // namespace hg
