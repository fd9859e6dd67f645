// Streams, graphs, contexts: that a call is asynchronous, capturable and independent of where it runs.
#include "../conformance.hpp"
#include "gpu.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace hg::test {
namespace {

// Work that occupies a stream until was_waited_for() is called, ten seconds at most.
class Hold {
public:
    explicit Hold(CUstream_st* stream) : stream_(stream) { Cuda::get()->call_host(stream, wait_); }
    ~Hold() { was_waited_for(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // Did it end before, since what was called waited for it?
    bool was_waited_for()
    {
        released_ = true;
        Cuda::get()->wait(stream_);
        return ended_by_itself_;
    }

private:
    CUstream_st* stream_;
    std::atomic<bool> released_ = false, ended_by_itself_ = false;
    std::function<void()> wait_ = [this] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!released_ && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
        ended_by_itself_ = !released_;
    };
};

GemmCase case_of(uint64_t seed)
{
    GemmCase g;
    g.layout = seed % 2 == 0 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = ops[seed / 2 % 2];
    g.transb = ops[seed / 4 % 2];
    g.type_ab = g.type_c = g.type_d = halves[seed % 2];
    const bool is_slow = thinning() > 1;
    g.m = is_slow ? 100 + static_cast<int64_t>(seed) * 20 : 300 + static_cast<int64_t>(seed) * 40;
    g.n = is_slow ? 264 : 520;
    g.k = 200 + static_cast<int64_t>(seed) * 8;
    g.aligned = seed % 5 != 0;
    g.a.gap = static_cast<int64_t>(seed % 3);
    g.beta = seed % 3 == 0 ? 0 : 1;
    g.data = Data::Normal;
    g.seed = seed;
    return g;
}

void expect_right(Trial& trial, const Library& library)
{
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "");
}

class DeviceStreams : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override { NEEDS_BACKEND(GetParam()); }
};

