// The library on a driver that fails: every driver call that creating a handle, setting a stream and
// running a product make is failed once. The status must be right, nothing may be left over, and the next
// attempt must work.
//
// Each case runs in a process of its own, because the library looks for the driver once per process.
#include "driver_fixture.hpp"

#include <algorithm>
#include <hgemm.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

using namespace emu::test;

namespace {

constexpr int m = 32, n = 16, k = 64;

// ---- Child processes --------------------------------------------------------------------------------
// What the body complains about, or how it died.
std::string in_child(const std::function<std::string()>& body)
{
    int ends[2];
    if (pipe(ends) != 0)
        return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        const std::string text = body();
        const ssize_t written = write(ends[1], text.data(), text.size());
        _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<size_t>(count));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        text += "died of signal " + std::to_string(WTERMSIG(status)) + "\n";
    return text;
}

// ---- One attempt ------------------------------------------------------------------------------------
struct Setting {
    bool current;  // the program has made a context current; else the library retains the primary one
    const char* name;
};
void PrintTo(const Setting& setting, std::ostream* to) { *to << setting.name; }
constexpr Setting settings[] = {{true, "the program's context"}, {false, "the library's context"}};

hgemm_half_t half(int value)  // 0 ... 3
{
    constexpr hgemm_half_t bits[] = {0, 0x3c00, 0x4000, 0x4200};
    return bits[value];
}

// The program around the library: a context if there is to be one, a stream and three matrices.
class Program {
public:
    explicit Program(const Setting& setting) : setting_(setting)
    {
        CU(cuInit)(0);
        CU(cuDevicePrimaryCtxRetain)(&context_, 0);
        CU(cuCtxSetCurrent)(context_);
        CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING);
        std::vector<hgemm_half_t> a(k * m), b(k * n);
        for (size_t i = 0; i < a.size(); ++i)
            a[i] = half(i % 3);
        for (size_t i = 0; i < b.size(); ++i)
            b[i] = half(i * i % 4);
        a_ = upload(a), b_ = upload(b);
        CU(cuMemAlloc)(&c_, m * n * sizeof(float));
        CU(cuCtxSetCurrent)(setting.current ? context_ : nullptr);
    }

    // Statuses of the steps up to the first that fails; the handle is gone in the end.
    std::vector<hgemm_status_t> attempt()
    {
        CU(cuCtxSetCurrent)(context_);
        CU(cuMemsetD8)(c_, 0xff, m * n * sizeof(float));
        CU(cuCtxSetCurrent)(setting_.current ? context_ : nullptr);
        EMU(emu_set_faults)(faults.c_str());
        std::vector<hgemm_status_t> statuses = steps();
        called = EMU(emu_called)();
        EMU(emu_set_faults)("");
        return statuses;
    }

    // C in column-major order against the sum of products, which is exact here.
    bool correct()
    {
        CU(cuCtxSetCurrent)(context_);
        std::vector<float> c(m * n);
        if (CU(cuStreamSynchronize)(stream_) != success ||
            CU(cuMemcpyDtoH)(c.data(), c_, c.size() * sizeof(float)) != success)
            return false;
        for (int row = 0; row < m; ++row)
            for (int column = 0; column < n; ++column) {
                int sum = 0;
                for (int i = 0; i < k; ++i)
                    sum += (row * k + i) % 3 * ((column * k + i) * (column * k + i) % 4);
                if (c[static_cast<size_t>(column * m + row)] != static_cast<float>(sum))
                    return false;
            }
        return true;
    }

    std::string faults, called, backend;

