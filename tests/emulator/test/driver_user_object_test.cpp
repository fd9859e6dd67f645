// The emulated driver: user objects, and the graphs that hold references to them.
#include "driver_fixture.hpp"

#include <atomic>
#include <thread>

using namespace emu::test;

namespace {

class UserObjects : public Driver {
protected:
    void SetUp() override
    {
        Driver::SetUp();
        ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    }
    CUuserObject create(unsigned count = 1)
    {
        CUuserObject object = nullptr;
        const auto destroy = [](void* self) { ++static_cast<UserObjects*>(self)->destroyed; };
        EXPECT_CU(CU(cuUserObjectCreate)(&object, this, destroy, count, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
                  success);
        return object;
    }
    // Asks the driver first, which waits for the destructors that are due.
    int ended()
    {
        EMU(emu_live)("user objects");
        return destroyed;
    }
    // The graph of the capture that `stream` is in.
    CUgraph capturing()
    {
        CUstreamCaptureStatus status{};
        CUgraph graph = nullptr;
        const CUgraphNode* nodes = nullptr;
        size_t count = 0;
        constexpr int without_edges = 11030;
        using GetInfo = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                                     const CUgraphNode**, size_t*);
        const auto get = reinterpret_cast<GetInfo>(entry_point("cuStreamGetCaptureInfo", without_edges));
        EXPECT_CU(get(stream, &status, nullptr, &graph, &nodes, &count), success);
        EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        return graph;
    }
    // Of one launch of x *= 2, which holds `object`.
    CUgraph capture(CUdeviceptr x, CUuserObject object)
    {
        CUgraph graph = nullptr;
        const CUfunction scale = kernel("scale");
        EXPECT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), success);
        EXPECT_CU(launch(scale, x, 2, 1, stream), success);
        EXPECT_CU(CU(cuGraphRetainUserObject)(capturing(), object, 1, CU_GRAPH_USER_OBJECT_MOVE), success);
        EXPECT_CU(CU(cuStreamEndCapture)(stream, &graph), success);
        return graph;
    }
    CUgraphExec instantiate(CUgraph graph)
    {
        CUgraphExec executable = nullptr;
        EXPECT_CU(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), success);
        return executable;
    }

    CUstream stream = nullptr;
    std::atomic<int> destroyed = 0;
};

