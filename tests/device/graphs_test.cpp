// Workspaces of streams and of graphs: what runs at the same time shares none, and captures go on.
#include "../conformance.hpp"
#include "gpu.hpp"

#include <functional>

namespace hg::test {
namespace {

constexpr size_t limit = size_t{192} << 20;

// Products that use a workspace: copies of operands, sums over slices of K, counters.
std::vector<GemmCase> cases_with_workspace()
{
    const bool is_small = Cuda::get()->sm_count() <= 16;  // an emulated device
    struct Shape {
        int64_t m, n, k;
    };
    const std::vector<Shape> shapes = is_small ? std::vector<Shape>{{24, 40, 2049}, {70, 129, 257}}
                                               : std::vector<Shape>{{512, 512, 8191},
                                                                    {300, 1024, 4097},
                                                                    {64, 512, 16384},
                                                                    {512, 512, 16384},
                                                                    {512, 16384, 512}};
    std::vector<GemmCase> cases;
    for (const Shape& shape : shapes) {
        GemmCase g;
        g.layout = HGEMM_ROW_MAJOR;
        g.type_ab = g.type_c = g.type_d = halves[cases.size() % 2];
        g.transb = HGEMM_TRANS;
        g.m = shape.m;
        g.n = shape.n;
        g.k = shape.k;
        g.data = Data::Normal;
        g.seed = cases.size();
        cases.push_back(g);
    }
    return cases;
}

// A product, its graph, and the result that it has alone.
class Replayed {
public:
    Replayed(GemmCase description, uint64_t seed, Library& library)
        : library_(library), rows_(description.m), trial_(reseeded(description, seed), library.memory())
    {
        trial_.upload();
    }
    ~Replayed()
    {
        if (graph_)
            Cuda::get()->destroy(graph_);
    }
    Replayed(const Replayed&) = delete;
    Replayed& operator=(const Replayed&) = delete;