// Two handles at work on two streams at once.
TEST_P(DeviceStreams, two_at_once)
{
    const std::unique_ptr<Library> libraries[] = {make(GetParam()), make(GetParam())};
    const Stream streams[2];
    std::vector<std::unique_ptr<Trial>> trials;
    for (uint64_t i = 0; i < 16; ++i) {
        trials.push_back(std::make_unique<Trial>(case_of(i), libraries[0]->memory()));
        trials.back()->upload();
    }
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(hgemm_set_stream(libraries[i]->handle(), streams[i]), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
    for (size_t i = 0; i < trials.size(); ++i)
        ASSERT_EQ(libraries[i % 2]->start(trials[i]->args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    Cuda::get()->wait();
    for (const auto& trial : trials)
        expect_right(*trial, *libraries[0]);
    hgemm_stream_t stream = nullptr;
    EXPECT_EQ(hgemm_get_stream(libraries[1]->handle(), &stream), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(stream, streams[1]);
}

// The first calls of a handle, behind work that does not end before they have returned. CUDA may wait for
// that when it loads code, so another handle has launched the kernels before.
TEST_P(DeviceStreams, calls_do_not_wait)
{
    const auto before = make(GetParam()), library = make(GetParam());
    const Stream stream;
    std::vector<std::unique_ptr<Trial>> trials;
    for (uint64_t i = 0; i < 8; ++i) {
        trials.push_back(std::make_unique<Trial>(case_of(i), library->memory()));
        trials.back()->upload();
        ASSERT_EQ(before->start(trials.back()->args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        Cuda::get()->wait();
        trials.back()->upload();
    }
    ASSERT_EQ(hgemm_set_stream(library->handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    const size_t free_before = Cuda::get()->free_bytes();
    Hold hold(stream);
    for (const auto& trial : trials)
        EXPECT_EQ(library->start(trial->args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_FALSE(hold.was_waited_for()) << "a call waited for the stream";
    EXPECT_EQ(Cuda::get()->free_bytes(), free_before) << "a call allocated device memory";
    for (const auto& trial : trials)
        expect_right(*trial, *library);
}

// The default stream may be busy, and streams that do not block do not wait for it.
TEST_P(DeviceStreams, creation_does_not_wait_for_the_default_stream)
{
    const auto loaded = make(GetParam());  // its kernels: loading them may wait
    Hold hold(nullptr);
    const auto library = make(GetParam());
    EXPECT_FALSE(hold.was_waited_for()) << "hgemm_create() waited for the default stream";
}

// The handle's first calls are captured; replays read what then lies in memory, scalars and pointers too.
TEST_P(DeviceStreams, graph_as_first_call)
{
    const auto library = make(GetParam());
    const Stream stream;
    std::vector<GemmCase> cases = {case_of(0), case_of(1), case_of(5), case_of(7)};
    cases[1].device_scalars = true;
    cases[2].batch = Batch::Arrays;
    cases[2].batch_count = 3;
    cases[3].batch = Batch::Strided;
    cases[3].batch_count = 2;
    std::vector<std::unique_ptr<Trial>> trials;
    for (const GemmCase& g : cases)
        trials.push_back(std::make_unique<Trial>(g, library->memory()));
    ASSERT_EQ(hgemm_set_stream(library->handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    CUgraphExec_st* graph = Cuda::get()->capture(stream, [&] {
        for (const auto& trial : trials)
            EXPECT_EQ(library->start(trial->args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    });
    for (int replay = 0; replay < 3; ++replay) {
        for (size_t i = 0; i < trials.size(); ++i) {
            GemmCase refilled = cases[i];
            refilled.seed += 100 * static_cast<uint64_t>(replay + 1);
            trials[i]->fill_a(Trial::data_a(refilled));
            trials[i]->fill_b(Trial::data_b(refilled));
            trials[i]->fill_c(Trial::data_c(refilled));
            trials[i]->set_scalars(replay == 1 ? 0 : 0.5f, replay == 2 ? 0 : -1);
            trials[i]->upload();
        }
        Cuda::get()->launch(graph, stream);
        Cuda::get()->wait(stream);
        for (const auto& trial : trials)
            expect_right(*trial, *library);
    }
    Cuda::get()->destroy(graph);
}

// A call needs no current context, and leaves the thread's as it is.
TEST_P(DeviceStreams, call_without_a_current_context)
{
    const auto library = make(GetParam());
    Trial trial(case_of(3), library->memory());
    trial.upload();
    std::thread([&] {
        EXPECT_EQ(library->start(trial.args()), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    }).join();
    Cuda::get()->wait();
    expect_right(trial, *library);
}

TEST_P(DeviceStreams, foreign_stream_is_refused)
{
    const auto library = make(GetParam());
    Cuda& cuda = *Cuda::get();
    CUctx_st* other = cuda.create_context();
    cuda.make_current(other);
    CUstream_st* foreign = cuda.create_stream();
    cuda.make_current(cuda.context());
    EXPECT_EQ(hgemm_set_stream(library->handle(), foreign), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_last_error_argument(), 2);
    EXPECT_NE(std::string(hgemm_last_error()).find("must belong to the handle's context"),
              std::string::npos)
        << hgemm_last_error();
    hgemm_stream_t stream = nullptr;
    EXPECT_EQ(hgemm_get_stream(library->handle(), &stream), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(stream, nullptr);
    cuda.make_current(other);
    cuda.destroy(foreign);
    cuda.make_current(cuda.context());
    cuda.destroy(other);
    Trial trial(case_of(2), library->memory());
    trial.upload();
    EXPECT_EQ(library->run(trial.args()), HGEMM_STATUS_SUCCESS) << library->story();
    expect_right(trial, *library);
}

// hgemm_create() takes the current context, whichever it is; the work then runs in that one.
TEST_P(DeviceStreams, handle_of_the_current_context)
{
    Cuda& cuda = *Cuda::get();
    hgemm_handle_t handle = nullptr;
    ASSERT_EQ(hgemm_create(&handle), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_STRNE(hgemm_backend(handle), "host");
    CUctx_st* other = cuda.create_context();
    cuda.make_current(other);
    hgemm_handle_t second = nullptr;
    ASSERT_EQ(hgemm_create(&second), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    CUstream_st* stream = cuda.create_stream();
    EXPECT_EQ(hgemm_set_stream(second, stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(hgemm_set_stream(handle, stream), HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_set_stream(second, nullptr), HGEMM_STATUS_SUCCESS);
    EXPECT_EQ(hgemm_destroy(second), HGEMM_STATUS_SUCCESS);
    cuda.destroy(stream);
    cuda.make_current(cuda.context());
    cuda.destroy(other);
    EXPECT_EQ(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

TEST_P(DeviceStreams, missing_device)
{
    hgemm_handle_t handle = reinterpret_cast<hgemm_handle_t>(8);
    EXPECT_EQ(hgemm_create_on(&handle, 4711), HGEMM_STATUS_NO_DEVICE);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(hgemm_last_error_argument(), 2);
}

INSTANTIATE_TEST_SUITE_P(, DeviceStreams, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
