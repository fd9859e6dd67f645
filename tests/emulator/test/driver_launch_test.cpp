// The emulated driver: images, kernels and launches.
#include "driver_fixture.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace emu::test;

namespace {

std::string with_target(const std::string& target)
{
    std::string text = kernels_ptx;
    return text.replace(text.find("sm_80"), 5, target);
}

// A fatbin of PTX texts; an entry may be marked as compressed or as machine code.
struct Entry {
    std::string target;
    uint16_t kind = 1;
    uint64_t flags = 0x11;
};
std::string fatbin(const std::vector<Entry>& entries)
{
    std::string body;
    for (const Entry& entry : entries) {
        std::string text = with_target(entry.target);
        text.resize((text.size() + 8) / 8 * 8, '\0');
        char header[64] = {};
        const uint16_t version = 0x101;
        const uint32_t header_bytes = sizeof header, architecture = std::stoul(entry.target.substr(3));
        const uint64_t bytes = text.size();
        std::memcpy(header, &entry.kind, 2);
        std::memcpy(header + 2, &version, 2);
        std::memcpy(header + 4, &header_bytes, 4);
        std::memcpy(header + 8, &bytes, 8);
        std::memcpy(header + 28, &architecture, 4);
        std::memcpy(header + 40, &entry.flags, 8);
        body.append(header, sizeof header).append(text);
    }
    const uint32_t magic = 0xba55ed50;
    const uint16_t version = 1, header_bytes = 16;
    const uint64_t bytes = body.size();
    std::string image(16, '\0');
    std::memcpy(image.data(), &magic, 4);
    std::memcpy(image.data() + 4, &version, 2);
    std::memcpy(image.data() + 6, &header_bytes, 2);
    std::memcpy(image.data() + 8, &bytes, 8);
    return image + body;
}

class Launch : public Driver {
protected:
    CUresult load(const std::string& image)
    {
        CUlibrary library = nullptr;
        const CUresult result =
            CU(cuLibraryLoadData)(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        if (result == success) {
            EXPECT_CU(CU(cuLibraryUnload)(library), success);
        }
        return result;
    }
    std::string refusal(const std::string& image, CUresult expected)
    {
        testing::internal::CaptureStderr();
        EXPECT_CU(load(image), expected);
        return testing::internal::GetCapturedStderr();
    }
    std::string sm(const char* suffix, int more = 0) { return "sm_" + std::to_string(cc + more) + suffix; }
};

std::string line_of(const std::string& text, const char* part)
{
    return std::to_string(1 + std::count(text.begin(), text.begin() + text.find(part), '\n'));
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// ---- Images -----------------------------------------------------------------------------------------
TEST_F(Launch, TakesPtxThatTheDeviceCanRun)
{
    EXPECT_CU(load(with_target("sm_80")), success);
    EXPECT_CU(load(with_target(sm(""))), success);
    EXPECT_CU(load(with_target("sm_70")), success);
    if (cc >= 90) {
        EXPECT_CU(load(with_target(sm("a"))), success);
    }
    if (cc >= 100) {
        EXPECT_CU(load(with_target(sm("f"))), success);
    }
    for (const std::string& wrong : {sm("", 1), sm("a", 1), std::string("sm_75a"), sm("f", 10)})
        EXPECT_TRUE(contains(refusal(with_target(wrong), CUDA_ERROR_NO_BINARY_FOR_GPU), wrong.c_str()))
            << wrong;
}

TEST_F(Launch, ExplainsImagesItCannotUse)
{
    EXPECT_TRUE(
        contains(refusal(fatbin({{"sm_80", 2}}), CUDA_ERROR_NO_BINARY_FOR_GPU), "HGEMM_EMBED_PTX=ON"));
    EXPECT_TRUE(contains(refusal(std::string("\x7f"
                                             "ELF\2\1\1"),
                                 CUDA_ERROR_NO_BINARY_FOR_GPU),
                         "HGEMM_EMBED_PTX=ON"));
    EXPECT_TRUE(
        contains(refusal(fatbin({{"sm_80", 1, 0x8011}}), CUDA_ERROR_NO_BINARY_FOR_GPU), "--no-compress"));
    EXPECT_TRUE(contains(refusal("\1\2\3\4\5\6\7", CUDA_ERROR_INVALID_IMAGE), "neither"));
    EXPECT_TRUE(contains(refusal(".version 8.0\nnonsense", CUDA_ERROR_INVALID_PTX), ".target"));
}

TEST_F(Launch, FindsTheBestPtxOfAFatbin)
{
    EXPECT_CU(load(fatbin({{"sm_80"}, {"sm_120a"}, {"sm_90", 2}})), success);
    // The text of the one that is chosen does not parse.
    std::string image = fatbin({{"sm_80"}, {sm("")}, {"sm_70"}});
    const size_t best = image.find(".target " + sm(""), image.find(".target sm_") + (cc == 80 ? 0 : 1));
    image.replace(best, 8, ".tarrget");
    if (cc > 80) {
        EXPECT_CU(load(image), CUDA_ERROR_INVALID_PTX);
    }
}

TEST_F(Launch, KeepsGlobalsOfAModule)
{
    CUdeviceptr counter = 0;
    size_t bytes = 0;
    kernel("scale");
    EXPECT_CU(CU(cuModuleGetGlobal)(&counter, &bytes, module, "counter"), success);
    EXPECT_EQ(bytes, 4u);
    unsigned value = 0;
    EXPECT_CU(CU(cuMemcpyDtoH)(&value, counter, 4), success);
    EXPECT_EQ(value, 5u);
    EXPECT_CU(CU(cuModuleGetGlobal)(&counter, &bytes, module, "none"), CUDA_ERROR_NOT_FOUND);
    CUfunction function;
    EXPECT_CU(CU(cuModuleGetFunction)(&function, module, "none"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Launch, ALibraryOutlivesAContext)
{
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    ASSERT_CU(CU(cuLibraryLoadData)(&library, kernels_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    ASSERT_CU(CU(cuLibraryGetKernel)(&kernel, library, "scale"));
    for (int round = 0; round < 2; ++round) {
        const CUdeviceptr x = upload({1, 2});
        EXPECT_CU(launch(reinterpret_cast<CUfunction>(kernel), x, 3, 2), success);
        EXPECT_EQ(download(x, 2), (std::vector<float>{3, 6}));
        EXPECT_CU(CU(cuDevicePrimaryCtxReset)(device), success);
    }
    EXPECT_CU(CU(cuLibraryUnload)(library), success);
    EXPECT_CU(CU(cuLibraryUnload)(library), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_CU(launch(reinterpret_cast<CUfunction>(kernel), 0, 3, 2), CUDA_ERROR_INVALID_HANDLE);
}

// ---- Launches ---------------------------------------------------------------------------------------
TEST_F(Launch, Runs)
{
    const CUdeviceptr x = upload(std::vector<float>(100, 2));
    EXPECT_CU(launch(kernel("scale"), x, 3, 99), success);
    const std::vector<float> result = download(x, 100);
    EXPECT_EQ(result[98], 6);
    EXPECT_EQ(result[99], 2);
}

TEST_F(Launch, TakesParametersAsABlock)
{
    const CUdeviceptr x = upload({2});
    struct {
        CUdeviceptr x;
        float a;
        unsigned n;
    } block = {x, 5, 1};
    size_t bytes = sizeof block;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    const CUfunction scale = kernel("scale");
    EXPECT_CU(CU(cuLaunchKernel)(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra), success);
    EXPECT_EQ(download(x, 1), std::vector<float>{10});
    bytes = 12;
    EXPECT_CU(CU(cuLaunchKernel)(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuLaunchKernel)(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, ChecksTheShape)
{
    const CUfunction stop = kernel("small_blocks");
    const auto shape = [&](unsigned grid, unsigned block, unsigned shared) {
        return CU(cuLaunchKernel)(stop, grid, 1, 1, block, 1, 1, shared, nullptr, nullptr, nullptr);
    };
    EXPECT_CU(shape(1, 64, 0), success);
    EXPECT_CU(shape(0, 64, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(shape(1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(shape(1, 65, 0), CUDA_ERROR_INVALID_VALUE);  // .maxntid
    EXPECT_CU(shape(1, 64, 48 * 1024), success);
    EXPECT_CU(shape(1, 64, 48 * 1024 + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuFuncSetAttribute)(stop, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * 1024),
              success);
    EXPECT_CU(shape(1, 64, 64 * 1024), success);
    EXPECT_CU(CU(cuFuncSetAttribute)(stop, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
              CUDA_ERROR_INVALID_VALUE);
    int threads = 0;
    EXPECT_CU(CU(cuFuncGetAttribute)(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, stop), success);
    EXPECT_EQ(threads, 64);
}

TEST_F(Launch, ChecksClusters)
{
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    const CUfunction function = kernel("small_blocks");
    const auto shape = [&](unsigned grid, unsigned cluster) {
        config.gridDimX = grid;
        attribute.value.clusterDim.x = cluster;
        attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
        return CU(cuLaunchKernelEx)(&config, function, nullptr, nullptr);
    };
    EXPECT_CU(shape(3, 1), success);
    EXPECT_CU(shape(4, 2), cc >= 90 ? success : CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_CU(shape(3, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_CU(shape(16, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    if (cc >= 90) {
        EXPECT_CU(CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                  success);
        EXPECT_CU(shape(16, 16), success);
    }
    EXPECT_CU(shape(4, 0), CUDA_ERROR_INVALID_VALUE);
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    EXPECT_CU(CU(cuLaunchKernelEx)(&config, function, nullptr, nullptr), success);
    attribute.id = static_cast<CUlaunchAttributeID>(99);
    EXPECT_CU(CU(cuLaunchKernelEx)(&config, function, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Launch, AFaultLosesTheContext)
{
    const CUdeviceptr x = upload({1, 2});
    testing::internal::CaptureStderr();
    EXPECT_CU(launch(kernel("scale"), x, 2, 3), success);
    EXPECT_CU(CU(cuStreamSynchronize)(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "scale"));
    EXPECT_TRUE(contains(EMU(emu_reports)(), "out-of-bounds"));
    EXPECT_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_CU(CU(cuMemFree)(x), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUcontext current = nullptr;
    EXPECT_CU(CU(cuCtxGetCurrent)(&current), success);
    EXPECT_EQ(current, context);
    EXPECT_CU(CU(cuDevicePrimaryCtxReset)(device), success);
    EXPECT_EQ(EMU(emu_live_allocations)(), 0);
    EXPECT_CU(CU(cuCtxSynchronize)(), success);
}

TEST_F(Launch, TellsFaultsApart)
{
    const CUdeviceptr x = upload({1, 2});
    testing::internal::CaptureStderr();
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    EXPECT_CU(launch(kernel("scale"), x + 2, 2, 1), CUDA_ERROR_MISALIGNED_ADDRESS);
    EXPECT_CU(CU(cuDevicePrimaryCtxReset)(device), success);
    module = nullptr;
    EXPECT_CU(CU(cuLaunchKernel)(kernel("stop"), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_CU(CU(cuDevicePrimaryCtxReset)(device), success);
    unsetenv("CUDA_LAUNCH_BLOCKING");
    testing::internal::GetCapturedStderr();
}

TEST_F(Launch, RefusesInstructionsItDoesNotKnow)
{
    std::string text = with_target("sm_80");
    text.replace(text.find("mul.f32"), 7, "sin.f64");
    ASSERT_CU(CU(cuModuleLoadData)(&module, text.c_str()));
    testing::internal::CaptureStderr();
    EXPECT_CU(launch(kernel("scale"), 0, 1, 1), CUDA_ERROR_INVALID_PTX);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(contains(said, ("sm_80.ptx:" + line_of(text, "sin.f64") + ": ").c_str())) << said;
    EXPECT_TRUE(contains(said, ": sin.f64 %f3, %f2, %f1;")) << said;
    EXPECT_CU(launch(kernel("shift"), 0, 1, 0), CUDA_ERROR_INVALID_VALUE);  // a grid of nothing
}

TEST_F(Launch, RefusesMalformedTextByLine)
{
    const std::string good = with_target("sm_80");
    std::string text = good;
    text.replace(text.find(".param .f32 a"), 13, ".param f32 a ");
    std::string said = refusal(text, CUDA_ERROR_INVALID_PTX);
    EXPECT_TRUE(contains(said, ("sm_80.ptx:" + line_of(text, ".param f32 a ") + ": ").c_str())) << said;

    // Bodies are read when they are needed.
    text = good;
    text.replace(text.find("ld.param.f32 %f1, [a]"), 21, "ld.param.f32 %f1  [a]");
    ASSERT_CU(CU(cuModuleLoadData)(&module, text.c_str()));
    const CUfunction scale = kernel("scale");
    int bytes = -1;
    for (int times = 0; times < 2; ++times) {
        testing::internal::CaptureStderr();
        EXPECT_CU(CU(cuFuncGetAttribute)(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, scale),
                  CUDA_ERROR_INVALID_PTX);
        EXPECT_CU(launch(scale, 0, 1, 1), CUDA_ERROR_INVALID_PTX);
        said = testing::internal::GetCapturedStderr();
        EXPECT_TRUE(contains(said, ("sm_80.ptx:" + line_of(text, "%f1  [a]") + ": ").c_str())) << said;
        EXPECT_TRUE(contains(said, "ld.param.f32 %f1  [a];")) << said;
    }
    EXPECT_CU(CU(cuFuncGetAttribute)(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel("shift")), success);
    EXPECT_EQ(bytes, 0);
}

TEST_F(Launch, ReportsOccupancy)
{
    const CUfunction function = kernel("scale");
    int blocks = 0;
    EXPECT_CU(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 128, 0), success);
    EXPECT_GE(blocks, 1);
    EXPECT_CU(CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 90 * 1024),
              success);
    EXPECT_CU(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 128, 90 * 1024), success);
    EXPECT_EQ(blocks, cc == 120 ? 1 : cc == 80 ? 1 : 2);
    EXPECT_CU(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 0, 0),
              CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
