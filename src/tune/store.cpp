#include "src/tune/store.hpp"

#include "src/base/decimal.hpp"
#include "src/plan/calibration.hpp"
#include "src/tune/lock.hpp"
#include "src/tuning/tuning.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>

namespace hg {
namespace {

namespace fs = std::filesystem;

// Folders of the user's cache are the user's alone.
void make_folders(const fs::path& folder)
{
    if (folder.empty() || fs::is_directory(folder))
        return;
    make_folders(folder.parent_path());
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        fail_with("make", folder, std::strerror(errno));
}

// Where a link leads: the link stays one. Another user's link, and one that leads to no file, may have been
// laid so that this user makes or replaces a file elsewhere.
fs::path follow(fs::path path)
{
    constexpr int most = 40;  // as in Linux
    struct stat status;
    int links = 0;
    for (; lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode); ++links) {
        if (links == most)
            fail_with("write", path, std::strerror(ELOOP));
        if (status.st_uid != geteuid() && status.st_uid != 0)
            fail_with("write", path, "it is a link of another user");
        std::error_code error;
        path = path.parent_path() / fs::read_symlink(path, error);
        if (error)
            fail_with("write", path, error.message());
    }
    if (links > 0 && access(path.c_str(), F_OK) != 0)
        fail_with("write", path, "a link leads there, and no file is there");
    return path;
}

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

// A new file beside the one of that path, which only this user may write, and which all may read who could
// before. -1: errno says why not.
int create_beside(const std::string& path, std::string& name)
{
    constexpr int most = 100;  // names that processes elsewhere or long gone may have taken
    int file = -1;
    for (int i = 0; file < 0 && i < most && (i == 0 || errno == EEXIST); ++i) {
        name = path + "." + std::to_string(getpid()) + "." + std::to_string(i);
        file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    struct stat old;
    if (file >= 0 && stat(path.c_str(), &old) == 0)
        fchmod(file, old.st_mode & 0755);
    return file;
}

// A new file beside it takes the place of the old one.
void replace(const std::string& path, const std::string& text)
{
    std::string temporary;
    const int file = create_beside(path, temporary);
    if (file < 0)
        fail_with("write", path, std::strerror(errno));
    const bool written = write_all(file, text);
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
std::string read(const std::string& path, std::string& doubt)
{
    std::string text;
    bool is_missing = false;
    const char* const wrong = read_tuning_file(path.c_str(), text, is_missing, doubt);
    if (wrong && !is_missing)
        fail_with("replace", path, wrong);
    if (wrong)
        return "";
    if (!text.empty() && !text.starts_with(tuning_format))
        fail_with("replace", path, "it is no tuning file");
    return text;
}

}  // namespace

std::string entry_line(const std::string& key, const std::string& kernel, double us, double built_in_us,
                       double spread)
{
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    char date[16] = "";
    std::strftime(date, sizeof date, "%Y-%m-%d", &utc);
    const std::string measured = std::string("us=") + fixed(us, 3).text() +
                                 " built_in_us=" + fixed(built_in_us, 3).text() +
                                 " spread=" + fixed(spread, 4).text() + " date=" + date;
    return TuningEntry{key, kernel, measured}.line();
}

std::string merge(const std::string& text, const TuningOrigin& origin, const Outcomes& outcomes)
{
    std::map<std::string, std::string> lines;
    const TuningText old = parse_tuning(text, origin);
    for (const TuningEntry& entry : old.entries)
        lines.emplace(entry.key, entry.line());
    for (const CalibrationLine& line : old.calibration)
        lines.insert_or_assign(calibration_key(line.name), line.line());
    for (const auto& [key, line] : outcomes)
        if (line)
            lines[key] = *line;
        else
            lines.erase(key);
    std::string merged =
        origin.header() +
        "# Written by hgemm-tune or hgemm_tune(). Problem, kernel, its time, that of the library's own "
        "choice, spread as a part of the time.\n";
    for (const auto& [key, line] : lines)
        merged += line;
    return merged;
}

Store::Store(const std::string& path, const TuningOrigin& origin, double lock_seconds)
    : path_(follow(path).string()), origin_(origin), lock_seconds_(lock_seconds)
{
    const fs::path folder = fs::path(path_).parent_path();
    make_folders(folder);
    if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
        fail_with("write", path_, std::strerror(errno));
    std::string doubt;
    const std::string text = read(path_, doubt);
    if (!doubt.empty())
        remarks_.push_back(path_ + " may have lines of others: " + doubt);
    const TuningText old = parse_tuning(text, origin_);
    if (!text.empty() && !old.refusal.empty())
        remarks_.push_back(path_ + " will be begun anew: " + old.refusal);
    const Lock lock(path_ + ".lock", lock_seconds_);
    if (lock.error() != 0)
        remarks_.push_back(path_ + ".lock cannot be locked (" + std::strerror(lock.error()) +
                           "): what others write at the same time may be lost");
}

void Store::write(const Outcomes& outcomes) const
{
    const Lock lock(path_ + ".lock", lock_seconds_);
    std::string doubt;
    const std::string text = merge(read(path_, doubt), origin_, outcomes);
    if (text.size() > max_tuning_bytes)
        fail_with("write", path_, "it would be larger than 16 MiB");
    replace(path_, text);
}

}  // namespace hg
