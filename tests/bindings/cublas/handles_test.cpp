// One libhgemm handle for each cuBLAS handle: its life, streams, workspaces, graphs, threads.
#include "lt_fixture.hpp"

#include <dlfcn.h>

#include <atomic>
#include <thread>

namespace hg::test {
namespace {

using namespace shim;

TEST_F(Shim, gives_back_what_a_handle_held)
{
    const Operands o(*memory_, {});
    const auto use_handle = [&] {
        void* handle = nullptr;
        cublasCreate_v2(&handle);
        EXPECT_EQ(o.gemm_ex(handle), 0);
        EXPECT_EQ(cublasDestroy_v2(handle), 0);
    };
    use_handle();
    const size_t free_before = Cuda::get()->free_bytes();
    for (int i = 0; i < 20; ++i)
        use_handle();
    // More is free where a graph of an earlier test gave its block back meanwhile: a thread of the driver says when.
    EXPECT_GE(Cuda::get()->free_bytes(), free_before);
    EXPECT_EQ(served(), 21u);
}

// One that copies operands or adds up slices of K.
constexpr Sizes needs_workspace{24, 40, 2049};

TEST_F(Shim, takes_a_workspace_where_the_caller_brings_none)
{
    const Operands o(*memory_, needs_workspace), needs_none(*memory_, {});
    const Block workspace(*memory_, 1 << 20);
    const size_t at_first = Cuda::get()->free_bytes();
    ASSERT_EQ(cublasSetWorkspace_v2(handle_, workspace.get(), workspace.bytes()), 0);
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    cublasSetStream_v2(handle_, nullptr);
    EXPECT_EQ(needs_none.gemm_ex(handle_), 0);
    EXPECT_EQ(Cuda::get()->free_bytes(), at_first);
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    const size_t taken = at_first - Cuda::get()->free_bytes();
    EXPECT_GT(taken, size_t{0});
    EXPECT_LT(taken, size_t{41} << 20);
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(at_first - Cuda::get()->free_bytes(), taken);
    EXPECT_EQ(served(), 4u);
}

// cuBLAS 13 refuses to take no bytes; another version may not.
TEST_F(Shim, takes_no_workspace_where_the_caller_wants_none)
{
    const Operands o(*memory_, {});
    const size_t at_first = Cuda::get()->free_bytes();
    ASSERT_EQ(cublasSetWorkspace_v2(handle_, nullptr, 0), 0);
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(Cuda::get()->free_bytes(), at_first);
    EXPECT_EQ(served(), 1u);
}

// Before cublasDestroy has returned, another thread may create a handle at that address.
TEST_F(Shim, keeps_what_it_knows_of_the_next_handle_at_an_address)
{
    struct Next {
        void* handle;
        const Block& workspace;
    };
    const Operands o(*memory_, {});
    const Block workspace(*memory_, 1 << 20);
    Next next{nullptr, workspace};
    void* const first = handle_;
    EXPECT_EQ(o.gemm_ex(first), 0);
    fake_set_after_destroy(
        [](void* data) {
            auto& next = *static_cast<Next*>(data);
            cublasCreate_v2(&next.handle);
            cublasSetWorkspace_v2(next.handle, next.workspace.get(), next.workspace.bytes());
        },
        &next);
    EXPECT_EQ(cublasDestroy_v2(first), 0);
    handle_ = next.handle;
    ASSERT_EQ(next.handle, first);
    const size_t at_first = Cuda::get()->free_bytes();
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(Cuda::get()->free_bytes(), at_first) << "its workspace was forgotten";
    EXPECT_EQ(served(), 2u);
}

TEST_F(Shim, follows_the_stream)
{
    CUstream_st* streams[] = {Cuda::get()->create_stream(), Cuda::get()->create_stream()};
    for (CUstream_st* stream : streams) {
        const Operands o(*memory_, {});
        cublasSetStream_v2(handle_, stream);
        // What runs on the stream of the handle is held back by what was put there before.
        std::atomic<bool> late = false;
        std::function<void()> wait = [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            late = true;
        };
        Cuda::get()->call_host(stream, wait);
        EXPECT_EQ(o.gemm_ex(handle_), 0);
        Cuda::get()->wait(stream);
        EXPECT_TRUE(late);
        EXPECT_EQ(o.wrong(), 0);
    }
    cublasSetStream_v2(handle_, nullptr);
    const Operands o(*memory_, {});
    EXPECT_EQ(o.gemm_ex(handle_), 0);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "");
    for (CUstream_st* stream : streams)
        Cuda::get()->destroy(stream);
}

// With leading dimensions that TMA cannot address, the sm90 kernel needs a workspace for copies of A and B;
// it is the only kernel here, so a product without enough of one is declined.
TEST_F(Shim, follows_the_workspace)
{
    ASSERT_EQ(Cuda::get()->cc(), 90);
    setenv("HGEMM_KERNEL", "sm90_pingpong_128x128", 1);
    const auto product = [&] {
        const Operands o(*memory_, {64, 64, 64});
        EXPECT_EQ(o.gemm_ex(handle_), 0);
        EXPECT_EQ(o.wrong(), 0);
        return calls();
    };
    const std::string ours, theirs = "cublasGemmEx ";
    EXPECT_EQ(product(), ours);
    unsetenv("HGEMM_KERNEL");
    const Block large(*memory_, 1 << 20), small(*memory_, 512);
    cublasSetWorkspace_v2(handle_, small.get(), small.bytes());
    EXPECT_EQ(product(), theirs);
    cublasSetWorkspace_v2(handle_, large.get(), large.bytes());
    EXPECT_EQ(product(), ours);
    cublasSetWorkspace_v2(handle_, large.get<char>() + 16, large.bytes() - 16);
    EXPECT_EQ(product(), ours);
    cublasSetWorkspace_v2(handle_, large.get<char>() + 16, 100);
    EXPECT_EQ(product(), theirs);

    // A new stream takes it away, and has one of its own.
    cublasSetStream_v2(handle_, nullptr);
    EXPECT_EQ(product(), ours);
    CUstream_st* stream = Cuda::get()->create_stream();
    cublasSetStream_v2(handle_, stream);
    EXPECT_EQ(product(), ours);
    cublasSetWorkspace_v2(handle_, large.get(), large.bytes());
    EXPECT_EQ(product(), ours);
    cublasSetStream_v2(handle_, nullptr);
    EXPECT_EQ(product(), ours);
    Cuda::get()->destroy(stream);
}

TEST_F(Shim, follows_the_number_of_multiprocessors)
{
    for (const int count : {1, 2, 0}) {
        cublasSetSmCountTarget(handle_, count);
        const Operands o(*memory_, {130, 140, 64});
        EXPECT_EQ(o.gemm_ex(handle_), 0);
        EXPECT_EQ(o.wrong(), 0);
    }
    EXPECT_EQ(calls(), "");
}

// The libhgemm handle is made while the graph is recorded, of a stream that blocks among others.
TEST_F(Shim, starts_inside_a_graph)
{
    using enum Cuda::Capture;
    Cuda& cuda = *Cuda::get();
    for (const bool blocking : {false, true})
        for (const Cuda::Capture mode : {Global, ThreadLocal, Relaxed}) {
            void* handle = nullptr;
            cublasCreate_v2(&handle);
            CUstream_st* stream = cuda.create_stream(blocking);
            const Operands o(*memory_, needs_workspace);
            cublasSetStream_v2(handle, stream);
            CUgraphExec_st* graph =
                cuda.capture(stream, [&] { EXPECT_EQ(o.gemm_ex(handle), 0); }, mode);
            EXPECT_EQ(cublasDestroy_v2(handle), 0);
            cuda.launch(graph, stream);
            cuda.wait(stream);
            EXPECT_EQ(o.wrong(), 0) << "blocking " << blocking << ", mode " << static_cast<int>(mode);
            cuda.destroy(graph);
            cuda.destroy(stream);
        }
    EXPECT_EQ(served(), 6u);
}

// PyTorch sets the same workspace for all graphs that it records on a stream.
TEST_F(Shim, graphs_leave_the_workspace_of_the_program_alone)
{
    Cuda& cuda = *Cuda::get();
    CUstream_st* stream = cuda.create_stream();
    const Operands first(*memory_, needs_workspace), second(*memory_, needs_workspace);
    const Block workspace(*memory_, 1 << 20);
    const std::vector<unsigned char> before(workspace.bytes(), 0x5a);
    cuda.copy_in(workspace.get(), before.data(), before.size());
    cublasSetStream_v2(handle_, stream);
    ASSERT_EQ(cublasSetWorkspace_v2(handle_, workspace.get(), workspace.bytes()), 0);
    std::vector<CUgraphExec_st*> graphs;
    for (const Operands* o : {&first, &second})
        graphs.push_back(cuda.capture(stream, [&] { EXPECT_EQ(o->gemm_ex(handle_), 0); }));
    for (CUgraphExec_st* graph : graphs)
        cuda.launch(graph, stream);
    cuda.wait(stream);
    std::vector<unsigned char> after(before.size());
    cuda.copy_out(after.data(), workspace.get(), after.size());
    EXPECT_TRUE(after == before);
    EXPECT_EQ(first.wrong() + second.wrong(), 0);
    EXPECT_EQ(served(), 2u);
    for (CUgraphExec_st* graph : graphs)
        cuda.destroy(graph);
    cublasSetStream_v2(handle_, nullptr);
    cuda.destroy(stream);
}

TEST_F(Shim, graphs_outlive_the_handle)
{
    CUstream_st* stream = Cuda::get()->create_stream();
    const Operands o(*memory_, {});
    cublasSetStream_v2(handle_, stream);
    CUgraphExec_st* graph = Cuda::get()->capture(stream, [&] { EXPECT_EQ(o.gemm_ex(handle_), 0); });
    EXPECT_EQ(cublasDestroy_v2(handle_), 0);
    handle_ = nullptr;
    const auto count = reinterpret_cast<uint64_t (*)(const char*)>(
        dlsym(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), "emu_calls"));
    ASSERT_TRUE(count);
    EXPECT_EQ(count("cuLibraryUnload"), 0u);
    Cuda::get()->launch(graph, stream);
    Cuda::get()->wait(stream);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(served(), 1u);
    Cuda::get()->destroy(graph);
    Cuda::get()->destroy(stream);
}

