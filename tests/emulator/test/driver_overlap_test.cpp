// The emulated driver with EMU_OVERLAP=1 and four multiprocessors: kernels that nothing orders run in
// turns.
#include "driver_fixture.hpp"

using namespace emu::test;

namespace {

constexpr int multiprocessors = 4;

const char* const ptx = R"(
.version 8.0
.target sm_80
.address_size 64

.extern .shared .align 16 .b8 dynamic[];

// Until a word is at least `value`.
.visible .entry wait_for(.param .u64 word, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [word];
    ld.param.u32 %r1, [value];
AGAIN:
    ld.acquire.gpu.u32 %r2, [%rd1];
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra AGAIN;
    ret;
}

// The same, and it tells in the word behind that it has begun.
.visible .entry hold(.param .u64 word, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [word];
    ld.param.u32 %r1, [value];
    atom.add.acq_rel.gpu.u32 %r2, [%rd1+4], 1;
AGAIN:
    ld.acquire.gpu.u32 %r2, [%rd1];
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra AGAIN;
    ret;
}

.visible .entry add(.param .u64 word, .param .u32 value)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [word];
    ld.param.u32 %r1, [value];
    atom.add.acq_rel.gpu.u32 %r2, [%rd1], %r1;
    ret;
}

// A CTA waits until `value` of them have come.
.visible .entry meet(.param .u64 word, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [word];
    ld.param.u32 %r1, [value];
    atom.add.acq_rel.gpu.u32 %r2, [%rd1], 1;
AGAIN:
    ld.acquire.gpu.u32 %r2, [%rd1];
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra AGAIN;
    ret;
}

// Each CTA leaves `value` in the workspace, behind a counter. The last one adds them up, and clears the
// counter for the next launch.
.visible .entry sum(.param .u64 result, .param .u64 workspace, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [result];
    ld.param.u64 %rd2, [workspace];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.relaxed.gpu.u32 [%rd4+4], %r1;
    atom.add.acq_rel.gpu.u32 %r4, [%rd2], 1;
    add.u32 %r5, %r4, 1;
    setp.ne.u32 %p1, %r5, %r3;
    @%p1 bra DONE;
    mov.u32 %r6, 0;
    mov.u64 %rd5, %rd2;
    mov.u32 %r8, %r3;
NEXT:
    ld.relaxed.gpu.u32 %r7, [%rd5+4];
    add.u32 %r6, %r6, %r7;
    add.s64 %rd5, %rd5, 4;
    sub.u32 %r8, %r8, 1;
    setp.ne.u32 %p1, %r8, 0;
    @%p1 bra NEXT;
    st.global.u32 [%rd1], %r6;
    st.relaxed.gpu.u32 [%rd2], 0;
DONE:
    ret;
}
)";

class Overlap : public Driver {
protected:
    void SetUp() override
    {
        Driver::SetUp();
        ASSERT_CU(CU(cuModuleLoadData)(&module, ptx));
        ASSERT_CU(CU(cuStreamCreate)(&first, CU_STREAM_NON_BLOCKING));
        ASSERT_CU(CU(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING));
    }
    CUdeviceptr words(unsigned count)
    {
        const CUdeviceptr address = allocate(count * sizeof(unsigned));
        EXPECT_CU(CU(cuMemsetD32)(address, 0, count), success);
        return address;
    }
    unsigned word(CUdeviceptr at)
    {
        unsigned value = 0;
        EXPECT_CU(CU(cuMemcpyDtoH)(&value, at, sizeof value), success);
        return value;
    }
    // One thread in a CTA.
    template <typename... Arguments>
    void run(const char* name, unsigned ctas, CUstream stream, Arguments... arguments)
    {
        run_with(name, ctas, 0, stream, arguments...);
    }
    template <typename... Arguments>
    void run_with(const char* name, unsigned ctas, unsigned shared, CUstream stream, Arguments... arguments)
    {
        void* parameters[] = {&arguments...};
        EXPECT_CU(
            CU(cuLaunchKernel)(kernel(name), ctas, 1, 1, 1, 1, 1, shared, stream, parameters, nullptr),
            success);
    }
    template <typename Body>
    CUgraphExec record(Body body)
    {
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        EXPECT_CU(CU(cuStreamBeginCapture)(first, CU_STREAM_CAPTURE_MODE_GLOBAL), success);
        body();
        EXPECT_CU(CU(cuStreamEndCapture)(first, &graph), success);
        EXPECT_CU(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), success);
        EXPECT_CU(CU(cuGraphDestroy)(graph), success);
        return executable;
    }
    // How many of 40 pairs of sums, launched at the same time, have a wrong one. Each adds up `ctas` times
    // its value.
    template <typename Launch>
    int wrong_pairs(CUdeviceptr results, unsigned ctas, Launch launch_both)
    {
        int wrong = 0;
        for (int i = 0; i < 40; ++i) {
            EXPECT_CU(CU(cuMemsetD32)(results, 0, 2), success);
            launch_both();
            EXPECT_CU(CU(cuCtxSynchronize)(), success);
            wrong += word(results) != ctas || word(results + 4) != ctas * 10;
        }
        return wrong;
    }
    void expect_deadlock(CUresult result)
    {
        EXPECT_CU(result, CUDA_ERROR_LAUNCH_TIMEOUT);
        found = EMU(emu_reports)();
    }

    CUstream first = nullptr, second = nullptr;
    std::string found;  // reports of a deadlock
};

