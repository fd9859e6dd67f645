// The emulated driver: devices, contexts, memory, errors and images.
#include "driver_fixture.hpp"

#include <cstring>
#include <thread>

using namespace emu::test;

namespace {

TEST_F(Driver, NamesEntryPointsByVersion)
{
    EXPECT_EQ(entry_point("cuMemAlloc", 12000), driver_symbol("cuMemAlloc_v2"));
    EXPECT_EQ(entry_point("cuMemAlloc_v2", 12000), nullptr);
    EXPECT_EQ(entry_point("cuNoSuchCall", 12000), nullptr);
    EXPECT_EQ(entry_point("cuStreamGetCaptureInfo", 12000), driver_symbol("cuStreamGetCaptureInfo_v2"));
    EXPECT_EQ(entry_point("cuStreamGetCaptureInfo", 12030), driver_symbol("cuStreamGetCaptureInfo_v3"));
    EXPECT_EQ(entry_point("cuLibraryLoadData", 11080), nullptr);
    EXPECT_EQ(entry_point("cuEventElapsedTime", 12000), driver_symbol("cuEventElapsedTime"));
}

TEST_F(Driver, SaysWhatItDoesNotEmulate)
{
    const auto call = reinterpret_cast<int (*)()>(driver_symbol("cuMemcpy2D_v2"));
    testing::internal::CaptureStderr();
    EXPECT_EQ(call(), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("cuMemcpy2D_v2"), std::string::npos);
    EXPECT_EQ(entry_point("cuMemcpy2D", CUDA_VERSION), nullptr);
}

TEST_F(Driver, NamesErrors)
{
    const char* text = nullptr;
    EXPECT_CU(CU(cuGetErrorName)(CUDA_ERROR_MISALIGNED_ADDRESS, &text), success);
    EXPECT_STREQ(text, "CUDA_ERROR_MISALIGNED_ADDRESS");
    EXPECT_CU(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text), success);
    EXPECT_STREQ(text, "out of memory");
    EXPECT_CU(CU(cuGetErrorName)(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(text, nullptr);
}

TEST_F(Driver, DescribesTheDevice)
{
    int count = 0, value = 0;
    EXPECT_CU(CU(cuDeviceGetCount)(&count), success);
    EXPECT_EQ(count, 1);
    char name[64];
    EXPECT_CU(CU(cuDeviceGetName)(name, sizeof name, device), success);
    EXPECT_EQ(std::string(name), "emulated sm_" + std::to_string(cc));
    EXPECT_CU(
        CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device),
        success);
    EXPECT_EQ(value, (cc == 80 ? 163 : cc == 120 ? 99 : 227) * 1024);
    EXPECT_CU(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device), success);
    EXPECT_EQ(value, cc >= 90);
    EXPECT_CU(CU(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(9999), device),
              CUDA_ERROR_INVALID_VALUE);
    CUdevice other;
    EXPECT_CU(CU(cuDeviceGet)(&other, 1), CUDA_ERROR_INVALID_DEVICE);
}

