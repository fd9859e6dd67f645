#include "tune/store.hpp"

#include "src/tuning.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace hg::bench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_with(const char* what, const std::string& path, const char* reason)
{
    throw std::runtime_error(fmt::format("cannot {} {}: {}", what, path, reason));
}

// Folders of the user's cache are the user's alone.
void make_folders(const fs::path& folder)
{
    if (folder.empty() || fs::is_directory(folder))
        return;
    make_folders(folder.parent_path());
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        fail_with("make", folder, std::strerror(errno));
}

// Held while it lives, so that of two processes none drops what the other writes.
class Lock {
public:
    explicit Lock(const std::string& path)
        : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600))
    {
        if (file_ < 0)
            fail_with("write", path, std::strerror(errno));
        int result;
        do
            result = flock(file_, LOCK_EX);
        while (result != 0 && errno == EINTR);
        if (result != 0)
            fmt::print(stderr, "{} cannot be locked ({}): what others write at this moment may be lost\n",
                       path, std::strerror(errno));
    }
    ~Lock() { close(file_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

private:
    int file_;
};

bool write_all(int file, const std::string& text)
{
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = ::write(file, text.data() + done, text.size() - done);
        if (count < 0 && errno != EINTR)
            return false;
        done += count > 0 ? static_cast<size_t>(count) : 0;
    }
    return fsync(file) == 0;
}

mode_t mode_of_new_files()
{
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

// A new file beside it takes the place of the old one.
void replace(const std::string& path, const std::string& text)
{
    std::string temporary = path + ".XXXXXX";
    const int file = mkostemp(temporary.data(), O_CLOEXEC);
    if (file < 0)
        fail_with("write", path, std::strerror(errno));
    const bool written = fchmod(file, mode_of_new_files()) == 0 && write_all(file, text);
    int error = errno;
    const bool closed = close(file) == 0;
    error = written && !closed ? errno : error;
    if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0)
        return;
    error = written && closed ? errno : error;
    unlink(temporary.c_str());
    fail_with("write", path, std::strerror(error));
}

// "" if there is none.
std::string read(const std::string& path)
{
    std::string text;
    bool is_missing = false;
    const char* const wrong = read_tuning_file(path.c_str(), text, is_missing);
    if (wrong && !is_missing)
        fail_with("replace", path, wrong);
    return wrong ? "" : text;
}

}  // namespace

std::string entry_line(const std::string& key, const std::string& kernel, double us, double built_in_us,
                       double spread)
{
    return fmt::format("{} {} us={:.3f} built_in_us={:.3f} spread={:.4f} date={:%Y-%m-%d}\n", key, kernel,
                       us, built_in_us, spread, fmt::gmtime(std::time(nullptr)));
}

std::string merge(const std::string& text, const TuningOrigin& origin, const Outcomes& outcomes)
{
    std::map<std::string, std::string> lines;
    for (const TuningEntry& entry : parse_tuning(text, origin).entries)
        lines.emplace(entry.key, entry.line());
    for (const auto& [key, line] : outcomes)
        if (line)
            lines[key] = *line;
        else
            lines.erase(key);
    std::string merged = origin.header() +
                         "# Written by hgemm-tune. Problem, kernel, its time, that of the library's own "
                         "choice, spread as a part of the time.\n";
    for (const auto& [key, line] : lines)
        merged += line;
    return merged;
}

Store::Store(std::string path, const TuningOrigin& origin) : path_(std::move(path)), origin_(origin)
{
    // A link stays one.
    std::error_code none;
    if (fs::is_symlink(path_))
        path_ = fs::weakly_canonical(path_, none).string();
    const fs::path folder = fs::path(path_).parent_path();
    make_folders(folder);
    if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
        fail_with("write", path_, std::strerror(errno));
    read(path_);
}

void Store::write(const Outcomes& outcomes) const
{
    const Lock lock(path_ + ".lock");
    const std::string text = merge(read(path_), origin_, outcomes);
    if (text.size() > max_tuning_bytes)
        fail_with("write", path_, "it would be larger than 16 MiB");
    replace(path_, text);
}

}  // namespace hg::bench