TEST_F(UserObjects, EndWithTheirLastReference)
{
    const CUuserObject object = create(2);
    EXPECT_CU(CU(cuUserObjectRetain)(object, 3), success);
    EXPECT_CU(CU(cuUserObjectRelease)(object, 4), success);
    EXPECT_EQ(ended(), 0);
    EXPECT_EQ(EMU(emu_live)("user objects"), 1);
    EXPECT_CU(CU(cuUserObjectRelease)(object, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuUserObjectRelease)(object, 1), success);
    EXPECT_EQ(ended(), 1);
    EXPECT_CU(CU(cuUserObjectRelease)(object, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(UserObjects, RefuseWrongArguments)
{
    const auto nothing = [](void*) {};
    CUuserObject object = nullptr;
    EXPECT_CU(CU(cuUserObjectCreate)(&object, nullptr, nothing, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuUserObjectCreate)(&object, nullptr, nothing, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuUserObjectCreate)(&object, nullptr, nullptr, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuUserObjectCreate)(nullptr, nullptr, nothing, 1, 1), CUDA_ERROR_INVALID_VALUE);
    object = create();
    CUgraph graph = nullptr;
    ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
    EXPECT_CU(CU(cuUserObjectRetain)(object, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuUserObjectRetain)(object, 0x80000000u), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuGraphRetainUserObject)(graph, object, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuGraphRetainUserObject)(graph, object, 1, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuGraphRetainUserObject)(nullptr, object, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuGraphReleaseUserObject)(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
    EXPECT_EQ(ended(), 0);
    EXPECT_CU(CU(cuUserObjectRelease)(object, 1), success);
    EXPECT_EQ(ended(), 1);
}

// A destructor cannot be waited for by the driver's calls, and may not make any.
TEST_F(UserObjects, EndInAThreadOfTheDriver)
{
    struct Seen {
        decltype(&::cuCtxGetCurrent) call = CU(cuCtxGetCurrent);
        std::thread::id thread;
        CUresult result = success;
        std::atomic<bool> done = false;
    } seen;
    CUuserObject object = nullptr;
    const auto destroy = [](void* data) {
        auto& told = *static_cast<Seen*>(data);
        told.thread = std::this_thread::get_id();
        CUcontext current = nullptr;
        told.result = told.call(&current);
        told.done = true;
    };
    ASSERT_CU(CU(cuUserObjectCreate)(&object, &seen, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    EXPECT_CU(CU(cuUserObjectRelease)(object, 1), success);
    ended();
    EXPECT_TRUE(seen.done);
    EXPECT_NE(seen.thread, std::this_thread::get_id());
    EXPECT_CU(seen.result, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(UserObjects, LiveAsLongAsAGraphOrACopyOfIt)
{
    const CUuserObject object = create();
    CUgraph graph = nullptr, copy = nullptr;
    ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
    EXPECT_CU(CU(cuGraphRetainUserObject)(graph, object, 2, 0), success);
    EXPECT_CU(CU(cuUserObjectRelease)(object, 1), success);
    EXPECT_CU(CU(cuGraphReleaseUserObject)(graph, object, 1), success);
    EXPECT_CU(CU(cuGraphClone)(&copy, graph), success);
    EXPECT_CU(CU(cuGraphReleaseUserObject)(graph, object, 1), success);
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
    EXPECT_EQ(ended(), 0);
    EXPECT_CU(CU(cuGraphDestroy)(copy), success);
    EXPECT_EQ(ended(), 1);
}

TEST_F(UserObjects, LiveAsLongAsAnExecutableGraphAndItsLaunches)
{
    const CUdeviceptr x = upload({1});
    const CUgraph graph = capture(x, create());
    const CUgraphExec first = instantiate(graph), second = instantiate(graph);
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
    EXPECT_CU(CU(cuGraphExecDestroy)(first), success);
    EXPECT_CU(CU(cuGraphLaunch)(second, stream), success);
    EXPECT_CU(CU(cuGraphExecDestroy)(second), success);
    EXPECT_EQ(ended(), 0);
    EXPECT_CU(CU(cuStreamSynchronize)(stream), success);
    EXPECT_EQ(ended(), 1);
    EXPECT_EQ(download(x, 1), std::vector<float>{2});
}

TEST_F(UserObjects, AreFreeWhereACaptureFails)
{
    CUgraph graph = nullptr;
    CUdeviceptr memory = 0;
    CUevent event = nullptr;
    ASSERT_CU(CU(cuEventCreate)(&event, 0));
    ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CU(CU(cuEventRecord)(event, stream), success);  // which remembers the capture
    const CUgraph captured = capturing();
    const CUuserObject object = create();
    EXPECT_CU(CU(cuGraphRetainUserObject)(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE), success);
    EXPECT_CU(CU(cuGraphDestroy)(captured), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(ended(), 0);
    EXPECT_CU(CU(cuMemAlloc)(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(ended(), 1);
    const CUuserObject later = create();
    EXPECT_CU(CU(cuGraphRetainUserObject)(captured, later, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuUserObjectRelease)(later, 1), success);
    EXPECT_CU(CU(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(UserObjects, AreFreeWhereAStreamOfTheCaptureIsNotJoined)
{
    CUgraph graph = nullptr;
    CUevent event = nullptr;
    CUstream other = nullptr;
    ASSERT_CU(CU(cuEventCreate)(&event, 0));
    ASSERT_CU(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
    const CUdeviceptr x = upload({1});
    const CUfunction scale = kernel("scale");
    ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CU(CU(cuEventRecord)(event, stream), success);
    EXPECT_CU(CU(cuStreamWaitEvent)(other, event, 0), success);
    EXPECT_CU(launch(scale, x, 2, 1, other), success);
    EXPECT_CU(CU(cuGraphRetainUserObject)(capturing(), create(), 1, CU_GRAPH_USER_OBJECT_MOVE), success);
    EXPECT_CU(CU(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(ended(), 1);
}

TEST_F(UserObjects, AreFreeWithTheContextOfAnExecutableGraph)
{
    CUcontext created = nullptr;
#if CUDA_VERSION >= 12050
    ASSERT_CU(CU(cuCtxCreate)(&created, nullptr, 0, device));
#else
    ASSERT_CU(CU(cuCtxCreate)(&created, 0, device));
#endif
    CUgraph graph = nullptr;
    ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
    EXPECT_CU(CU(cuGraphRetainUserObject)(graph, create(), 1, CU_GRAPH_USER_OBJECT_MOVE), success);
    instantiate(graph);
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
    EXPECT_EQ(ended(), 0);
    EXPECT_CU(CU(cuCtxDestroy)(created), success);
    EXPECT_EQ(ended(), 1);
    EXPECT_CU(CU(cuCtxSetCurrent)(context), success);
}

// The captured graph may be asked and changed before the capture has ended.
TEST_F(UserObjects, TheGraphOfACaptureIsThatOfItsEnd)
{
    const CUdeviceptr x = upload({1});
    const CUfunction scale = kernel("scale");
    CUgraph graph = nullptr;
    ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    const CUgraph early = capturing();
    size_t count = 9;
    EXPECT_CU(CU(cuGraphGetNodes)(early, nullptr, &count), success);
    EXPECT_EQ(count, 0u);
    EXPECT_CU(launch(scale, x, 2, 1, stream), success);
    EXPECT_CU(CU(cuGraphGetNodes)(early, nullptr, &count), success);
    EXPECT_EQ(count, 1u);
    EXPECT_CU(CU(cuStreamEndCapture)(stream, &graph), success);
    EXPECT_EQ(graph, early);
    CUgraph copy = nullptr;
    EXPECT_CU(CU(cuGraphClone)(&copy, graph), success);
    EXPECT_CU(CU(cuGraphDestroy)(graph), success);
    const CUgraphExec executable = instantiate(copy);
    EXPECT_CU(CU(cuGraphLaunch)(executable, stream), success);
    EXPECT_CU(CU(cuStreamSynchronize)(stream), success);
    EXPECT_EQ(download(x, 1), std::vector<float>{2});
    EXPECT_CU(CU(cuGraphExecDestroy)(executable), success);
    EXPECT_CU(CU(cuGraphDestroy)(copy), success);
}

}  // namespace