    void capture(CUstream_st* stream, Cuda::Capture mode = Cuda::Capture::Global)
    {
        graph_ = Cuda::get()->capture(
            stream,
            [&] { EXPECT_EQ(library_.start(trial_.args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error(); },
            mode);
    }
    void launch(CUstream_st* stream) { Cuda::get()->launch(graph_, stream); }
    // Alone, beside the reference.
    void expect_right(CUstream_st* stream)
    {
        launch(stream);
        Cuda::get()->wait(stream);
        trial_.download();
        EXPECT_EQ(trial_.judge(library_.arithmetic()).message, "");
        alone_ = trial_.results(rows_);
    }
    bool is_as_alone()
    {
        trial_.download();
        return trial_.results(rows_) == alone_;
    }
    const hgemm_args_t& args() const { return trial_.args(); }

private:
    static GemmCase reseeded(GemmCase g, uint64_t seed)
    {
        g.seed = seed;
        return g;
    }

    Library& library_;
    int64_t rows_;
    Trial trial_;
    CUgraphExec_st* graph_ = nullptr;
    std::vector<double> alone_;
};

class DeviceGraphs : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override { NEEDS_BACKEND(GetParam()); }

    static std::unique_ptr<Library> make_lender(const char* kernel = "")
    {
        auto library = std::make_unique<Library>(Cuda::get(), GetParam(), kernel);
        EXPECT_EQ(hgemm_set_workspace_per_stream(library->handle(), limit), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        return library;
    }
    static void set_stream(const Library& library, CUstream_st* stream)
    {
        ASSERT_EQ(hgemm_set_stream(library.handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    }
    static void* workspace_of(const Library& library)
    {
        void* workspace = nullptr;
        size_t bytes = 0;
        EXPECT_EQ(hgemm_get_workspace(library.handle(), &workspace, &bytes), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        return workspace;
    }
    // Two graphs captured on one stream, on two streams at once; returns how many results were wrong.
    static int count_wrong(const GemmCase& g, Library& library)
    {
        const Stream capturing, streams[2];
        set_stream(library, capturing);
        Replayed first(g, 2 * g.seed, library), second(g, 2 * g.seed + 1, library);
        size_t bytes = 0;
        EXPECT_EQ(hgemm_workspace_size(library.handle(), &first.args(), &bytes), HGEMM_STATUS_SUCCESS);
        EXPECT_TRUE(g.seed > 0 || bytes > 0) << library.explain(first.args());
        first.capture(capturing);
        second.capture(capturing);
        first.expect_right(streams[0]);
        second.expect_right(streams[1]);
        int wrong = 0;
        const int rounds = thinning() > 1 ? 2 : 20;
        for (int round = 0; round < rounds; ++round) {
            for (int launch = 0; launch < 4; ++launch) {
                first.launch(streams[0]);
                second.launch(streams[1]);
            }
            Cuda::get()->wait(streams[0]);
            Cuda::get()->wait(streams[1]);
            wrong += !first.is_as_alone() + !second.is_as_alone();
        }
        return wrong;
    }
};

TEST_P(DeviceGraphs, run_beside_each_other)
{
    for (const GemmCase& g : cases_with_workspace())
        EXPECT_EQ(count_wrong(g, *make_lender()), 0) << g.m << " x " << g.n << " x " << g.k;
}

// Several products and their sum, in memory of the graph's own; or one kernel, with some or none.
TEST_P(DeviceGraphs, of_trees_run_beside_each_other)
{
    const auto check = [](const GemmCase& g, const char* kernel) {
        const auto library = make_lender(kernel);
        ASSERT_EQ(hgemm_set_mode(library->handle(), HGEMM_MODE_TREE), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(count_wrong(g, *library), 0) << kernel << " unaligned " << g.a.gap;
    };
    const bool has_kernels = std::string(GetParam()) == "sm90";
    GemmCase g = cases_with_workspace()[0];
    g.k = 2048;
    g.a.gap = 1;
    check(g, "");
    g.a.gap = 0;
    g.seed = has_kernels;
    check(g, "");
    g.k = 4096;
    g.aligned = true;
    g.seed = 0;
    if (has_kernels)
        for (const char* kernel : {"sm90_tree_128x128_2x1", "/branches=4"})
            check(g, kernel);
}

// Blocks on the diagonal lie in memory of the graph's own, and so do the sums of a tree.
TEST_P(DeviceGraphs, of_triangles_run_beside_each_other)
{
    for (const hgemm_mode_t mode : {HGEMM_MODE_DEFAULT, HGEMM_MODE_TREE}) {
        const auto library = make_lender();
        ASSERT_EQ(hgemm_set_mode(library->handle(), mode), HGEMM_STATUS_SUCCESS);
        GemmCase g = cases_with_workspace()[0];
        g.m = g.n;
        g.k = 1024;
        g.uplo = HGEMM_LOWER;
        EXPECT_EQ(count_wrong(g, *library), 0) << "mode " << mode;
    }
}

// Sums of gates and of up elements lie in memory of the graph's own; or there is one kernel.
TEST_P(DeviceGraphs, of_gates_run_beside_each_other)
{
    for (const hgemm_mode_t mode : {HGEMM_MODE_DEFAULT, HGEMM_MODE_TREE})
        for (const bool halves : {false, true}) {
            const bool in_parts = mode == HGEMM_MODE_TREE || !halves;
            const auto library = make_lender();
            ASSERT_EQ(hgemm_set_mode(library->handle(), mode), HGEMM_STATUS_SUCCESS);
            GemmCase g = cases_with_workspace()[0];
            g.k = 1024;
            g.activation = in_parts ? HGEMM_ACTIVATION_GELU_ERF : HGEMM_ACTIVATION_SILU;
            g.seed = !in_parts;
            g.gate.block = halves ? g.n / 2 : 4;
            EXPECT_EQ(count_wrong(g, *library), 0) << "mode " << mode << " block " << g.gate.block;
        }
}

// A graph does not use what the caller's other calls use, but has the same plan as they.
TEST_P(DeviceGraphs, leave_the_callers_workspace_alone)
{
    const auto library = make_lender();
    const size_t bytes = size_t{64} << 20;
    void* const memory = Cuda::get()->allocate(bytes);
    ASSERT_EQ(hgemm_set_workspace(library->handle(), memory, bytes), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(workspace_of(*library), memory);
    EXPECT_EQ(count_wrong(cases_with_workspace()[0], *library), 0);
    const Stream stream;
    set_stream(*library, stream);
    Replayed product(cases_with_workspace()[0], 7, *library);
    const std::string eager = library->explain(product.args());
    std::string captured;
    Cuda::get()->destroy(
        Cuda::get()->capture(stream, [&] { captured = library->explain(product.args()); }));
    EXPECT_EQ(captured, eager);
    Cuda::get()->release(memory);
}

TEST_P(DeviceGraphs, outlive_the_handle)
{
    const auto library = make_lender();
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create_sized(&handle, 0, 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    ASSERT_EQ(hgemm_set_workspace_per_stream(handle, limit), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    const Stream stream;
    ASSERT_EQ(hgemm_set_stream(handle, stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    Trial trial(cases_with_workspace()[0], library->memory());
    trial.upload();
    CUgraphExec_st* const graph = Cuda::get()->capture(stream, [&] {
        EXPECT_EQ(hgemm_gemm_ex(handle, &trial.args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    });
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    Cuda::get()->launch(graph, stream);
    Cuda::get()->wait(stream);
    trial.download();
    EXPECT_EQ(trial.judge(library->arithmetic()).message, "");
    Cuda::get()->destroy(graph);
}

TEST_P(DeviceGraphs, give_their_workspace_back)
{
    const auto library = make_lender();
    const Stream stream;
    set_stream(*library, stream);
    Replayed(cases_with_workspace()[0], 3, *library).capture(stream);
    Cuda::get()->wait();
    const size_t free_before = Cuda::get()->free_bytes();
    for (int i = 0; i < 8; ++i)
        Replayed(cases_with_workspace()[0], 3, *library).capture(stream);
    EXPECT_GE(Cuda::get()->free_bytes() + (size_t{48} << 20), free_before);
}

// Whatever the capture forbids, the first product of a stream that blocks, on a handle made for it, is in
// it.
TEST_P(DeviceGraphs, begin_with_the_first_call)
{
    using enum Cuda::Capture;
    const auto library = make_lender();
    Cuda& cuda = *Cuda::get();
    for (const bool blocking : {false, true})
        for (const Cuda::Capture mode : {Global, ThreadLocal, Relaxed}) {
            CUstream_st* const stream = cuda.create_stream(blocking);
            Trial trial(cases_with_workspace()[0], library->memory());
            trial.upload();
            hgemm_handle_t handle = nullptr;
            CUgraphExec_st* const graph = cuda.capture(
                stream,
                [&] {
                    EXPECT_EQ(hgemm_create_sized(&handle, 0, 0), HGEMM_STATUS_SUCCESS)
                        << hgemm_last_error();
                    EXPECT_EQ(hgemm_set_workspace_per_stream(handle, limit), HGEMM_STATUS_SUCCESS);
                    EXPECT_EQ(hgemm_set_stream(handle, stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
                    EXPECT_EQ(hgemm_gemm_ex(handle, &trial.args()), HGEMM_STATUS_SUCCESS)
                        << hgemm_last_error();
                },
                mode);
            cuda.launch(graph, stream);
            cuda.wait(stream);
            trial.download();
            EXPECT_EQ(trial.judge(library->arithmetic()).message, "")
                << "blocking " << blocking << ", mode " << static_cast<int>(mode);
            cuda.destroy(graph);
            EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
            cuda.destroy(stream);
        }
}

// Handles come and go while another stream, which blocks, is captured.
TEST_P(DeviceGraphs, go_on_while_handles_are_made)
{
    const auto library = make(GetParam());
    Cuda& cuda = *Cuda::get();
    CUstream_st* const stream = cuda.create_stream(true);
    set_stream(*library, stream);
    Replayed product(cases_with_workspace()[0], 5, *library);
    CUgraphExec_st* const graph = cuda.capture(stream, [&] {
        hgemm_handle_t handle = nullptr;
        EXPECT_EQ(hgemm_create_on(&handle, 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_EQ(hgemm_set_stream(handle, nullptr), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_EQ(library->start(product.args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    });
    cuda.destroy(graph);
    cuda.destroy(stream);
}

// A stream is destroyed while its product runs, and another one gets its address, if one of some does.
TEST_P(DeviceGraphs, streams_of_one_address_share_nothing)
{
    const auto library = make_lender();
    Cuda& cuda = *Cuda::get();
    const GemmCase g = cases_with_workspace()[0];
    Trial first(g, library->memory()), second(g, library->memory());
    first.upload();
    second.upload();
    CUstream_st* const stream = cuda.create_stream();
    set_stream(*library, stream);
    for (int i = 0; i < 4; ++i)
        ASSERT_EQ(library->start(first.args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    void* const workspace = workspace_of(*library);
    cuda.destroy(stream);
    std::vector<CUstream_st*> created;
    while (created.size() < 16 && (created.empty() || created.back() != stream))
        created.push_back(cuda.create_stream());
    if (created.back() != stream)
        set_stream(*library, created.back());
    ASSERT_EQ(library->start(second.args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_NE(workspace_of(*library), workspace);
    cuda.wait();
    for (Trial* trial : {&first, &second}) {
        trial->download();
        EXPECT_EQ(trial->judge(library->arithmetic()).message, "");
    }
    for (CUstream_st* each : created)
        cuda.destroy(each);
}

INSTANTIATE_TEST_SUITE_P(, DeviceGraphs, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
