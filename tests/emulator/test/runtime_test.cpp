// The runtime as nvcc's stubs and programs use it, on images as nvcc packs them.
#include <cuda_runtime_api.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*,
                            int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, cudaStream_t);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
}

namespace {

const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 step = 5;
.visible .entry add(.param .u64 p)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd0, [p];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    ld.global.u32 %r1, [%rd1];
    ld.global.u32 %r2, [step];
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1;
    ret;
}
)";

void append(std::string& to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; ++i)
        to += static_cast<char>(value >> 8 * i);
}

// One block of each that holds its bytes as they are.
std::string zstd_of(const std::string& data)
{
    std::string out;
    append(out, 0xfd2fb528, 4);
    append(out, 0xa0, 1);  // one segment, its size in four bytes
    append(out, data.size(), 4);
    append(out, data.size() << 3 | 1, 3);  // the last block, raw
    return out + data;
}

std::string lz4_of(const std::string& data)
{
    std::string out = "\xf0";
    size_t rest = data.size() - 15;
    for (; rest >= 255; rest -= 255)
        out += '\xff';
    out += static_cast<char>(rest);
    return out + data;
}

std::string fatbin(const std::string& payload, uint64_t flags, size_t uncompressed)
{
    const size_t padded = (payload.size() + 7) / 8 * 8;
    std::string entry;
    append(entry, 1, 2), append(entry, 0x101, 2), append(entry, 64, 4), append(entry, padded, 8);
    append(entry, flags ? payload.size() : 0, 4), append(entry, 0, 4), append(entry, 0, 2),
        append(entry, 8, 2);
    append(entry, 80, 4), append(entry, 0, 8), append(entry, flags, 8), append(entry, 0, 8);
    append(entry, uncompressed, 8);
    entry += payload + std::string(padded - payload.size(), '\0');
    std::string image;
    append(image, 0xba55ed50, 4), append(image, 1, 2), append(image, 16, 2), append(image, entry.size(), 8);
    return image + entry;
}

// What nvcc's stub does before main and at a launch. Its objects live as long as the program.
struct Program {
    struct Wrapper {
        uint32_t magic = 0x466243b1, version = 1;
        const void* data;
        void* file = nullptr;
    };
    std::string image;
    Wrapper wrapper;
    char stub = 0, shadow = 0;

    explicit Program(std::string bytes) : image(std::move(bytes))
    {
        wrapper.data = image.data();
        void** module = __cudaRegisterFatBinary(&wrapper);
        __cudaRegisterFunction(module, &stub, nullptr, "add", -1, nullptr, nullptr, nullptr, nullptr,
                               nullptr);
        __cudaRegisterVar(module, &shadow, nullptr, "step", 0, 4, 0, 1);
        __cudaRegisterFatBinaryEnd(module);
    }
    cudaError_t launch(void* pointer, unsigned threads) const
    {
        __cudaPushCallConfiguration(1, threads, 0, nullptr);
        dim3 grid, block;
        size_t shared;
        cudaStream_t stream;
        EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
        void* arguments[] = {&pointer};
        return cudaLaunchKernel(&stub, grid, block, arguments, shared, stream);
    }
};

void check(Program& program)
{
    std::vector<uint32_t> values(32, 100);
    void* device = nullptr;
    ASSERT_EQ(cudaMalloc(&device, 128), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, values.data(), 128, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(program.launch(device, 32), cudaSuccess);
    const uint32_t step = 7;
    EXPECT_EQ(cudaMemcpyToSymbol(&program.shadow, &step, 4, 0, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(program.launch(device, 16), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), device, 128, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 32; ++i)
        EXPECT_EQ(values[i], i < 16 ? 112u : 105u);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Runtime, RunsWhatStubsRegister)
{
    static Program program(fatbin(text + '\0', 0, 0));
    check(program);
}

TEST(Runtime, UnpacksCompressedImages)
{
    static Program zstd(fatbin(zstd_of(text), 0x8000, text.size()));
    check(zstd);
    static Program lz4(fatbin(lz4_of(text), 0x2000, text.size()));
    check(lz4);
}

TEST(Runtime, KeepsTheLastError)
{
    static Program broken(fatbin("no frame", 0x8000, 100));
    EXPECT_EQ(broken.launch(nullptr, 1), cudaErrorNoKernelImageForDevice);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorNoKernelImageForDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    int unknown = 0;
    EXPECT_EQ(cudaGetSymbolSize(nullptr, &unknown), cudaErrorInvalidSymbol);
    EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidValue), "CUDA_ERROR_INVALID_VALUE");
}

