// Graphs of products that run at the same time: those that share a workspace disturb each other, as on a
// GPU, and those that do not are right. The driver runs with EMU_OVERLAP=1.
#include "driver_fixture.hpp"

#include <hgemm.h>

using namespace emu::test;

namespace {

// Rows of operands begin at any address, so that kernels copy them to a workspace or add up slices there.
constexpr int m = 64, n = 64, k = 1024, ld = k + 1;
constexpr size_t workspace_bytes = size_t{4} << 20;

// Small numbers, whose products and sums are exact.
std::vector<hgemm_half_t> matrix(int rows, int seed)
{
    constexpr hgemm_half_t values[] = {0, 0x3c00, 0x4000, 0xbc00};  // 0, 1, 2, -1
    std::vector<hgemm_half_t> bits(static_cast<size_t>(rows) * ld);
    unsigned state = static_cast<unsigned>(seed);
    for (auto& value : bits)
        value = values[(state = state * 1664525 + 1013904223) >> 30];
    return bits;
}

class OverlappingProducts : public Driver {
protected:
    void SetUp() override
    {
        Driver::SetUp();
        ASSERT_EQ(hgemm_create(&handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        b = put(matrix(n, 99));
        for (int i = 0; i < 2; ++i) {
            ASSERT_CU(CU(cuStreamCreate)(&streams[i], CU_STREAM_NON_BLOCKING));
            a[i] = put(matrix(m, i));
            d[i] = allocate(m * n * sizeof(float));
            expected[i] = alone(i);
        }
    }
    void TearDown() override
    {
        for (CUgraphExec executable : executables) {
            EXPECT_CU(CU(cuGraphExecDestroy)(executable), success);
        }
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
        Driver::TearDown();
    }
    CUdeviceptr put(const std::vector<hgemm_half_t>& values)
    {
        const CUdeviceptr address = allocate(values.size() * sizeof values[0]);
        EXPECT_CU(CU(cuMemcpyHtoD)(address, values.data(), values.size() * sizeof values[0]), success);
        return address;
    }
    void multiply(int i)
    {
        hgemm_args_t args;
        hgemm_args_init(&args, sizeof args);
        args.transa = HGEMM_TRANS;
        args.type_c = args.type_d = HGEMM_F32;
        args.m = m, args.n = n, args.k = k;
        args.a = reinterpret_cast<void*>(a[i]), args.lda = ld;
        args.b = reinterpret_cast<void*>(b), args.ldb = ld;
        args.d = reinterpret_cast<void*>(d[i]), args.ldd = m;
        EXPECT_EQ(hgemm_gemm_ex(handle, &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    }
    std::vector<float> alone(int i)
    {
        EXPECT_EQ(hgemm_set_stream(handle, reinterpret_cast<hgemm_stream_t>(streams[i])),
                  HGEMM_STATUS_SUCCESS);
        multiply(i);
        EXPECT_CU(CU(cuStreamSynchronize)(streams[i]), success);
        return download(d[i], m * n);
    }
    // Both are captured on the first stream.
    void capture(int i, CUdeviceptr workspace)
    {
        EXPECT_EQ(hgemm_set_stream(handle, reinterpret_cast<hgemm_stream_t>(streams[0])),
                  HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(hgemm_set_workspace(handle, reinterpret_cast<void*>(workspace), workspace_bytes),
                  HGEMM_STATUS_SUCCESS);
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        EXPECT_CU(CU(cuStreamBeginCapture)(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL), success);
        multiply(i);
        EXPECT_CU(CU(cuStreamEndCapture)(streams[0], &graph), success);
        EXPECT_CU(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), success);
        EXPECT_CU(CU(cuGraphDestroy)(graph), success);
        executables.push_back(executable);
    }
    // Are the results of a pair of launches wrong, or do they hang?
    bool goes_wrong(int pairs)
    {
        for (int pair = 0; pair < pairs; ++pair) {
            for (int i = 0; i < 2; ++i) {
                EXPECT_CU(CU(cuMemsetD8)(d[i], 0xff, m * n * sizeof(float)), success);
            }
            for (int i = 0; i < 2; ++i) {
                EXPECT_CU(CU(cuGraphLaunch)(executables[i], streams[i]), success);
            }
            const CUresult ended = CU(cuCtxSynchronize)();
            if (ended == CUDA_ERROR_LAUNCH_TIMEOUT)
                return true;
            EXPECT_CU(ended, success);
            if (download(d[0], m * n) != expected[0] || download(d[1], m * n) != expected[1])
                return true;
        }
        return false;
    }

    hgemm_handle_t handle = nullptr;
    CUstream streams[2] = {};
    CUdeviceptr a[2] = {}, b = 0, d[2] = {};
    std::vector<float> expected[2];
    std::vector<CUgraphExec> executables;
};

TEST_F(OverlappingProducts, ThatShareAWorkspaceDisturbEachOther)
{
    const CUdeviceptr workspace = allocate(workspace_bytes);
    capture(0, workspace);
    capture(1, workspace);
    EXPECT_TRUE(goes_wrong(40));
}

TEST_F(OverlappingProducts, WithAWorkspaceEachAreRight)
{
    capture(0, allocate(workspace_bytes));
    capture(1, allocate(workspace_bytes));
    EXPECT_FALSE(goes_wrong(10));
}

}  // namespace
