// The emulated driver: calls that a capture in progress forbids, and what becomes of the capture.
#include "driver_fixture.hpp"

#include <functional>
#include <thread>

using namespace emu::test;

namespace {

constexpr CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED};

class Captures : public Driver {
protected:
    void SetUp() override
    {
        Driver::SetUp();
        ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        ASSERT_CU(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
    }
    CUstreamCaptureStatus status(CUstream of)
    {
        CUstreamCaptureStatus found{};
        EXPECT_CU(CU(cuStreamIsCapturing)(of, &found), success);
        return found;
    }
    void expect_ends(CUstream capturing)
    {
        EXPECT_EQ(status(capturing), CU_STREAM_CAPTURE_STATUS_ACTIVE);
        CUgraph graph = nullptr;
        EXPECT_CU(CU(cuStreamEndCapture)(capturing, &graph), success);
        EXPECT_CU(CU(cuGraphDestroy)(graph), success);
    }
    // An illegal call has spoilt the capture.
    void expect_invalidated(CUstream capturing)
    {
        EXPECT_EQ(status(capturing), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        auto graph = reinterpret_cast<CUgraph>(1);
        EXPECT_CU(CU(cuStreamEndCapture)(capturing, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        EXPECT_EQ(graph, nullptr);
        EXPECT_EQ(status(capturing), CU_STREAM_CAPTURE_STATUS_NONE);
    }

    CUstream stream = nullptr, blocking = nullptr;
};

TEST_F(Captures, AreSpoiltBySynchronousCalls)
{
    const CUdeviceptr x = upload({1});
    float host;
    CUdeviceptr memory;
    unsigned long long id = 0;
    unsigned flags = 0;
    const std::vector<std::function<CUresult()>> forbidden = {
        [&] { return CU(cuStreamSynchronize)(stream); },
        [&] { return CU(cuStreamQuery)(stream); },
        [&] { return CU(cuStreamGetId)(stream, &id); },
        [&] { return CU(cuStreamGetFlags)(stream, &flags); },
        [&] { return CU(cuCtxSynchronize)(); },
        [&] { return CU(cuMemAlloc)(&memory, 16); },
        [&] { return CU(cuMemFree)(x); },
        [&] { return CU(cuMemcpyDtoH)(&host, x, 4); },
        [&] { return CU(cuMemsetD32)(x, 0, 1); },
    };
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL})
        for (const auto& call : forbidden) {
            ASSERT_CU(CU(cuStreamBeginCapture)(stream, mode));
            EXPECT_CU(call(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            EXPECT_CU(CU(cuMemsetD32Async)(x, 0, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            expect_invalidated(stream);
        }
    EXPECT_EQ(download(x, 1), std::vector<float>{1});
}

TEST_F(Captures, ForbidOtherThreadsInGlobalModeOnly)
{
    const auto allocate_elsewhere = [&] {
        CUresult result = success;
        std::thread([&] {
            CU(cuCtxSetCurrent)(context);
            CUdeviceptr memory;
            result = CU(cuMemAlloc)(&memory, 16);
            if (result == success)
                CU(cuMemFree)(memory);
        }).join();
        return result;
    };
    ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_CU(allocate_elsewhere(), success);
    expect_ends(stream);
    ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CU(allocate_elsewhere(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_invalidated(stream);
    ASSERT_CU(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_CU(CU(cuMemFree)(allocate(16)), success);
    expect_ends(stream);
}

TEST_F(Captures, OfBlockingStreamsCannotBeWaitedForByTheDefaultStream)
{
    const CUdeviceptr x = upload({1});
    for (const auto mode : modes) {
        ASSERT_CU(CU(cuStreamBeginCapture)(blocking, mode));
        EXPECT_CU(CU(cuMemsetD32Async)(x, 0, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        expect_invalidated(blocking);
    }
    EXPECT_CU(CU(cuStreamBeginCapture)(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

// HARDWARE.md, D1.
TEST_F(Captures, OfBlockingStreamsAreSpoiltByQuestionsToTheDefaultStream)
{
    constexpr int first_version = 9020;
    const auto get_context =
        reinterpret_cast<decltype(&::cuStreamGetCtx)>(entry_point("cuStreamGetCtx", first_version));
    CUcontext owner = nullptr;
    std::vector<std::function<CUresult(CUstream)>> questions = {
        [&](CUstream of) { return get_context(of, &owner); },
    };
#if CUDA_VERSION >= 12050
    CUgreenCtx green = nullptr;
    const auto get_contexts =
        reinterpret_cast<decltype(&::cuStreamGetCtx_v2)>(entry_point("cuStreamGetCtx", CUDA_VERSION));
    questions.push_back([&](CUstream of) { return get_contexts(of, &owner, &green); });
    questions.push_back([&](CUstream of) { return CU(cuStreamGetGreenCtx)(of, &green); });
#endif
    for (const auto mode : modes)
        for (const auto& ask : questions) {
            ASSERT_CU(CU(cuStreamBeginCapture)(blocking, mode));
            EXPECT_CU(ask(blocking), success);
            EXPECT_CU(ask(stream), success);
            for (CUstream default_stream : {CUstream{}, CUstream{CU_STREAM_LEGACY}}) {
                EXPECT_CU(ask(default_stream), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            }
            expect_invalidated(blocking);
            ASSERT_CU(CU(cuStreamBeginCapture)(stream, mode));
            EXPECT_CU(ask(nullptr), success);
            expect_ends(stream);
        }
}

// The question whether it captures, and no other, may be asked.
TEST_F(Captures, OfBlockingStreamsLetTheDefaultStreamBeAskedWhetherItCaptures)
{
    for (const auto mode : modes) {
        CUstreamCaptureStatus found{};
        ASSERT_CU(CU(cuStreamBeginCapture)(blocking, mode));
        EXPECT_CU(CU(cuStreamIsCapturing)(nullptr, &found), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        expect_ends(blocking);
        EXPECT_CU(CU(cuStreamIsCapturing)(nullptr, &found), success);
        EXPECT_EQ(found, CU_STREAM_CAPTURE_STATUS_NONE);
    }
}

}  // namespace