TEST_F(Shim, serves_threads_with_handles_of_their_own)
{
    constexpr int count = 4, repeats = 8;
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
        threads.emplace_back([&] {
            Cuda::get()->make_current(Cuda::get()->context());
            CUstream_st* stream = Cuda::get()->create_stream();
            for (int i = 0; i < repeats; ++i) {
                void* handle = nullptr;
                cublasCreate_v2(&handle);
                cublasSetStream_v2(handle, stream);
                const Operands o(*memory_, {});
                EXPECT_EQ(o.gemm_ex(handle), 0);
                Cuda::get()->wait(stream);
                EXPECT_EQ(o.wrong(), 0);
                EXPECT_EQ(cublasDestroy_v2(handle), 0);
            }
            Cuda::get()->destroy(stream);
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(served(), uint64_t{count * repeats});
}

TEST_F(Shim, serves_threads_that_share_a_handle)
{
    constexpr int count = 3, repeats = 8;
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
        threads.emplace_back([&] {
            Cuda::get()->make_current(Cuda::get()->context());
            for (int i = 0; i < repeats; ++i) {
                const Operands o(*memory_, {});
                EXPECT_EQ(o.gemm_ex(handle_), 0);
                EXPECT_EQ(o.wrong(), 0);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(served(), uint64_t{count * repeats});
    EXPECT_EQ(calls(), "");
}

// The real library makes the context; a handle that nobody used before has nothing to work with yet.
TEST_F(Shim, passes_on_in_a_thread_without_a_context)
{
    const Operands o(*memory_, {});
    const auto call = [&] {
        Cuda::get()->make_current(nullptr);
        EXPECT_EQ(cublasHgemm(handle_, 0, 0, 24, 17, 40, &o.half_alpha, static_cast<uint16_t*>(o.a.ptr()),
                              static_cast<int>(o.a.ld()), static_cast<uint16_t*>(o.b.ptr()),
                              static_cast<int>(o.b.ld()), &o.half_beta, static_cast<uint16_t*>(o.c.ptr()),
                              static_cast<int>(o.c.ld())),
                  0);
    };
    std::thread(call).join();
    EXPECT_EQ(calls(), "cublasHgemm ");
    EXPECT_NE(summary().find("no CUDA context in this thread yet"), std::string::npos);

    const Operands other(*memory_, {});
    EXPECT_EQ(other.gemm_ex(handle_), 0);
    std::thread(call).join();
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(Shim, verify_compares_and_leaves_the_real_result)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    const Operands same(*memory_, {32, 16, 8});
    EXPECT_EQ(same.gemm_ex(handle_), 0);
    EXPECT_EQ(same.wrong(), 0);
    EXPECT_EQ(calls(), "cublasGemmEx ");
    EXPECT_NE(summary().find("cublasGemmEx nn 32x16x8 f16 to f16: 1 compared, largest difference 0.00e+00"),
              std::string::npos)
        << summary();

    fake_set_error(1.25);
    const Operands different(*memory_, {32, 24, 8}, op_t, op_n, r_16bf, r_32f);
    EXPECT_EQ(different.gemm_ex(handle_), 0);
    EXPECT_EQ(different.wrong(1.25), 0);
    EXPECT_NE(
        summary().find("cublasGemmEx tn 32x24x8 bf16 to f32: 1 compared, largest difference 2.00e-01"),
        std::string::npos)
        << summary();
    EXPECT_EQ(served(), 2u);
}

// The fake batched products write nothing, so what is there afterwards is what was there before.
TEST_F(Shim, verify_puts_back_what_was_there)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    const Operands o(*memory_, {24, 17, 40, 3});
    const std::vector<unsigned char> before = o.c.now();
    EXPECT_EQ(cublasGemmStridedBatchedEx(
                  handle_, 0, 0, 24, 17, 40, &o.alpha, o.a.ptr(), r_16f, static_cast<int>(o.a.ld()),
                  o.a.stride(), o.b.ptr(), r_16f, static_cast<int>(o.b.ld()), o.b.stride(), &o.beta,
                  o.c.ptr(), r_16f, static_cast<int>(o.c.ld()), o.c.stride(), 3, compute_32f, -1),
              0);
    EXPECT_EQ(o.c.now(), before);
    const Block a = o.a.pointers(*memory_), b = o.b.pointers(*memory_), c = o.c.pointers(*memory_);
    EXPECT_EQ(cublasGemmBatchedEx(handle_, 0, 0, 24, 17, 40, &o.alpha, a.get<const void*>(), r_16f,
                                  static_cast<int>(o.a.ld()), b.get<const void*>(), r_16f,
                                  static_cast<int>(o.b.ld()), &o.beta, c.get<void*>(), r_16f,
                                  static_cast<int>(o.c.ld()), 3, compute_32f, -1),
              0);
    EXPECT_EQ(o.c.now(), before);
    EXPECT_EQ(calls(), "cublasGemmStridedBatchedEx cublasGemmBatchedEx ");
    EXPECT_NE(summary().find("cublasGemmBatchedEx nn 24x17x40 x3 f16 to f16: 1 compared"),
              std::string::npos)
        << summary();
}

// What lies between the columns of C is not C: here another thread's.
TEST_F(Shim, verify_writes_nothing_but_the_result)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    const Operands o(*memory_, {24, 17, 40});
    std::atomic<bool> done = false;
    int lost = 0;
    std::thread other([&] {
        Cuda::get()->make_current(Cuda::get()->context());
        auto* const between = static_cast<uint16_t*>(o.c.ptr()) + 24;
        for (uint16_t written = 0; !done; ++written) {
            uint16_t found = 0;
            memory_->copy_in(between, &written, sizeof written);
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            memory_->copy_out(&found, between, sizeof found);
            lost += found != written;
        }
    });
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(cublasGemmStridedBatchedEx(
                      handle_, 0, 0, 24, 17, 40, &o.alpha, o.a.ptr(), r_16f, static_cast<int>(o.a.ld()),
                      o.a.stride(), o.b.ptr(), r_16f, static_cast<int>(o.b.ld()), o.b.stride(), &o.beta,
                      o.c.ptr(), r_16f, static_cast<int>(o.c.ld()), o.c.stride(), 1, compute_32f, -1),
                  0);
    done = true;
    other.join();
    EXPECT_EQ(lost, 0);
    EXPECT_EQ(served(), 20u);
}

TEST_F(Shim, verify_only_serves_while_a_graph_is_recorded)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    CUstream_st* stream = Cuda::get()->create_stream();
    const Operands o(*memory_, {});
    cublasSetStream_v2(handle_, stream);
    CUgraphExec_st* graph = Cuda::get()->capture(stream, [&] { EXPECT_EQ(o.gemm_ex(handle_), 0); });
    Cuda::get()->launch(graph, stream);
    Cuda::get()->wait(stream);
    EXPECT_EQ(o.wrong(), 0);
    EXPECT_EQ(calls(), "");
    Cuda::get()->destroy(graph);
    cublasSetStream_v2(handle_, nullptr);
    Cuda::get()->destroy(stream);
}

}  // namespace
}  // namespace hg::test
