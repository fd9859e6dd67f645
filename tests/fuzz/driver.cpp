// Runs a target where there is no libFuzzer: with files, each once, as libFuzzer does; or with inputs made
// from a seed, half of them by changing files of the folders that are named. The options have libFuzzer's
// names.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" [[gnu::weak]] int LLVMFuzzerInitialize(int* count, char*** arguments);

namespace {

using Bytes = std::vector<uint8_t>;

struct Settings {
    int64_t runs = -1;  // without end
    int64_t seconds = 0;
    uint64_t seed = 1;
    size_t max_length = 512;
    unsigned timeout = 1200;  // seconds for one input
    std::vector<std::filesystem::path> files, folders;
};

// splitmix64
struct Random {
    uint64_t state;
    uint64_t next()
    {
        uint64_t x = state += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }
    size_t below(size_t limit) { return static_cast<size_t>(next() % limit); }
};

// The input that runs, for the handler of signals.
Bytes current;

void keep_input(int signal)
{
    char name[32];
    std::snprintf(name, sizeof name, "%s-%d", signal == SIGALRM ? "timeout" : "crash", getpid());
    if (std::FILE* file = std::fopen(name, "wb")) {
        std::fwrite(current.data(), 1, current.size(), file);
        std::fclose(file);
        std::fprintf(stderr, "input kept in ./%s\n", name);
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal == SIGALRM ? SIGABRT : signal);
}

void run(Bytes input, unsigned timeout)
{
    current = std::move(input);
    // Exactly as long as it is, so that a sanitizer sees reads behind its end.
    const Bytes copy(current.begin(), current.end());
    alarm(timeout);
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
    alarm(0);
}

Bytes read_file(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", path.c_str());
        std::exit(1);
    }
    return Bytes(std::istreambuf_iterator<char>(file), {});
}

void change(Bytes& input, Random& random, size_t max_length)
{
    const size_t at = input.empty() ? 0 : random.below(input.size());
    switch (random.below(6)) {
    case 0:
        if (!input.empty())
            input[at] ^= static_cast<uint8_t>(1u << random.below(8));
        break;
    case 1:
        if (!input.empty())
            input[at] = static_cast<uint8_t>(random.next());
        break;
    case 2:
        input.insert(input.begin() + static_cast<int64_t>(at), static_cast<uint8_t>(random.next()));
        break;
    case 3: input.erase(input.begin() + static_cast<int64_t>(at), input.end()); break;
    case 4:
        if (!input.empty())
            input.erase(input.begin() + static_cast<int64_t>(at));
        break;
    default: {
        const Bytes copy(input.begin() + static_cast<int64_t>(at), input.end());
        input.insert(input.end(), copy.begin(), copy.end());
    }
    }
    if (input.size() > max_length)
        input.resize(max_length);
}

Bytes make_input(const std::vector<Bytes>& corpus, Random& random, size_t max_length)
{
    if (!corpus.empty() && random.below(2) == 0) {
        Bytes input = corpus[random.below(corpus.size())];
        const size_t changes = 1 + random.below(8);
        for (size_t i = 0; i < changes; ++i)
            change(input, random, max_length);
        return input;
    }
    Bytes input(random.below(max_length + 1));
    for (uint8_t& byte : input)
        byte = static_cast<uint8_t>(random.next());
    return input;
}

Settings read_arguments(int count, char** arguments)
{
    Settings s;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        const size_t equals = argument.find('=');
        const char* const value = equals == argument.npos ? "" : arguments[i] + equals + 1;
        const std::string_view name = argument.substr(0, equals);
        if (name == "-runs")
            s.runs = std::strtoll(value, nullptr, 10);
        else if (name == "-max_total_time")
            s.seconds = std::strtoll(value, nullptr, 10);
        else if (name == "-seed")
            s.seed = std::strtoull(value, nullptr, 10);
        else if (name == "-max_len")
            s.max_length = std::strtoull(value, nullptr, 10);
        else if (name == "-timeout")
            s.timeout = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
        else if (argument.starts_with('-'))
            continue;  // one of libFuzzer's alone
        else if (std::filesystem::is_directory(argument))
            s.folders.emplace_back(argument);
        else
            s.files.emplace_back(argument);
    }
    return s;
}

int64_t fuzz(const Settings& s)
{
    std::vector<Bytes> corpus;
    for (const auto& folder : s.folders)
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.is_regular_file())
                corpus.push_back(read_file(entry.path()));
    Random random{s.seed};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(s.seconds);
    int64_t runs = 0;
    for (const Bytes& input : corpus) {
        run(input, s.timeout);
        ++runs;
    }
    while ((s.runs < 0 || runs < s.runs) && (s.seconds == 0 || std::chrono::steady_clock::now() < end)) {
        run(make_input(corpus, random, s.max_length), s.timeout);
        ++runs;
    }
    return runs;
}

}  // namespace

int main(int count, char** arguments)
{
    const Settings settings = read_arguments(count, arguments);
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&count, &arguments);
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM})
        std::signal(signal, keep_input);
    int64_t runs = static_cast<int64_t>(settings.files.size());
    for (const auto& path : settings.files) {
        std::fprintf(stderr, "Running: %s\n", path.c_str());
        run(read_file(path), settings.timeout);
    }
    if (settings.files.empty())
        runs = fuzz(settings);
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::fprintf(stderr, "Done %" PRId64 " runs, %ld MiB\n", runs, used.ru_maxrss / 1024);
}
