// A host handle beside a CUDA driver, which is a stand-in here.
#include "message.hpp"
#include "src/tools/support/environment.hpp"

#include "hgemm.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace hg::test {
namespace {

constexpr const char* driver_name = "libcuda.so.1";

bool has_gpu_backends() { return contains(hgemm_build_info(), "sm80"); }

// First, while nothing else has loaded the driver.
TEST(OtherDriver, IsNotLoadedWhereTheHostIsAskedFor)
{
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    const Variable backend("HGEMM_BACKEND", "host");
    ASSERT_EQ(hgemm_create(&handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(dlopen(driver_name, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(OtherDriver, WhoseDeviceNoBackendServesIsNotPassedOverInSilence)
{
    hgemm_handle_t handle = nullptr;
    for (int i = 0; i < 2; ++i) {
        const hgemm_status_t status = hgemm_create(&handle);
        if (has_gpu_backends()) {  // to which this driver is too old
            EXPECT_EQ(status, HGEMM_STATUS_SUCCESS) << hgemm_last_error();
            hgemm_destroy(handle);
            continue;
        }
        EXPECT_EQ(status, HGEMM_STATUS_NOT_SUPPORTED);
        EXPECT_EQ(handle, nullptr);
        EXPECT_STREQ(
            hgemm_last_error(),
            "hgemm_create: this libhgemm was built without GPU backends, and the CUDA driver sees 1 "
            "device; "
            "ask for the host by hgemm_create_on(&handle, HGEMM_DEVICE_HOST) or HGEMM_BACKEND=host");
    }
    EXPECT_EQ(hgemm_create_on(&handle, 0), HGEMM_STATUS_NO_DEVICE);
}

// With the driver loaded, products whose operands lie in host memory until one is put elsewhere.
class DeviceMemory : public testing::Test {
protected:
    DeviceMemory()
    {
        void* const driver = dlopen(driver_name, RTLD_NOW);
        device = static_cast<uint16_t*>(dlsym(driver, "stand_in_device_memory"));
        managed = static_cast<uint16_t*>(dlsym(driver, "stand_in_managed_memory"));
        EXPECT_EQ(hgemm_create_on(&handle, HGEMM_DEVICE_HOST), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        hgemm_args_init(&args, sizeof args);
        args.m = args.n = args.k = args.lda = args.ldb = args.ldc = args.ldd = args.ldaux = 8;
        args.beta = 1;
        args.a = &memory[0];
        args.b = &memory[64];
        args.c = &memory[128];
        args.d = &memory[192];
    }
    ~DeviceMemory() override { hgemm_destroy(handle); }

    template <typename Change>
    void refused(const char* name, Change change)
    {
        hgemm_args_t wrong = args;
        change(wrong);
        expect_invalid(hgemm_gemm_ex(handle, &wrong), 2, "(args->" + std::string(name) + ") is 0x");
        EXPECT_TRUE(
            contains(hgemm_last_error(), ", memory of a GPU, must be host memory for a handle on the host"))
            << hgemm_last_error();
    }

    hgemm_handle_t handle = nullptr;
    uint16_t *device, *managed;
    std::vector<uint16_t> memory = std::vector<uint16_t>(1024);
    hgemm_args_t args;
};

TEST_F(DeviceMemory, IsRefusedByAHandleOnTheHost)
{
    EXPECT_EQ(hgemm_gemm_ex(handle, &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    refused("a", [&](auto& g) { g.a = device; });
    refused("b", [&](auto& g) { g.b = device + 5; });
    refused("c", [&](auto& g) { g.c = device; });
    refused("d", [&](auto& g) { g.d = device; });
    refused("aux", [&](auto& g) { g.aux = device; });
    refused("bias", [&](auto& g) { g.bias = device, g.bias_mode = HGEMM_BIAS_M; });
    refused("alpha_device", [&](auto& g) { g.alpha_device = reinterpret_cast<const float*>(device); });
    refused("beta_device", [&](auto& g) { g.beta_device = reinterpret_cast<const float*>(device); });
    args.beta = 0;
    args.c = device;
    EXPECT_EQ(hgemm_gemm_ex(handle, &args), HGEMM_STATUS_SUCCESS)
        << "C is not read: " << hgemm_last_error();
}

TEST_F(DeviceMemory, IsRefusedInArrays)
{
    const void* pointers[3] = {device, &memory[64], &memory[192]};
    args.beta = 0;
    args.a_array = &pointers[0];
    args.b_array = &pointers[1];
    args.d_array = const_cast<void* const*>(&pointers[2]);
    refused("a_array[0]", [](auto&) {});
    refused("b_array",
            [&](auto& g) { pointers[0] = &memory[0], g.b_array = reinterpret_cast<void**>(device); });
}

TEST_F(DeviceMemory, IsRefusedByTheOtherFunctions)
{
    uint16_t *a = &memory[0], *x = &memory[100], *y = &memory[200];
    expect_invalid(hgemv_n(handle, 8, 8, 1, device, 8, x, 1, 0, y, 1), 5, "(A) is 0x");
    expect_invalid(hgemv_n(handle, 8, 8, 1, a, 8, device, 1, 0, y, 1), 7, "(x) is 0x");
    expect_invalid(hgemv_n(handle, 8, 8, 1, a, 8, x, 1, 0, device, 1), 10, "(y) is 0x");
    expect_invalid(hgemm_nn(handle, 8, 8, 8, 1, device, 8, a, 8, 0, y, 8), 6, "(A) is 0x");
    hgemm_grouped_args_t grouped;
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    grouped.group_count = 1;
    grouped.offsets = reinterpret_cast<const int64_t*>(device);
    expect_invalid(hgemm_grouped_ex(handle, &grouped), 2, "argument 2 (args->lda)");
    grouped.lda = grouped.ldd = grouped.ldb = 1;
    expect_invalid(hgemm_grouped_ex(handle, &grouped), 2, "(args->offsets) is 0x");
}

TEST_F(DeviceMemory, ThatIsManagedIsServed)
{
    args.a = managed;
    EXPECT_EQ(hgemm_gemm_ex(handle, &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

}  // namespace
}  // namespace hg::test