TEST_F(Overlap, AKernelMayWaitForOneOfAnotherStream)
{
    const CUdeviceptr flag = words(1);
    run("wait_for", 2, first, flag, 3u);
    run("add", 3, second, flag, 1u);
    EXPECT_CU(CU(cuStreamSynchronize)(first), success);
    EXPECT_EQ(word(flag), 3u);
}

TEST_F(Overlap, BranchesOfAGraphDoNotWaitForEachOther)
{
    const CUdeviceptr flag = words(1);
    CUevent fork = nullptr, join = nullptr;
    ASSERT_CU(CU(cuEventCreate)(&fork, 0));
    ASSERT_CU(CU(cuEventCreate)(&join, 0));
    const CUgraphExec executable = record([&] {
        EXPECT_CU(CU(cuEventRecord)(fork, first), success);
        EXPECT_CU(CU(cuStreamWaitEvent)(second, fork, 0), success);
        run("wait_for", 1, first, flag, 1u);
        run("add", 1, second, flag, 1u);
        EXPECT_CU(CU(cuEventRecord)(join, second), success);
        EXPECT_CU(CU(cuStreamWaitEvent)(first, join, 0), success);
    });
    EXPECT_CU(CU(cuGraphLaunch)(executable, first), success);
    EXPECT_CU(CU(cuStreamSynchronize)(first), success);
    EXPECT_CU(CU(cuGraphExecDestroy)(executable), success);
}

TEST_F(Overlap, AKernelThatWaitsForALaterOneOfItsStreamIsADeadlock)
{
    const CUdeviceptr flag = words(1);
    run("wait_for", 1, first, flag, 1u);
    run("add", 1, first, flag, 1u);
    expect_deadlock(CU(cuStreamSynchronize)(first));
    EXPECT_NE(found.find("livelock in wait_for"), std::string::npos) << found;
}

// Two launches that share a counter and a workspace; and two that do not.
TEST_F(Overlap, LaunchesThatShareAWorkspaceAreWrong)
{
    constexpr unsigned ctas = 8;
    const CUdeviceptr results = words(2), workspace = words(1 + ctas), other = words(1 + ctas);
    const auto sums = [&](CUdeviceptr of_second) {
        return wrong_pairs(results, ctas, [&] {
            run("sum", ctas, first, results, workspace, 1u);
            run("sum", ctas, second, results + 4, of_second, 10u);
        });
    };
    EXPECT_GT(sums(workspace), 4);
    EXPECT_CU(CU(cuMemsetD32)(workspace, 0, 1), success);
    EXPECT_EQ(sums(other), 0);
}