private:
    static CUdeviceptr upload(const std::vector<hgemm_half_t>& values)
    {
        CUdeviceptr memory = 0;
        CU(cuMemAlloc)(&memory, values.size() * sizeof values[0]);
        CU(cuMemcpyHtoD)(memory, values.data(), values.size() * sizeof values[0]);
        return memory;
    }

    std::vector<hgemm_status_t> steps()
    {
        hgemm_handle_t handle = nullptr;
        std::vector<hgemm_status_t> statuses = {setting_.current ? hgemm_create(&handle)
                                                                 : hgemm_create_on(&handle, 0)};
        backend = hgemm_backend(handle);
        if (statuses.back() == HGEMM_STATUS_SUCCESS)
            statuses.push_back(hgemm_set_stream(handle, stream_));
        if (statuses.back() == HGEMM_STATUS_SUCCESS)
            statuses.push_back(multiply(handle));
        hgemm_destroy(handle);
        return statuses;
    }

    hgemm_status_t multiply(hgemm_handle_t handle)
    {
        hgemm_args_t args;
        hgemm_args_init(&args, sizeof args);
        args.transa = HGEMM_TRANS;
        args.type_c = args.type_d = HGEMM_F32;
        args.m = m, args.n = n, args.k = k;
        args.a = reinterpret_cast<void*>(a_), args.lda = k;
        args.b = reinterpret_cast<void*>(b_), args.ldb = k;
        args.c = args.d = reinterpret_cast<void*>(c_), args.ldc = args.ldd = m;
        return hgemm_gemm_ex(handle, &args);
    }

    Setting setting_;
    CUcontext context_ = nullptr;
    CUstream stream_ = nullptr;
    CUdeviceptr a_ = 0, b_ = 0, c_ = 0;
};

using Counts = std::map<std::string, int64_t>;

Counts live()
{
    Counts counts;
    for (const char* what :
         {"allocations", "contexts", "libraries", "modules", "streams", "events", "graphs"})
        counts[what] = EMU(emu_live)(what);
    return counts;
}

// The status that a failure of this call leads to; none where no answer depends on it.
std::optional<hgemm_status_t> expected(const std::string& call, const std::string& error)
{
    static const std::map<std::string, std::optional<hgemm_status_t>> special = {
        {"cuLaunchKernelEx", HGEMM_STATUS_LAUNCH_FAILED},
        {"cuTensorMapEncodeTiled", HGEMM_STATUS_INTERNAL},
        {"cuGetProcAddress", HGEMM_STATUS_NO_DEVICE},
        {"cuCtxPopCurrent", {}},
        {"cuMemFree", {}},
        {"cuLibraryUnload", {}},
        {"cuStreamDestroy", {}},
        {"cuDevicePrimaryCtxRelease", {}}};
    const auto found = special.find(call);
    const auto status = found == special.end() ? HGEMM_STATUS_DRIVER_ERROR : found->second;
    const bool tells_error = status == HGEMM_STATUS_DRIVER_ERROR || status == HGEMM_STATUS_LAUNCH_FAILED ||
                             status == HGEMM_STATUS_INTERNAL;
    return tells_error && error == "OUT_OF_MEMORY" ? HGEMM_STATUS_ALLOC_FAILED : status;
}

// What is left over if call number `number` of an attempt, which would have given it back, fails.
// hgemm_destroy() makes a context that is not current so last of all: without it no memory can be freed.
const char* kept_by(const Setting& setting, const std::string& call, int number,
                    const std::map<std::string, int>& calls)
{
    const bool cannot_free = !setting.current && call == "cuCtxPushCurrent" && number == calls.at(call) &&
                             calls.count("cuMemFree") > 0;
    return call == "cuMemFree" || cannot_free    ? "allocations"
           : call == "cuLibraryUnload"           ? "libraries"
           : call == "cuStreamDestroy"           ? "streams"
           : call == "cuDevicePrimaryCtxRelease" ? "contexts"
                                                 : "";
}

// How often a successful attempt makes each driver call.
std::map<std::string, int> calls_of(const Setting& setting)
{
    const std::string text = in_child([&] {
        Program program(setting);
        const bool good = program.attempt().back() == HGEMM_STATUS_SUCCESS && program.correct();
        return good ? program.called : std::string();
    });
    std::map<std::string, int> calls;
    std::istringstream lines(text);
    for (auto [name, count] = std::pair<std::string, int>(); lines >> name >> count;)
        calls[name] = count;
    return calls;
}

bool all_succeeded(const std::vector<hgemm_status_t>& statuses)
{
    return statuses.back() == HGEMM_STATUS_SUCCESS;
}