TEST(Runtime, DescribesDeviceAndKernel)
{
    static Program program(fatbin(text + '\0', 0, 0));
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_EQ(properties.major, 8);
    EXPECT_EQ(properties.warpSize, 32);
    EXPECT_EQ(properties.canMapHostMemory, 1);
    EXPECT_EQ(properties.totalConstMem, 65536u);
    EXPECT_EQ(properties.maxBlocksPerMultiProcessor, 32);
    int count = 0, blocks = 0;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &program.stub, 128, 0), cudaSuccess);
    EXPECT_GT(blocks, 0);
    cudaFuncAttributes attributes;
    EXPECT_EQ(cudaFuncGetAttributes(&attributes, &program.stub), cudaSuccess);
    EXPECT_EQ(attributes.sharedSizeBytes, 0u);
    cudaEvent_t start, end;
    float milliseconds = -1;
    EXPECT_EQ(cudaEventCreate(&start), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&end), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(start, nullptr), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
    EXPECT_GE(milliseconds, 0);
}

TEST(Runtime, CopiesRows)
{
    std::vector<uint8_t> from(40), to(30);
    for (size_t i = 0; i < from.size(); ++i)
        from[i] = static_cast<uint8_t>(i);
    void* device = nullptr;
    ASSERT_EQ(cudaMalloc(&device, 64), cudaSuccess);
    EXPECT_EQ(cudaMemset(device, 0xff, 64), cudaSuccess);
    EXPECT_EQ(cudaMemcpy2D(device, 16, from.data(), 10, 6, 4, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(to.data(), device, 30, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 30; ++i)
        EXPECT_EQ(to[i], i % 16 < 6 ? i / 16 * 10 + i % 16 : 0xff);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Runtime, FillsRows)
{
    void* rows = nullptr;
    size_t pitch = 0;
    ASSERT_EQ(cudaMallocPitch(&rows, &pitch, 5, 3), cudaSuccess);
    ASSERT_GE(pitch, 5u);
    std::vector<uint8_t> bytes(3 * pitch);
    ASSERT_EQ(cudaMemset(rows, 1, bytes.size()), cudaSuccess);
    ASSERT_EQ(cudaMemset2D(rows, pitch, 7, 5, 2), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(bytes.data(), rows, bytes.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    for (size_t i = 0; i < bytes.size(); ++i)
        EXPECT_EQ(bytes[i], i / pitch < 2 && i % pitch < 5 ? 7 : 1) << i;
    EXPECT_EQ(cudaFree(rows), cudaSuccess);
}

TEST(Runtime, TakesSettingsAndHints)
{
    unsigned flags = 0;
    EXPECT_EQ(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), cudaSuccess);
    EXPECT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
    EXPECT_EQ(flags, static_cast<unsigned>(cudaDeviceScheduleBlockingSync | cudaDeviceMapHost));
    void *host = nullptr, *device = nullptr;
    ASSERT_EQ(cudaHostAlloc(&host, 64, cudaHostAllocMapped), cudaSuccess);
    EXPECT_EQ(cudaHostGetDevicePointer(&device, host, 0), cudaSuccess);
    EXPECT_NE(device, nullptr);
    EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc(8, 8, 0, 0, cudaChannelFormatKindUnsigned);
    EXPECT_EQ(format.y, 8);
    EXPECT_EQ(format.f, cudaChannelFormatKindUnsigned);
}

// The function is named, as the program may not look at what it returns.
TEST(Runtime, NamesWhatIsNotEmulated)
{
    cudaArray_t array = nullptr;
    testing::internal::CaptureStderr();
    const cudaError_t error = cudaMallocArray(&array, nullptr, 4, 4, 0);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "emulated cudaMallocArray: this function is not emulated\n");
    EXPECT_EQ(error, cudaErrorNotSupported);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(Runtime, CapturesAndLaunchesGraphs)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCaptureStatus status;
    int least = 0, greatest = 0, priority = 1, runs = 0;
    ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), cudaSuccess);
    EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
    EXPECT_EQ(priority, greatest);
    void* memory = nullptr;
    uint32_t first = 1;
    ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(memory, &first, 4, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_EQ(cudaMemsetAsync(memory, 0x11, 4, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&first, memory, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(first, 1u);
    EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    EXPECT_EQ(cudaLaunchHostFunc(
                  stream, [](void* data) { ++*static_cast<int*>(data); }, &runs),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(cudaMemcpy(&first, memory, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(first, 0x11111111u);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

#if CUDART_VERSION >= 13000
// By the driver's rules, which have tests of their own.
TEST(Runtime, TiesUserObjectsToGraphs)
{
    static std::atomic<int> destroyed = 0;
    const auto destroy = [](void*) { ++destroyed; };
    const auto soon_destroyed = [] {
        for (int i = 0; i < 1000 && destroyed == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return destroyed == 1;
    };
    cudaStream_t stream;
    cudaGraph_t graph = nullptr, captured = nullptr, copy = nullptr;
    cudaGraphExec_t executable;
    cudaUserObject_t object;
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t* nodes = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    size_t count = 9;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaUserObjectCreate(&object, nullptr, destroy, 1, cudaUserObjectNoDestructorSync),
              cudaSuccess);
    EXPECT_EQ(cudaUserObjectRetain(object, 1), cudaSuccess);
    EXPECT_EQ(cudaUserObjectRelease(object, 1), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, &edges, &count),
              cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove), cudaSuccess);
    ASSERT_EQ(cudaStreamEndCapture(stream, &captured), cudaSuccess);
    EXPECT_EQ(captured, graph);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphClone(&copy, graph), cudaSuccess);
    EXPECT_EQ(cudaGraphUpload(executable, stream), cudaSuccess);
    EXPECT_EQ(cudaGraphReleaseUserObject(graph, object, 1), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(destroyed, 0);
    EXPECT_EQ(cudaGraphDestroy(copy), cudaSuccess);
    EXPECT_TRUE(soon_destroyed());
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(Runtime, LoadsLibraries)
{
    cudaLibrary_t library;
    cudaKernel_t kernel;
    void* step = nullptr;
    size_t bytes = 0;
    const std::string image = text + '\0';
    ASSERT_EQ(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
              cudaSuccess);
    ASSERT_EQ(cudaLibraryGetKernel(&kernel, library, "add"), cudaSuccess);
    EXPECT_EQ(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 0),
              cudaSuccess);
    ASSERT_EQ(cudaLibraryGetGlobal(&step, &bytes, library, "step"), cudaSuccess);
    EXPECT_EQ(bytes, 4u);
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
    ASSERT_EQ(cudaMemset(memory, 0, 4), cudaSuccess);
    void* arguments[] = {&memory};
    EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), 1, 1, arguments, 1024, nullptr),
              cudaSuccess);
    uint32_t value = 0;
    EXPECT_EQ(cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(value, 5u);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaLibraryUnload(library), cudaSuccess);
    int least = 0;
    EXPECT_EQ(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &least),
              cudaErrorNotSupported);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}
#endif

}  // namespace
