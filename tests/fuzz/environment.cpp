// Target: the variables that hgemm_create() reads, with any bytes. The handle is refused by a status that
// is named, or serves; errors and the log are lines of printable text.
#include "host_handle.hpp"
#include "input.hpp"
#include "report.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#if defined(HGEMM_FUZZ_CBLAS)
#include "hgemm_cblas.h"
#endif

// Of the sanitizers, where there are some.
extern "C" [[gnu::weak]] void __sanitizer_set_report_fd(void* descriptor);

namespace hg::fuzz {
namespace {

namespace fs = std::filesystem;

// A folder of this process, for logs.
const fs::path& folder()
{
    static const fs::path path = [] {
        std::string name = (fs::temp_directory_path() / "hgemm-fuzz-XXXXXX").string();
        if (!mkdtemp(name.data()))
            wrong("no folder for logs");
        std::atexit([] { fs::remove_all(folder()); });
        return fs::path(name);
    }();
    return path;
}

// What is written to standard error while it lives, but for reports of what is wrong.
class Captured {
public:
    Captured()
        : old_(dup(2)),
          file_(open((folder() / "stderr").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600))
    {
        report_all_to(old_);
        dup2(file_, 2);
    }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    ~Captured()
    {
        dup2(old_, 2);
        report_all_to(2);
        close(file_);
        close(old_);
    }

private:
    static void report_all_to(int descriptor)
    {
        report_to(descriptor);
        if (__sanitizer_set_report_fd)
            __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)));
    }

    int old_, file_;
};

// Opens a pipe for reading after some seconds, so that who waits for a reader goes on.
class LateReader {
public:
    explicit LateReader(const std::string& path)
    {
        if (fs::is_fifo(path))
            thread_ = std::thread([this, path] { wait(path); });
    }
    LateReader(const LateReader&) = delete;
    LateReader& operator=(const LateReader&) = delete;
    ~LateReader() { end(); }

    // Was it needed?
    bool end()
    {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable())
            thread_.join();
        return needed_;
    }

