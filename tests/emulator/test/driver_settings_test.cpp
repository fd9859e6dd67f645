// The emulated driver's environment variables, each in a process of its own, and what it says of launches
// that cannot be.
#include "driver_fixture.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>

using namespace emu::test;

namespace {

std::string contents(const std::string& path)
{
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

// Runs in a new process: what went wrong is printed, and ends it.
void check(bool right, const char* what)
{
    if (right)
        return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::_Exit(1);
}
#define CHECK(condition) check(condition, #condition)

CUfunction scale_on(int ordinal, CUcontext* context)
{
    CUmodule module = nullptr;
    CUfunction scale = nullptr;
    CHECK(CU(cuDevicePrimaryCtxRetain)(context, ordinal) == success);
    CHECK(CU(cuCtxSetCurrent)(*context) == success);
    CHECK(CU(cuModuleLoadData)(&module, kernels_ptx) == success);
    CHECK(CU(cuModuleGetFunction)(&scale, module, "scale") == success);
    return scale;
}

CUresult run(CUfunction scale, CUdeviceptr x, unsigned n)
{
    float factor = 3;
    void* parameters[] = {&x, &factor, &n};
    CHECK(CU(cuLaunchKernel)(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) == success);
    return CU(cuCtxSynchronize)();
}

[[noreturn]] void use_two_devices()
{
    setenv("EMU_DEVICES", "2", 1);
    int count = 0;
    CUdevice third = 0;
    CHECK(CU(cuInit)(0) == success);
    CHECK(CU(cuDeviceGetCount)(&count) == success && count == 2);
    CHECK(CU(cuDeviceGet)(&third, 2) == CUDA_ERROR_INVALID_DEVICE);
    CUdeviceptr memory[2];
    CUcontext context[2];
    CUfunction scale[2];
    for (int ordinal = 0; ordinal < 2; ++ordinal) {
        scale[ordinal] = scale_on(ordinal, &context[ordinal]);
        const float value = 2.0f + static_cast<float>(ordinal);
        CHECK(CU(cuMemAlloc)(&memory[ordinal], 4) == success);
        CHECK(CU(cuMemcpyHtoD)(memory[ordinal], &value, 4) == success);
        int device = -1;
        CHECK(CU(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[ordinal]) ==
              success);
        CHECK(device == ordinal);
    }
    for (int ordinal = 0; ordinal < 2; ++ordinal) {
        float value = 0;
        CHECK(CU(cuCtxSetCurrent)(context[ordinal]) == success);
        CHECK(run(scale[ordinal], memory[ordinal], 1) == success);
        CHECK(CU(cuMemcpyDtoH)(&value, memory[ordinal], 4) == success);
        CHECK(value == (ordinal == 0 ? 6.0f : 9.0f));
    }
    CHECK(run(scale[1], memory[0], 1) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(CU(cuCtxSetCurrent)(context[0]) == success);
    CHECK(run(scale[0], memory[0], 1) == success);
    std::_Exit(0);
}

[[noreturn]] void refuse_devices(const char* count)
{
    setenv("EMU_DEVICES", count, 1);
    CHECK(CU(cuInit)(0) == CUDA_ERROR_INVALID_VALUE);
    std::_Exit(0);
}

[[noreturn]] void write_reports(const char* path)
{
    setenv("EMU_REPORT", path, 1);
    CHECK(CU(cuInit)(0) == success);
    CUcontext context = nullptr;
    const CUfunction scale = scale_on(0, &context);
    CUdeviceptr memory = 0;
    CHECK(CU(cuMemAlloc)(&memory, 4) == success);
    CHECK(run(scale, memory, 1) == success);
    CHECK(run(scale, memory, 2) == CUDA_ERROR_ILLEGAL_ADDRESS);
    std::_Exit(0);
}

// A kernel without a wait, launched behind others and beside their end.
[[noreturn]] void start_early()
{
    setenv("EMU_DEPENDENT", "1", 1);
    setenv("EMU_STRICT", "1", 1);
    CHECK(CU(cuInit)(0) == success);
    CUcontext context = nullptr;
    const CUfunction scale = scale_on(0, &context);
    CUdeviceptr memory = 0;
    CHECK(CU(cuMemAlloc)(&memory, 4) == success);
    float factor = 3;
    unsigned n = 1;
    void* parameters[] = {&memory, &factor, &n};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(CU(cuLaunchKernelEx)(&config, scale, parameters, nullptr) == success);
    CHECK(CU(cuCtxSynchronize)() == success);
    attribute.value.programmaticStreamSerializationAllowed = 1;
    const CUresult launched = CU(cuLaunchKernelEx)(&config, scale, parameters, nullptr);
    CHECK(launched == CUDA_ERROR_LAUNCH_FAILED || CU(cuCtxSynchronize)() == CUDA_ERROR_LAUNCH_FAILED);
    std::_Exit(0);
}

struct Attribute {
    CUdevice_attribute attribute;
    int value;
};

[[noreturn]] void describe(const char* architecture, std::initializer_list<Attribute> expected)
{
    setenv("EMU_ARCH", architecture, 1);
    CHECK(CU(cuInit)(0) == success);
    for (const Attribute& a : expected) {
        int value = -1;
        CHECK(CU(cuDeviceGetAttribute)(&value, a.attribute, 0) == success);
        if (value != a.value)
            std::fprintf(stderr, "attribute %d is %d, not %d\n", a.attribute, value, a.value);
        CHECK(value == a.value);
    }
    std::_Exit(0);
}

class SettingsDeathTest : public testing::Test {
protected:
    SettingsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SettingsDeathTest, TwoDevicesHaveMemoriesOfTheirOwn)
{
    EXPECT_EXIT(use_two_devices(), testing::ExitedWithCode(0), "out-of-bounds");
}

TEST_F(SettingsDeathTest, AnArchitectureHasLimitsOfItsOwn)
{
    constexpr int kib = 1024;
    for (const char* name : {"sm_107", "sm_107a", "sm_107f"})
        EXPECT_EXIT(describe(name, {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 10},
                                    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 7},
                                    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024},
                                    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16},
                                    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 * kib},
                                    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 * kib}}),
                    testing::ExitedWithCode(0), "");
    EXPECT_EXIT(describe("sm_103", {{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
                                    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32}}),
                testing::ExitedWithCode(0), "");
    EXPECT_EXIT(describe("sm_108", {}), testing::ExitedWithCode(1), "sm_108 is no architecture");
}