// As driver 580.159.04 does.
TEST_F(Driver, EncodesTensorMapsOfAddressZero)
{
    alignas(64) CUtensorMap map;
    const cuuint64_t size[] = {64, 16}, stride[] = {256};
    const cuuint32_t box[] = {8, 4}, steps[] = {1, 1};
    const auto encode = [&](uint64_t base) {
        return CU(cuTensorMapEncodeTiled)(
            &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, reinterpret_cast<void*>(base), size, stride, box,
            steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    EXPECT_CU(encode(0), success);
    EXPECT_CU(encode(8), CUDA_ERROR_INVALID_VALUE);
}

// ---- Contexts ---------------------------------------------------------------------------------------
TEST_F(Driver, KeepsAStackOfContextsForEachThread)
{
    CUcontext other = nullptr, current = nullptr;
    const auto create =
        reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(driver_symbol("cuCtxCreate_v2"));
    EXPECT_CU(create(&other, 0, device), success);
    EXPECT_CU(CU(cuCtxGetCurrent)(&current), success);
    EXPECT_EQ(current, other);
    EXPECT_CU(CU(cuCtxPopCurrent)(&current), success);
    EXPECT_EQ(current, other);
    EXPECT_CU(CU(cuCtxGetCurrent)(&current), success);
    EXPECT_EQ(current, context);
    std::thread([&] {
        CUdevice found;
        EXPECT_CU(CU(cuCtxGetCurrent)(&current), success);
        EXPECT_EQ(current, nullptr);
        EXPECT_CU(CU(cuCtxGetDevice)(&found), CUDA_ERROR_INVALID_CONTEXT);
        CUdeviceptr memory;
        EXPECT_CU(CU(cuMemAlloc)(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
        EXPECT_CU(CU(cuCtxPopCurrent)(nullptr), CUDA_ERROR_INVALID_CONTEXT);
    }).join();
    EXPECT_CU(CU(cuCtxDestroy)(other), success);
    EXPECT_CU(CU(cuCtxPushCurrent)(other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_CU(CU(cuCtxDestroy)(context), CUDA_ERROR_INVALID_CONTEXT);  // a primary one is released
}

TEST_F(Driver, CountsRetainsOfThePrimaryContext)
{
    CUcontext again = nullptr;
    unsigned flags;
    int active = 0;
    EXPECT_CU(CU(cuDevicePrimaryCtxRetain)(&again, device), success);
    EXPECT_EQ(again, context);
    EXPECT_EQ(EMU(emu_live)("contexts"), 2);
    EXPECT_CU(CU(cuDevicePrimaryCtxRelease)(device), success);
    EXPECT_CU(CU(cuDevicePrimaryCtxGetState)(device, &flags, &active), success);
    EXPECT_EQ(active, 1);
    allocate(64);
    CUstream stream;
    EXPECT_CU(CU(cuStreamCreate)(&stream, 0), success);
    EXPECT_CU(CU(cuDevicePrimaryCtxRelease)(device), success);
    EXPECT_EQ(EMU(emu_live_allocations)(), 0);
    EXPECT_EQ(EMU(emu_live)("streams"), 0);
    CUdeviceptr memory;
    EXPECT_CU(CU(cuMemAlloc)(&memory, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_CU(CU(cuDevicePrimaryCtxRelease)(device), CUDA_ERROR_INVALID_CONTEXT);
    ASSERT_CU(CU(cuDevicePrimaryCtxRetain)(&context, device));
    EXPECT_CU(CU(cuCtxSetCurrent)(context), success);
    EXPECT_CU(CU(cuMemFree)(allocate(16)), success);
}

// ---- Memory -----------------------------------------------------------------------------------------
TEST_F(Driver, CopiesAndFillsWithinBounds)
{
    const CUdeviceptr a = upload({1, 2, 3, 4}), b = allocate(16);
    EXPECT_CU(CU(cuMemcpyDtoD)(b, a, 16), success);
    EXPECT_EQ(download(b, 4), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_CU(CU(cuMemsetD32)(b + 4, 0, 2), success);
    EXPECT_EQ(download(b, 4), (std::vector<float>{1, 0, 0, 4}));
    EXPECT_CU(CU(cuMemcpy)(b + 8, a, 8), success);
    EXPECT_EQ(download(b, 4), (std::vector<float>{1, 0, 1, 2}));
    EXPECT_CU(CU(cuMemcpyDtoD)(b, a, 17), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemsetD8)(b + 15, 1, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemsetD32)(b + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
    float host[4];
    EXPECT_CU(CU(cuMemcpyDtoH)(host, 4096, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemFree)(a + 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemFree)(a), success);
    EXPECT_CU(CU(cuMemFree)(a), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemFree)(0), success);
    EXPECT_CU(CU(cuMemFree)(b), success);
}

TEST_F(Driver, RunsOutOfMemory)
{
    size_t free = 0, total = 0;
    EXPECT_CU(CU(cuMemGetInfo)(&free, &total), success);
    CUdeviceptr memory = 0;
    EXPECT_CU(CU(cuMemAlloc)(&memory, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_CU(CU(cuMemAlloc)(&memory, 0), CUDA_ERROR_INVALID_VALUE);
    memory = allocate(1 << 20);
    size_t left = 0;
    EXPECT_CU(CU(cuMemGetInfo)(&left, &total), success);
    EXPECT_LE(left + (1 << 20), free);
    EXPECT_CU(CU(cuMemFree)(memory), success);
}

TEST_F(Driver, KnowsPointers)
{
    const CUdeviceptr memory = allocate(256);
    unsigned type = 0;
    CUcontext owner = nullptr;
    EXPECT_CU(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 255), success);
    EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
    EXPECT_CU(CU(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory), success);
    EXPECT_EQ(owner, context);
    EXPECT_CU(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 256),
              CUDA_ERROR_INVALID_VALUE);
    void* host = nullptr;
    EXPECT_CU(CU(cuMemHostAlloc)(&host, 100, 0), success);
    EXPECT_CU(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        reinterpret_cast<CUdeviceptr>(host)),
              success);
    EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
    CUdeviceptr base = 0;
    size_t bytes = 0;
    EXPECT_CU(CU(cuMemGetAddressRange)(&base, &bytes, memory + 100), success);
    EXPECT_EQ(base, memory);
    EXPECT_EQ(bytes, 256u);
    EXPECT_CU(CU(cuMemFreeHost)(host), success);
    EXPECT_CU(CU(cuMemFree)(memory), success);
}

TEST_F(Driver, RegistersHostMemory)
{
    std::vector<char> buffer(1000);
    EXPECT_CU(CU(cuMemHostRegister)(buffer.data(), buffer.size(), 0), success);
    EXPECT_CU(CU(cuMemHostRegister)(buffer.data() + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CUdeviceptr pointer = 0;
    EXPECT_CU(CU(cuMemHostGetDevicePointer)(&pointer, buffer.data(), 0), success);
    EXPECT_CU(CU(cuMemsetD8)(pointer, 7, 1000), success);
    EXPECT_EQ(buffer[999], 7);
    EXPECT_CU(CU(cuMemHostUnregister)(buffer.data()), success);
    EXPECT_CU(CU(cuMemHostUnregister)(buffer.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(Driver, MapsMemoryAtReservedAddresses)
{
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    size_t page = 0;
    EXPECT_CU(CU(cuMemGetAllocationGranularity)(&page, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
              success);
    CUdeviceptr base = 0;
    CUmemGenericAllocationHandle memory = 0;
    EXPECT_CU(CU(cuMemAddressReserve)(&base, 2 * page, 0, 0, 0), success);
    EXPECT_CU(CU(cuMemCreate)(&memory, page, &properties, 0), success);
    EXPECT_CU(CU(cuMemMap)(base, page, 0, memory, 0), success);
    EXPECT_CU(CU(cuMemMap)(base, page, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemsetD8)(base, 1, page), CUDA_ERROR_INVALID_VALUE);  // no access yet
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CU(CU(cuMemSetAccess)(base, page, &access, 1), success);
    EXPECT_CU(CU(cuMemsetD8)(base, 1, page), success);
    EXPECT_CU(CU(cuMemsetD8)(base, 1, page + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemAddressFree)(base, 2 * page), CUDA_ERROR_INVALID_VALUE);  // still mapped
    EXPECT_CU(CU(cuMemRelease)(memory), success);
    EXPECT_CU(CU(cuMemUnmap)(base, page), success);
    EXPECT_CU(CU(cuMemAddressFree)(base, 2 * page), success);
}

// ---- Injected faults --------------------------------------------------------------------------------
TEST_F(Driver, FailsTheCallItIsToldTo)
{
    EXPECT_EQ(EMU(emu_set_faults)("cuMemAlloc:2=OUT_OF_MEMORY,cuMemFree:1+=UNKNOWN"), 0);
    const CUdeviceptr memory = allocate(16);
    CUdeviceptr other = 0;
    EXPECT_CU(CU(cuMemAlloc)(&other, 16), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(EMU(emu_live_allocations)(), 1);
    other = allocate(16);
    EXPECT_CU(CU(cuMemFree)(memory), CUDA_ERROR_UNKNOWN);
    EXPECT_CU(CU(cuMemFree)(memory), CUDA_ERROR_UNKNOWN);
    EXPECT_EQ(EMU(emu_calls)("cuMemAlloc"), 3u);
    const std::string called = EMU(emu_called)();
    EXPECT_NE(called.find("cuMemAlloc 3\ncuMemFree 2\n"), std::string::npos) << called;
    EXPECT_EQ(EMU(emu_set_faults)(""), 0);
    EXPECT_CU(CU(cuMemFree)(memory), success);
    EXPECT_CU(CU(cuMemFree)(other), success);
}

TEST_F(Driver, LosesTheContextOnRequest)
{
    EMU(emu_set_faults)("cuCtxSynchronize:1=ILLEGAL_ADDRESS!");
    EXPECT_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr memory;
    EXPECT_CU(CU(cuMemAlloc)(&memory, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_CU(CU(cuDevicePrimaryCtxReset)(device), success);
    EXPECT_CU(CU(cuMemFree)(allocate(16)), success);
}

TEST_F(Driver, RefusesFaultsItCannotRead)
{
    for (const char* wrong : {"cuMemAlloc", "cuMemAlloc:0=UNKNOWN", "cuMemAlloc:x=UNKNOWN",
                              "cuMemAlloc:1=NO_SUCH_ERROR", "malloc:1=UNKNOWN"})
        EXPECT_EQ(EMU(emu_set_faults)(wrong), 1) << wrong;
}

}  // namespace
