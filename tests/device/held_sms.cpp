#include "held_sms.hpp"

#include "driver_functions.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

// Declarations follow cuda.h of CUDA 12; the names are the ABI's, with its version suffixes.
#define HELD_FUNCTIONS(F)                                                                                  \
    F(cuDeviceGetAttribute, (int*, int, int))                                                              \
    F(cuModuleLoadData, (Module**, const void*))                                                           \
    F(cuModuleGetFunction, (Function**, Module*, const char*))                                             \
    F(cuFuncSetAttribute, (Function*, int, int))                                                           \
    F(cuLaunchKernelEx, (const LaunchConfig*, Function*, void**, void**))                                  \
    F(cuMemHostAlloc, (void**, size_t, unsigned))                                                          \
    F(cuMemFreeHost, (void*))                                                                              \
    F(cuMemHostGetDevicePointer_v2, (unsigned long long*, void*, unsigned))                                \
    F(cuCtxGetStreamPriorityRange, (int*, int*))                                                           \
    F(cuStreamCreateWithPriority, (CUstream_st**, unsigned, int))                                          \
    F(cuStreamQuery, (CUstream_st*))

namespace hg::test {
namespace {

struct Module;
struct Function;
struct LaunchAttribute {
    int id = 4, padding = 0;  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    unsigned x = 1, y = 1, z = 1, unused[13] = {};
};
struct LaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    CUstream_st* stream;
    LaunchAttribute* attributes;
    unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

DRIVER_FUNCTIONS(HELD_FUNCTIONS)

// A CTA fills its SM's shared memory, so that each SM has one. hold() waits until all have begun: one that
// ended before would leave its SM to the next. Then those on free SMs end, and the others say that they
// hold theirs. %rd4: when to give up, in ns.
constexpr const char* kernels = R"(
.address_size 64
.visible .entry hold(.param .u64 device, .param .u64 host, .param .u64 limit)
{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd0, [device];
    ld.param.u64 %rd1, [host];
    ld.param.u64 %rd2, [limit];
    cvta.to.global.u64 %rd0, %rd0;
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r0, %smid;
    mov.u32 %r1, %nctaid.x;
    mov.u64 %rd3, %globaltimer;
    add.u64 %rd4, %rd3, %rd2;
    mul.wide.u32 %rd5, %r0, 4;
    add.u64 %rd6, %rd5, %rd0;
    add.u64 %rd7, %rd5, %rd1;
    atom.add.relaxed.gpu.global.u32 %r2, [%rd0], 1;
BEGIN:
    ld.relaxed.gpu.global.u32 %r2, [%rd0];
    setp.lt.u32 %p0, %r2, %r1;
    mov.u64 %rd3, %globaltimer;
    setp.lt.and.u64 %p1, %rd3, %rd4, %p0;
    @%p1 bra BEGIN;
    ld.global.u32 %r3, [%rd6 + 4];
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra END;
    st.relaxed.sys.global.u32 [%rd7 + 4], 1;
HELD:
    nanosleep.u32 1000;
    ld.relaxed.sys.global.u32 %r4, [%rd1];
    setp.eq.u32 %p0, %r4, 0;
    mov.u64 %rd3, %globaltimer;
    setp.lt.and.u64 %p1, %rd3, %rd4, %p0;
    @%p1 bra HELD;
END:
    ret;
}
.visible .entry probe(.param .u64 places)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [places];
    cvta.to.global.u64 %rd0, %rd0;
    mov.u32 %r0, %smid;
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd1, %r1, 4;
    add.u64 %rd1, %rd1, %rd0;
    st.global.u32 [%rd1], %r0;
    ret;
}
)";

constexpr size_t most_sms = 1024, words_bytes = (1 + most_sms) * sizeof(uint32_t);

// The kernels of the device's primary context, as long as the process lives: loading them waits for others.
struct Kernels {
    Function *hold = nullptr, *probe = nullptr;
    int shared_bytes = 0;  // all that a CTA may have, which leaves nothing on its SM

    Kernels()
    {
        Module* module = nullptr;
        const bool has_clusters = Cuda::get()->cc() >= 90;
        const std::string ptx =
            (has_clusters ? ".version 7.8\n.target sm_90" : ".version 7.0\n.target sm_80") +
            std::string(kernels);
        CHECK(cuModuleLoadData, &module, ptx.c_str());
        CHECK(cuModuleGetFunction, &hold, module, "hold");
        CHECK(cuModuleGetFunction, &probe, module, "probe");
        constexpr int shared_memory_per_block_optin = 97, max_dynamic_shared_bytes = 8;
        CHECK(cuDeviceGetAttribute, &shared_bytes, shared_memory_per_block_optin, 0);
        for (Function* function : {hold, probe})
            CHECK(cuFuncSetAttribute, function, max_dynamic_shared_bytes, shared_bytes);
    }
};

