// The emulated driver: streams, events, capture and graphs.
#include "driver_fixture.hpp"

#include <functional>
#include <thread>

using namespace emu::test;

namespace {

class Streams : public Driver {
protected:
    void SetUp() override
    {
        Driver::SetUp();
        ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        ASSERT_CU(CU(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING));
        ASSERT_CU(CU(cuEventCreate)(&event, 0));
        ASSERT_CU(CU(cuEventCreate)(&other, 0));
    }
    void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL)
    {
        ASSERT_CU(CU(cuStreamBeginCapture)(stream, mode));
    }
    CUstreamCaptureStatus status(CUstream of)
    {
        CUstreamCaptureStatus found{};
        EXPECT_CU(CU(cuStreamIsCapturing)(of, &found), success);
        return found;
    }
    CUresult end(CUgraph* graph) { return CU(cuStreamEndCapture)(stream, graph); }
    // An illegal call has spoilt the capture.
    void expect_invalidated()
    {
        EXPECT_EQ(status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        CUgraph graph = reinterpret_cast<CUgraph>(1);
        EXPECT_CU(end(&graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        EXPECT_EQ(graph, nullptr);
        EXPECT_EQ(status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    }
    std::vector<CUgraphNodeType> types(CUgraph graph)
    {
        size_t count = 0;
        EXPECT_CU(CU(cuGraphGetNodes)(graph, nullptr, &count), success);
        std::vector<CUgraphNode> nodes(count);
        EXPECT_CU(CU(cuGraphGetNodes)(graph, nodes.data(), &count), success);
        std::vector<CUgraphNodeType> types(count);
        for (size_t i = 0; i < count; ++i)
            EXPECT_CU(CU(cuGraphNodeGetType)(nodes[i], &types[i]), success);
        return types;
    }

    CUstream stream = nullptr, second = nullptr;
    CUevent event = nullptr, other = nullptr;
};

// From 12.5 on the same name has a function that tells the green context as well.
TEST_F(Streams, KnowTheirContext)
{
    constexpr int introduced = 9020;
    const auto get_context =
        reinterpret_cast<decltype(&::cuStreamGetCtx)>(entry_point("cuStreamGetCtx", introduced));
    CUcontext owner = nullptr;
    EXPECT_CU(get_context(stream, &owner), success);
    EXPECT_EQ(owner, context);
    EXPECT_CU(get_context(reinterpret_cast<CUstream>(&owner), &owner), CUDA_ERROR_INVALID_HANDLE);
#if CUDA_VERSION >= 12050
    const auto get_contexts =
        reinterpret_cast<decltype(&::cuStreamGetCtx_v2)>(entry_point("cuStreamGetCtx", CUDA_VERSION));
    auto green = reinterpret_cast<CUgreenCtx>(&owner);
    owner = nullptr;
    EXPECT_CU(get_contexts(stream, &owner, &green), success);
    EXPECT_EQ(owner, context);
    EXPECT_EQ(green, nullptr);
#endif
    EXPECT_CU(CU(cuStreamDestroy)(stream), success);
    EXPECT_CU(CU(cuStreamSynchronize)(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_CU(CU(cuStreamCreate)(&stream, 8), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, KnowTheirDevice)
{
    using GetDevice = CUresult (*)(CUstream, CUdevice*);
    constexpr int introduced = 12080;
    CUdevice found = -1;
    EXPECT_CU(reinterpret_cast<GetDevice>(entry_point("cuStreamGetDevice", introduced))(stream, &found),
              success);
    EXPECT_EQ(found, device);
    using GetOfContext = CUresult (*)(CUdevice*, CUcontext);
    constexpr int with_context = 13000;
    found = -1;
    EXPECT_CU(reinterpret_cast<GetOfContext>(entry_point("cuCtxGetDevice", with_context))(&found, context),
              success);
    EXPECT_EQ(found, device);
    unsigned long long first = 0, other_id = 0;
    EXPECT_CU(CU(cuStreamGetId)(stream, &first), success);
    EXPECT_CU(CU(cuStreamGetId)(second, &other_id), success);
    EXPECT_NE(first, other_id);
    EXPECT_CU(CU(cuCtxGetId)(context, &first), success);
    EXPECT_CU(CU(cuCtxGetId)(nullptr, &other_id), success);
    EXPECT_EQ(first, other_id);
}

#if CUDA_VERSION >= 12050
TEST_F(Streams, KnowTheirMultiprocessors)
{
    CUdevResource all{}, found{};
    ASSERT_CU(CU(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_CU(CU(cuCtxGetDevResource)(context, &found, CU_DEV_RESOURCE_TYPE_SM), success);
    EXPECT_EQ(found.sm.smCount, all.sm.smCount);
    EXPECT_CU(CU(cuCtxGetDevResource)(nullptr, &found, CU_DEV_RESOURCE_TYPE_SM),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_CU(CU(cuCtxGetDevResource)(context, &found, CU_DEV_RESOURCE_TYPE_INVALID),
              CUDA_ERROR_INVALID_RESOURCE_TYPE);
    using GetResource = CUresult (*)(CUstream, CUdevResource*, CUdevResourceType);
    constexpr int introduced = 13010;
    const auto get = reinterpret_cast<GetResource>(entry_point("cuStreamGetDevResource", introduced));
    found = {};
    EXPECT_CU(get(stream, &found, CU_DEV_RESOURCE_TYPE_SM), success);
    EXPECT_EQ(found.sm.smCount, all.sm.smCount);
}
#endif

TEST_F(Streams, TimeBetweenEvents)
{
    float time = -1;
    EXPECT_CU(CU(cuEventElapsedTime)(&time, event, other), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_CU(CU(cuEventRecord)(event, stream), success);
    EXPECT_CU(CU(cuEventRecord)(other, stream), success);
    EXPECT_CU(CU(cuEventSynchronize)(other), success);
    EXPECT_CU(CU(cuEventElapsedTime)(&time, event, other), success);
    EXPECT_GE(time, 0);
    CUevent untimed = nullptr;
    EXPECT_CU(CU(cuEventCreate)(&untimed, CU_EVENT_DISABLE_TIMING), success);
    EXPECT_CU(CU(cuEventRecord)(untimed, stream), success);
    EXPECT_CU(CU(cuEventElapsedTime)(&time, event, untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, CallTheHost)
{
    int value = 0;
    const auto increment = [](void* data) { ++*static_cast<int*>(data); };
    EXPECT_CU(CU(cuLaunchHostFunc)(stream, increment, &value), success);
    EXPECT_EQ(value, 0);
    EXPECT_CU(CU(cuStreamSynchronize)(stream), success);
    EXPECT_EQ(value, 1);
}

TEST_F(Streams, RunWhenTheyAreWaitedFor)
{
    const CUdeviceptr x = upload({1, 1});
    EXPECT_CU(CU(cuStreamQuery)(stream), success);
    EXPECT_CU(launch(kernel("scale"), x, 2, 1, stream), success);
    EXPECT_CU(launch(kernel("scale"), x + 4, 3, 1, second), success);
    EXPECT_EQ(download(x, 2), (std::vector<float>{1, 1}));  // the default stream waits for neither
    EXPECT_CU(CU(cuStreamQuery)(stream), CUDA_ERROR_NOT_READY);
    EXPECT_CU(CU(cuStreamQuery)(stream), success);
    EXPECT_EQ(download(x, 2), (std::vector<float>{2, 1}));
    EXPECT_CU(CU(cuCtxSynchronize)(), success);
    EXPECT_EQ(download(x, 2), (std::vector<float>{2, 3}));
}

TEST_F(Streams, WaitForEventsOfOthers)
{
    const CUdeviceptr x = upload({1});
    EXPECT_CU(launch(kernel("shift"), x, 1, 1, second), success);
    EXPECT_CU(CU(cuEventRecord)(event, second), success);
    EXPECT_CU(launch(kernel("scale"), x, 10, 1, second), success);  // behind the event: not waited for
    EXPECT_CU(CU(cuStreamWaitEvent)(stream, event, 0), success);
    EXPECT_CU(launch(kernel("shift"), x, 3, 1, stream), success);
    EXPECT_CU(CU(cuStreamSynchronize)(stream), success);
    EXPECT_EQ(download(x, 1), (std::vector<float>{5}));
    EXPECT_CU(CU(cuEventQuery)(event), success);
    EXPECT_CU(CU(cuStreamSynchronize)(second), success);
    EXPECT_EQ(download(x, 1), (std::vector<float>{50}));
}

TEST_F(Streams, BlockingOnesTakeTurnsWithTheDefaultStream)
{
    CUstream blocking = nullptr;
    ASSERT_CU(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
    const CUdeviceptr x = upload({1});
    EXPECT_CU(launch(kernel("shift"), x, 1, 1, blocking), success);
    EXPECT_CU(launch(kernel("scale"), x, 10, 1, nullptr), success);
    EXPECT_CU(launch(kernel("shift"), x, 2, 1, blocking), success);
    EXPECT_CU(CU(cuStreamSynchronize)(blocking), success);
    EXPECT_EQ(download(x, 1), (std::vector<float>{22}));
    EXPECT_CU(launch(kernel("shift"), x, 1, 1, blocking), success);
    EXPECT_CU(CU(cuStreamDestroy)(blocking), success);
    EXPECT_EQ(download(x, 1), (std::vector<float>{23}));
}

TEST_F(Streams, CopyFromOrdinaryMemoryAtOnceAndFromPinnedMemoryLater)
{
    const CUdeviceptr x = allocate(4), y = allocate(4);
    float ordinary = 1;
    void* memory = nullptr;
    ASSERT_CU(CU(cuMemHostAlloc)(&memory, 4, 0));
    float& pinned = *static_cast<float*>(memory);
    pinned = 1;
    EXPECT_CU(CU(cuMemcpyHtoDAsync)(x, &ordinary, 4, stream), success);
    EXPECT_CU(CU(cuMemcpyHtoDAsync)(y, &pinned, 4, stream), success);
    ordinary = pinned = 2;
    EXPECT_CU(CU(cuMemcpyDtoHAsync)(&ordinary, x, 4, stream), success);
    EXPECT_EQ(ordinary, 1);
    EXPECT_EQ(download(y, 1), std::vector<float>{2});
    EXPECT_CU(CU(cuMemFreeHost)(memory), success);
}

TEST_F(Streams, CaptureRecordsAndDoesNotRun)
{
    const CUdeviceptr x = upload({1, 2, 3});
    const CUfunction scale = kernel("scale"), shift = kernel("shift");
    begin();
    EXPECT_EQ(status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_CU(launch(scale, x, 2, 3, stream), success);
    EXPECT_CU(launch(shift, x, 1, 3, stream), success);
    EXPECT_CU(CU(cuMemsetD32Async)(x + 8, 0, 1, stream), success);
    CUgraph graph = nullptr;
    ASSERT_CU(end(&graph));
    EXPECT_EQ(download(x, 3), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(types(graph),
              (std::vector<CUgraphNodeType>{CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL,
                                            CU_GRAPH_NODE_TYPE_MEMSET}));
    CUgraphExec executable = nullptr;
    ASSERT_CU(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
    EXPECT_CU(CU(cuGraphLaunch)(executable, stream), success);
    EXPECT_CU(CU(cuGraphLaunch)(executable, stream), success);
    EXPECT_CU(CU(cuStreamSynchronize)(stream), success);
    EXPECT_EQ(download(x, 3), (std::vector<float>{7, 11, 0}));
    EXPECT_CU(CU(cuGraphExecDestroy)(executable), success);
    EXPECT_CU(CU(cuGraphLaunch)(executable, stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, AnUncapturedGraphOfAMemcpyReadsWhenItRuns)
{
    const CUdeviceptr x = upload({1});
    float host = 0;
    begin();
    EXPECT_CU(CU(cuMemcpyDtoHAsync)(&host, x, 4, stream), success);
    CUgraph graph = nullptr;
    ASSERT_CU(end(&graph));
    CUgraphExec executable = nullptr;
    ASSERT_CU(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
    EXPECT_CU(CU(cuMemsetD32)(x, 0x40000000, 1), success);
    EXPECT_CU(CU(cuGraphLaunch)(executable, stream), success);
    EXPECT_CU(CU(cuStreamSynchronize)(stream), success);
    EXPECT_EQ(host, 2);
    EXPECT_CU(CU(cuGraphExecDestroy)(executable), success);
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
}

TEST_F(Streams, ForkAndJoin)
{
    const CUdeviceptr x = upload({1}), y = upload({2});
    const CUfunction scale = kernel("scale");
    CUgraph graph = nullptr;
    for (const bool join : {true, false}) {
        begin();
        EXPECT_CU(CU(cuEventRecord)(event, stream), success);
        EXPECT_CU(CU(cuEventQuery)(event), CUDA_ERROR_CAPTURED_EVENT);
        EXPECT_CU(CU(cuStreamWaitEvent)(second, event, 0), success);
        EXPECT_EQ(status(second), CU_STREAM_CAPTURE_STATUS_ACTIVE);
        EXPECT_CU(launch(scale, x, 3, 1, stream), success);
        EXPECT_CU(launch(scale, y, 5, 1, second), success);
        EXPECT_CU(CU(cuStreamEndCapture)(second, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        if (join) {
            EXPECT_CU(CU(cuEventRecord)(other, second), success);
            EXPECT_CU(CU(cuStreamWaitEvent)(stream, other, 0), success);
        }
        EXPECT_CU(end(&graph), join ? success : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        EXPECT_EQ(status(second), CU_STREAM_CAPTURE_STATUS_NONE);
        if (join) {
            EXPECT_CU(CU(cuGraphDestroy)(graph), success);
        }
    }
}

TEST_F(Streams, WaitForNothingOutsideTheCapture)
{
    EXPECT_CU(CU(cuEventRecord)(event, second), success);
    begin();
    EXPECT_CU(CU(cuStreamWaitEvent)(stream, other, 0), success);  // never recorded: nothing to wait for
    EXPECT_CU(CU(cuStreamWaitEvent)(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    expect_invalidated();
}

TEST_F(Streams, CannotMergeCaptures)
{
    begin();
    ASSERT_CU(CU(cuStreamBeginCapture)(second, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CU(CU(cuEventRecord)(event, second), success);
    EXPECT_CU(CU(cuStreamWaitEvent)(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    expect_invalidated();
    CUgraph graph = nullptr;
    EXPECT_CU(CU(cuStreamEndCapture)(second, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Streams, EndACaptureWhereItBegan)
{
    CUgraph graph = nullptr;
    EXPECT_CU(end(&graph), CUDA_ERROR_ILLEGAL_STATE);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EXPECT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    std::thread([&] {
        CU(cuCtxSetCurrent)(context);
        CUgraph elsewhere = nullptr;
        EXPECT_CU(end(&elsewhere), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    EXPECT_CU(end(&graph), success);
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
}

}  // namespace