// Fails call number `number` of an attempt; what that keeps from being given back is `kept`. Where success
// is answered all the same, the result must be right.
std::string check_failure(const Setting& setting, const std::string& call, int number,
                          const std::string& error, const std::string& kept)
{
    std::ostringstream complaints;
    Program program(setting);
    Counts before = live();
    program.faults = call + ":" + std::to_string(number) + "=" + error;
    const std::vector<hgemm_status_t> statuses = program.attempt();
    const bool fell_back = program.backend == "host";  // a handle without a GPU, when none is demanded
    if (all_succeeded(statuses) && !fell_back && !program.correct())
        complaints << "success was answered and the result is wrong\n";
    if (!all_succeeded(statuses) && !fell_back && statuses.back() != expected(call, error))
        complaints << "step " << statuses.size() << " answered " << hgemm_status_string(statuses.back())
                   << ": " << hgemm_last_error() << "\n";
    if (!kept.empty())
        ++before[kept];
    for (const auto& [what, count] : live())
        if (count != before[what])
            complaints << count - before[what] << " " << what << " left over\n";
    program.faults.clear();
    const bool no_driver = call == "cuInit" || call == "cuGetProcAddress";  // asked for once per process
    if (!no_driver && !(all_succeeded(program.attempt()) && program.correct()))
        complaints << "the next attempt failed: " << hgemm_last_error() << "\n";
    return complaints.str();
}

// The call to fail after this one. Of an entry point that is called for each kernel, some: the first, the
// last and a few between.
int next_call(int number, int count)
{
    constexpr int few = 6, between = 2;
    return count <= few || number < 2 ? number + 1
           : number == count          ? count + 1
                                      : std::min(number + count / between, count);
}

// Each call, or only the first of each entry point.
void fail_calls(const Setting& setting, const std::string& error, bool each)
{
    const std::map<std::string, int> calls = calls_of(setting);
    ASSERT_FALSE(calls.empty()) << "the library does not work on a driver without faults";
    for (const auto& [call, count] : calls)
        for (int number = 1; number <= (each ? count : 1); number = next_call(number, count)) {
            const std::string complaints = in_child([&] {
                return check_failure(setting, call, number, error, kept_by(setting, call, number, calls));
            });
            EXPECT_EQ(complaints, "") << "with " << setting.name << ", " << call << " number " << number
                                      << " of " << count << " failing with " << error;
        }
}

class Faults : public testing::TestWithParam<Setting> {};

TEST_P(Faults, EveryCallFailsOnce) { fail_calls(GetParam(), "UNKNOWN", true); }

TEST_P(Faults, MemoryRunsOut) { fail_calls(GetParam(), "OUT_OF_MEMORY", false); }

TEST_P(Faults, ThereIsNoImage)
{
    const std::string complaints = in_child(
        [&] { return check_failure(GetParam(), "cuLibraryLoadData", 1, "NO_BINARY_FOR_GPU", ""); });
    EXPECT_EQ(complaints, "");
}

// After a fault in a kernel every call fails until the context is gone.
TEST_P(Faults, TheContextIsLost)
{
    const std::string complaints = in_child([&]() -> std::string {
        {
            Program program(GetParam());
            program.faults = "cuLaunchKernelEx:1=ILLEGAL_ADDRESS!";
            if (program.attempt().back() != HGEMM_STATUS_LAUNCH_FAILED)
                return "the launch did not fail\n";
        }
        while (EMU(emu_live)("contexts") > 0)
            CU(cuDevicePrimaryCtxRelease)(0);
        for (const auto& [what, count] : live())
            if (count != 0)
                return std::to_string(count) + " " + what + " left over\n";
        Program again(GetParam());
        return all_succeeded(again.attempt()) && again.correct() ? "" : "a new context does not work\n";
    });
    EXPECT_EQ(complaints, "");
}

INSTANTIATE_TEST_SUITE_P(Contexts, Faults, testing::ValuesIn(settings),
                         [](const auto& info) { return info.param.current ? "Current" : "Own"; });

TEST(NoDevice, IsSaid)
{
    const std::string complaints = in_child([]() -> std::string {
        setenv("EMU_DEVICES", "0", 1);
        driver_library();
        hgemm_handle_t handle = nullptr;
        if (hgemm_create_on(&handle, 0) != HGEMM_STATUS_NO_DEVICE || handle)
            return "a handle on a device that is not there\n";
        if (hgemm_create(&handle) != HGEMM_STATUS_SUCCESS || std::string(hgemm_backend(handle)) != "host")
            return std::string("no handle on the host: ") + hgemm_last_error() + "\n";
        hgemm_destroy(handle);
        return "";
    });
    EXPECT_EQ(complaints, "");
}

}  // namespace