void launch(Function* Kernels::*function, int ctas, int cluster, CUstream_st* stream, void** parameters)
{
    static const Kernels loaded;
    LaunchAttribute attribute;
    attribute.x = static_cast<unsigned>(cluster);
    const LaunchConfig config{{static_cast<unsigned>(ctas), 1, 1},
                              {1, 1, 1},
                              static_cast<unsigned>(loaded.shared_bytes),
                              stream,
                              &attribute,
                              cluster > 1 ? 1u : 0u};
    CHECK(cuLaunchKernelEx, &config, loaded.*function, parameters, nullptr);
}

// Whether it comes true within so many seconds.
template <typename Condition>
bool await(double seconds, Condition condition)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

}  // namespace

PriorityStream::PriorityStream(Priority priority)
{
    constexpr unsigned non_blocking = 1;
    int lowest = 0, highest = 0;
    CHECK(cuCtxGetStreamPriorityRange, &lowest, &highest);
    CHECK(cuStreamCreateWithPriority, &stream_, non_blocking,
          priority == Priority::Lowest ? lowest : highest);
}

bool PriorityStream::ends_within(double seconds) const
{
    constexpr int not_ready = 600;
    return await(seconds, [this] {
        const int answer = cu().cuStreamQuery(stream_);
        if (answer != not_ready)
            check_answer(answer, "cuStreamQuery");
        return answer != not_ready;
    });
}

std::string HeldSms::unavailable()
{
    if (!cu().absent.empty())
        return cu().absent;
    if (Cuda::get()->name().starts_with("emulated"))
        return Cuda::get()->name() + " runs one kernel after the other";
    return "";
}

HeldSms::HeldSms(const Sms& free, Priority priority)
    : stream_(priority), device_(Cuda::get()->allocate(words_bytes))
{
    std::vector<uint32_t> words(1 + most_sms);
    for (const uint32_t sm : free)
        words.at(1 + sm) = 1;
    Cuda::get()->copy_in(device_, words.data(), words_bytes);
    constexpr unsigned mapped = 2;
    void* host = nullptr;
    unsigned long long host_on_device = 0, nanoseconds = 30'000'000'000;
    CHECK(cuMemHostAlloc, &host, words_bytes, mapped);
    CHECK(cuMemHostGetDevicePointer_v2, &host_on_device, host, 0);
    host_ = static_cast<uint32_t*>(host);
    for (size_t i = 0; i <= most_sms; ++i)
        host_[i] = 0;
    Cuda::get()->wait();
    const int sms = Cuda::get()->sm_count(), wanted = sms - static_cast<int>(free.size());
    void* parameters[] = {&device_, &host_on_device, &nanoseconds};
    launch(&Kernels::hold, sms, 1, stream_, parameters);
    if (await(10, [&] { return count() == wanted; }))
        return;
    const int held = count();
    release();
    throw std::runtime_error("holds " + std::to_string(held) + " SMs instead of " + std::to_string(wanted));
}

HeldSms::~HeldSms()
{
    release();
    cu().cuMemFreeHost(const_cast<uint32_t*>(host_));
    Cuda::get()->release(device_);
}

int HeldSms::count() const
{
    int held = 0;
    for (size_t i = 1; i <= most_sms; ++i)
        held += host_[i] != 0;
    return held;
}

void HeldSms::release()
{
    host_[0] = 1;
    Cuda::get()->wait(stream_);
}

ProbeCluster::ProbeCluster(int ctas)
    : ctas_(ctas), device_(Cuda::get()->allocate(static_cast<size_t>(ctas) * sizeof(uint32_t)))
{
}

ProbeCluster::~ProbeCluster() { Cuda::get()->release(device_); }

void ProbeCluster::start(CUstream_st* stream)
{
    void* parameters[] = {&device_};
    launch(&Kernels::probe, ctas_, ctas_, stream, parameters);
}

Sms ProbeCluster::sms() const
{
    Sms sms(static_cast<size_t>(ctas_));
    Cuda::get()->copy_out(sms.data(), device_, sms.size() * sizeof(uint32_t));
    return sms;
}

Sms ProbeCluster::places(int ctas)
{
    const Stream stream;
    ProbeCluster cluster(ctas);
    Cuda::get()->wait();
    cluster.start(stream);
    Cuda::get()->wait(stream);
    return cluster.sms();
}

}  // namespace hg::test