TEST_F(SettingsDeathTest, DeviceCountsAreRefusedByName)
{
    EXPECT_EXIT(refuse_devices("9"), testing::ExitedWithCode(0), "EMU_DEVICES is '9', must be 0 to 8");
    EXPECT_EXIT(refuse_devices("two"), testing::ExitedWithCode(0), "EMU_DEVICES is 'two'");
}

TEST_F(SettingsDeathTest, LaunchesThatStartEarlyMustWait)
{
    EXPECT_EXIT(start_early(), testing::ExitedWithCode(0), "early-access");
}

TEST_F(SettingsDeathTest, ReportsAreAppendedToAFile)
{
    // The tests of other architectures run at the same time.
    const char* architecture = std::getenv("EMU_ARCH");
    const std::string path =
        testing::TempDir() + "emulator_report_" + (architecture ? architecture : "default") + ".txt";
    // The new process comes here as well.
    const bool parent = testing::GTEST_FLAG(internal_run_death_test).empty();
    if (parent)
        std::ofstream(path) << "before\n";
    EXPECT_EXIT(write_reports(path.c_str()), testing::ExitedWithCode(0), "out-of-bounds");
    const std::string text = contents(path);
    EXPECT_EQ(text.find("before\nfault: out-of-bounds"), 0u) << text;
    EXPECT_NE(text.find("in scale"), std::string::npos) << text;
    EXPECT_NE(text.find("ld.global.f32"), std::string::npos) << text;
    std::remove(path.c_str());
    EXPECT_EXIT(write_reports("/nowhere/report.txt"), testing::ExitedWithCode(0),
                "EMU_REPORT: cannot write /nowhere/report.txt");
}

// ---- Launches that cannot be ------------------------------------------------------------------------
TEST_F(Driver, SaysWhatIsWrongWithALaunch)
{
    const CUfunction small = kernel("small_blocks"), scale = kernel("scale");
    const auto complaint = [](CUresult result, CUresult expected) {
        EXPECT_CU(result, expected);
        return testing::internal::GetCapturedStderr();
    };
    const auto shape = [&](unsigned grid, unsigned block, unsigned shared) {
        testing::internal::CaptureStderr();
        return CU(cuLaunchKernel)(small, grid, 1, 1, block, 1, 1, shared, nullptr, nullptr, nullptr);
    };
    const auto cluster = [&](unsigned blocks) {
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim = {blocks, 1, 1};
        CUlaunchConfig config{};
        config.gridDimX = 3, config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
        config.attrs = &attribute, config.numAttrs = 1;
        testing::internal::CaptureStderr();
        return CU(cuLaunchKernelEx)(&config, small, nullptr, nullptr);
    };
    const auto invalid = CUDA_ERROR_INVALID_VALUE;
    const std::string said[] = {
        complaint(shape(0, 32, 0), invalid) + "a grid of 0 x 1 x 1 blocks",
        complaint(shape(1, 65, 0), invalid) + "a block of 65 x 1 x 1 threads is larger than .maxntid",
        complaint(shape(1, 64, 1 << 20), invalid) + "1048576 bytes of dynamic shared memory, at most 49152",
        complaint(cluster(2), CUDA_ERROR_INVALID_CLUSTER_SIZE) +
            (cc < 90 ? "a cluster of 2 x 1 x 1: clusters need sm_90"
                     : "a cluster of 2 x 1 x 1 does not divide the grid of 3 x 1 x 1")};
    for (const std::string& text : said) {
        const size_t end = text.rfind('\n') + 1;
        EXPECT_NE(text.find(text.substr(end)), end) << text;
        EXPECT_NE(text.find("in small_blocks, "), std::string::npos) << text;
        EXPECT_NE(text.find(": .visible .entry small_blocks()"), std::string::npos) << text;
    }
    testing::internal::CaptureStderr();
    const CUdeviceptr x = 0;
    void* one[] = {const_cast<CUdeviceptr*>(&x), nullptr, nullptr};
    const std::string missing =
        complaint(CU(cuLaunchKernel)(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, one, nullptr), invalid);
    EXPECT_NE(missing.find("parameter 1 is missing"), std::string::npos) << missing;
    EXPECT_NE(missing.find(": .visible .entry scale("), std::string::npos) << missing;
}

}  // namespace