private:
    void wait(const std::string& path)
    {
        std::unique_lock lock(mutex_);
        needed_ = !changed_.wait_for(lock, std::chrono::seconds(5), [this] { return ended_; });
        if (needed_) {
            const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
            changed_.wait(lock, [this] { return ended_; });
            close(reader);
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false, needed_ = false;
    std::thread thread_;
};

std::string read_file(const fs::path& path)
{
    if (!fs::is_regular_file(path))
        return "";
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

// Names that mean something, and pieces of settings; and any bytes but NUL, which ends a variable.
std::string draw_value(Input& input)
{
    constexpr const char* words[] = {
        "host",        "sm80",        "sm90",     "sm100",     "sm120",      "host_blocked", "error",
        "plan",        "trace",       "/split=",  "1",         "16",         "/swap_ab=0",   "/swap_ab=1",
        "/stream_k=0", "/stream_k=1", "/pdl=off", "/pdl=late", "/pdl=early", "/branches=",   "/",
        "=",           "99999999999", "%n%s",     "\n",        "gpu",        "auto",         "loud",
        "-1",          " ",           "\x1b[31m", "HOST",      "\xff"};
    std::string value;
    const int pieces = input.below(5);
    for (int i = 0; i < pieces; ++i)
        value += input.one_in(4) ? input.text() : input.pick(words);
    std::erase(value, '\0');
    return value;
}

// Files of all kinds, below the folder.
std::string draw_file(Input& input)
{
    const fs::path& base = folder();
    switch (input.below(8)) {
    case 0: return "";
    case 1: return base.string();
    case 2: {
        const fs::path pipe = base / "pipe";
        mkfifo(pipe.c_str(), 0600);
        return pipe.string();
    }
    case 3: return (base / "none" / "log").string();
    case 4: return "/dev/full";
    case 5: {
        std::string name = input.text();
        std::replace(name.begin(), name.end(), '/', '_');
        std::erase(name, '\0');
        return (base / "log").string() + name;
    }
    default: return (base / "log").string();
    }
}

void set(const char* name, Input& input, const std::string& value)
{
    if (input.one_in(2)) {
        setenv(name, value.c_str(), 1);
        note("%s=%s", name, value.c_str());
    } else {
        unsetenv(name);
    }
}

// Log lines begin with the library's name, and hold no character that a terminal or a reader of lines would
// take for something else.
void check_log(const std::string& text, const char* where)
{
    size_t begin = 0;
    while (begin < text.size()) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        if (!line.starts_with("hgemm: ") || !is_one_line(line) || end == text.size())
            wrong("%s has a line that is none: \"%s\"", where, line.c_str());
        begin = end + 1;
    }
}

void use(hgemm_handle_t handle)
{
    const uint16_t one = 0x3c00;
    uint16_t result = 0;
    const hgemm_status_t status = hgemm_nn(handle, 1, 1, 1, 2, &one, 1, &one, 1, 0, &result, 1);
    if (status == HGEMM_STATUS_SUCCESS ? result != 0x4000
                                       : status != HGEMM_STATUS_NOT_SUPPORTED || result != 0)
        wrong("1 * 1 * 2 answered %s, bits %x", hgemm_status_string(status), result);
    if (status != HGEMM_STATUS_SUCCESS && !is_one_line(hgemm_last_error()))
        wrong("error of a product: %s", hgemm_last_error());
    hgemm_nn(handle, -1, 1, 1, 2, &one, 1, &one, 1, 0, &result, 1);
    if (hgemm_destroy(handle) != HGEMM_STATUS_SUCCESS)
        wrong("a handle cannot be destroyed: %s", hgemm_last_error());
}

// Unknown or unserved names are NOT_SUPPORTED, and a value that is none may be INVALID_ARGUMENT.
void create(bool on_host)
{
    hgemm_handle_t handle = nullptr;
    const hgemm_status_t status =
        on_host ? hgemm_create_on(&handle, HGEMM_DEVICE_HOST) : hgemm_create(&handle);
    if ((status == HGEMM_STATUS_SUCCESS) != (handle != nullptr))
        wrong("%s with handle %p", hgemm_status_string(status), static_cast<void*>(handle));
    if (handle && std::strcmp(hgemm_backend(handle), "host") == 0)
        return use(handle);
    if (handle) {
        hgemm_destroy(handle);
        return;
    }
    const bool named = status == HGEMM_STATUS_NOT_SUPPORTED || status == HGEMM_STATUS_NO_DEVICE ||
                       status == HGEMM_STATUS_INVALID_ARGUMENT;
    const char* const text = hgemm_last_error();
    if (!named || !*text || !is_one_line(text))
        wrong("refused by %s, \"%s\"", hgemm_status_string(status), text);
}

#if defined(HGEMM_FUZZ_CBLAS)
// Its variable is read once in a process.
void call_cblas(const std::string& value)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        setenv("HGEMM_CBLAS", value.c_str(), 1);
        const uint16_t ones[] = {0x3f80, 0x3f80, 0x3f80, 0x3f80};
        float sums[4] = {};
        cblas_sbgemm(HGEMM_COL_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, 2, 2, 2, 1, ones, 2, ones, 2, 0, sums,
                     2);
        const bool served = hgemm_cblas_status() == HGEMM_STATUS_SUCCESS;
        const bool right = std::all_of(sums, sums + 4, [&](float x) { return x == (served ? 2 : 0); });
        _exit(right && is_one_line(hgemm_last_error()) ? 0 : 1);
    }
    int result = 0;
    pid_t ended;
    do  // libFuzzer's timer interrupts
        ended = waitpid(child, &result, 0);
    while (ended < 0 && errno == EINTR);
    if (ended != child || result != 0)
        wrong("a product with HGEMM_CBLAS=%s ended with %x", value.c_str(), result);
}
#endif

void run(Input& input)
{
    const bool on_host = !input.one_in(2);
    set("HGEMM_BACKEND", input, draw_value(input));
    set("HGEMM_KERNEL", input, draw_value(input));
    set("HGEMM_LOG", input, draw_value(input));
    const std::string file = draw_file(input);
    set("HGEMM_LOG_FILE", input, file);
    set("HGEMM_TUNING", input, input.one_in(2) ? draw_file(input) : draw_value(input));
    set("XDG_CACHE_HOME", input, input.one_in(2) ? draw_file(input) : draw_value(input));
    LateReader reader(file);
    {
        const Captured captured;
        create(on_host);
    }
    if (reader.end())
        wrong("the handle waits for a reader of its log, a pipe");
    const char* const level = std::getenv("HGEMM_LOG");
    const std::string printed = read_file(folder() / "stderr");
    if (!level && !printed.empty())
        wrong("printed without being asked: %s", printed.c_str());
    check_log(printed, "standard error");
    check_log(read_file(file), "the log");
    std::error_code ignored;
    if (file.size() > folder().string().size())
        fs::remove(file, ignored);
#if defined(HGEMM_FUZZ_CBLAS)
    if (input.one_in(32))
        call_cblas(draw_value(input));
#endif
}

}  // namespace
}  // namespace hg::fuzz

// With one handle alive OpenBLAS stays loaded.
extern "C" int LLVMFuzzerInitialize(int*, char***)
{
    hg::fuzz::host_handle();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    hg::fuzz::begin();
    hg::fuzz::Input input(data, size);
    hg::fuzz::run(input);
    return 0;
}
