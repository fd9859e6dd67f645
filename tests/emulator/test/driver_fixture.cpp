#include "driver_fixture.hpp"

#include <cstdlib>

namespace emu::test {

void* driver_library()
{
    static void* const library = dlopen(EMU_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        ADD_FAILURE() << dlerror();
        std::abort();
    }
    return library;
}

void* driver_symbol(const char* name)
{
    void* symbol = dlsym(driver_library(), name);
    EXPECT_NE(symbol, nullptr) << name;
    return symbol;
}

void* entry_point(const char* name, int version)
{
    static const auto get = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t, void*)>(
        driver_symbol("cuGetProcAddress_v2"));
    void* function = nullptr;
    get(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
    return function;
}

namespace {

// x[i] = x[i] and a, combined, for i < n.
std::string elementwise(const std::string& name, const std::string& instruction)
{
    return ".visible .entry " + name + R"((.param .u64 x, .param .f32 a, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r5, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3];
    )" + instruction +
           R"( %f3, %f2, %f1;
    st.global.f32 [%rd3], %f3;
DONE:
    ret;
}

)";
}

const std::string kernels_text = R"(
.version 8.0
.target sm_80
.address_size 64

.visible .global .align 4 .u32 counter = 5;

)" + elementwise("scale", "mul.f32") +
                                 elementwise("shift", "add.f32") + R"(.visible .entry stop()
{
    trap;
    ret;
}

.visible .entry small_blocks()
.maxntid 64, 1, 1
{
    ret;
}
)";

}  // namespace

const char* const kernels_ptx = kernels_text.c_str();

void Driver::SetUp()
{
    ASSERT_CU(CU(cuInit)(0));
    EMU(emu_set_faults)("");
    ASSERT_CU(CU(cuDevicePrimaryCtxRetain)(&context, device));
    ASSERT_CU(CU(cuCtxSetCurrent)(context));
    int major = 0, minor = 0;
    ASSERT_CU(CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    ASSERT_CU(CU(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    cc = major * 10 + minor;
}

void Driver::TearDown()
{
    EMU(emu_set_faults)("");
    EMU(emu_clear_reports)();
    EXPECT_CU(CU(cuDevicePrimaryCtxRelease)(device), success);
    EXPECT_CU(CU(cuCtxSetCurrent)(nullptr), success);
    for (const char* what :
         {"allocations", "contexts", "libraries", "modules", "streams", "events", "graphs", "user objects"})
        EXPECT_EQ(EMU(emu_live)(what), 0) << what;
}

CUdeviceptr Driver::allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    EXPECT_CU(CU(cuMemAlloc)(&address, bytes), success);
    return address;
}

CUdeviceptr Driver::upload(const std::vector<float>& values)
{
    const CUdeviceptr address = allocate(values.size() * sizeof(float));
    EXPECT_CU(CU(cuMemcpyHtoD)(address, values.data(), values.size() * sizeof(float)), success);
    return address;
}

std::vector<float> Driver::download(CUdeviceptr from, size_t count)
{
    std::vector<float> values(count);
    EXPECT_CU(CU(cuMemcpyDtoH)(values.data(), from, count * sizeof(float)), success);
    return values;
}

CUfunction Driver::kernel(const char* name)
{
    if (!module) {
        EXPECT_CU(CU(cuModuleLoadData)(&module, kernels_ptx), success);
    }
    CUfunction function = nullptr;
    EXPECT_CU(CU(cuModuleGetFunction)(&function, module, name), success);
    return function;
}

CUresult Driver::launch(CUfunction function, CUdeviceptr x, float a, unsigned n, CUstream stream)
{
    void* parameters[] = {&x, &a, &n};
    return CU(cuLaunchKernel)(function, (n + 31) / 32, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace emu::test