TEST_F(Overlap, GraphsThatShareAWorkspaceAreWrong)
{
    constexpr unsigned ctas = 8;
    const CUdeviceptr results = words(2), workspace = words(1 + ctas), other = words(1 + ctas);
    const CUgraphExec one = record([&] { run("sum", ctas, first, results, workspace, 1u); });
    const CUgraphExec two = record([&] { run("sum", ctas, first, results + 4, workspace, 10u); });
    const CUgraphExec own = record([&] { run("sum", ctas, first, results + 4, other, 10u); });
    const auto sums = [&](CUgraphExec with) {
        return wrong_pairs(results, ctas, [&] {
            EXPECT_CU(CU(cuGraphLaunch)(one, first), success);
            EXPECT_CU(CU(cuGraphLaunch)(with, second), success);
        });
    };
    EXPECT_GT(sums(two), 4);
    EXPECT_CU(CU(cuMemsetD32)(workspace, 0, 1), success);
    EXPECT_EQ(sums(own), 0);
    for (CUgraphExec executable : {one, two, own}) {
        EXPECT_CU(CU(cuGraphExecDestroy)(executable), success);
    }
}

// The launches of one executable graph come one after the other, on whichever streams.
TEST_F(Overlap, LaunchesOfOneExecutableGraphAreOrdered)
{
    constexpr unsigned ctas = 8;
    const CUdeviceptr result = words(1), workspace = words(1 + ctas);
    const CUgraphExec executable = record([&] { run("sum", ctas, first, result, workspace, 1u); });
    for (int i = 0; i < 40; ++i) {
        EXPECT_CU(CU(cuGraphLaunch)(executable, first), success);
        EXPECT_CU(CU(cuGraphLaunch)(executable, second), success);
        EXPECT_CU(CU(cuCtxSynchronize)(), success);
        EXPECT_EQ(word(result), ctas);
        EXPECT_EQ(word(workspace), 0u);
    }
    EXPECT_CU(CU(cuGraphExecDestroy)(executable), success);
}

TEST_F(Overlap, WaitingForCtasThatHaveNotStartedIsADeadlock)
{
    const CUdeviceptr counter = words(1);
    run("meet", 2 * multiprocessors, first, counter, 2u * multiprocessors);
    expect_deadlock(CU(cuStreamSynchronize)(first));
    EXPECT_NE(found.find("4 of 8 clusters have not started"), std::string::npos) << found;
}

// One CTA of another kernel fills each multiprocessor but one.
class Held : public Overlap {
protected:
    void SetUp() override
    {
        Overlap::SetUp();
        flag = words(2);
        counter = words(1);
        int most = 0;
        ASSERT_CU(
            CU(cuDeviceGetAttribute)(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
        ASSERT_CU(
            CU(cuFuncSetAttribute)(kernel("hold"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
        run_with("hold", multiprocessors - 1, static_cast<unsigned>(most), first, flag, 1u);
        run("wait_for", 1, second, flag + 4, multiprocessors - 1u);
        EXPECT_CU(CU(cuStreamSynchronize)(second), success);
    }
    CUdeviceptr flag = 0, counter = 0;
};

TEST_F(Held, CtasThatNeedNoOthersEndOnWhatIsFree)
{
    run("add", 2 * multiprocessors, second, counter, 1u);
    EXPECT_CU(CU(cuStreamSynchronize)(second), success);
    EXPECT_EQ(word(counter), 2u * multiprocessors);
    run("add", 1, second, flag, 1u);
    EXPECT_CU(CU(cuCtxSynchronize)(), success);
}

TEST_F(Held, CtasThatWaitForEachOtherDoNotEnd)
{
    run_with("meet", 2, 40000, second, counter, 2u);
    expect_deadlock(CU(cuStreamSynchronize)(second));
    EXPECT_NE(found.find("livelock in hold"), std::string::npos) << found;
    EXPECT_NE(found.find("livelock in meet"), std::string::npos) << found;
}

TEST_F(Held, ButEndOnceThereIsRoom)
{
    run_with("meet", 2, 40000, second, counter, 2u);
    CUstream third = nullptr;
    ASSERT_CU(CU(cuStreamCreate)(&third, CU_STREAM_NON_BLOCKING));
    run("add", 1, third, flag, 1u);
    EXPECT_CU(CU(cuCtxSynchronize)(), success);
    EXPECT_EQ(word(counter), 2u);
}

}  // namespace
