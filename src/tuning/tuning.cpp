#include "src/tuning/tuning.hpp"

#include "src/base/environment.hpp"
#include "src/plan/dispatch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>

namespace hg {
namespace {

std::string cache_folder()
{
    const auto absolute = [](const char* name) {
        const char* const path = environment(name);
        return std::string(path && *path == '/' ? path : "");
    };
    const std::string cache = absolute("XDG_CACHE_HOME"), home = absolute("HOME");
    return !cache.empty() ? cache : !home.empty() ? home + "/.cache" : "";
}

bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

class File {
public:
    explicit File(const char* path) : number(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {}
    ~File()
    {
        if (number >= 0)
            close(number);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    const int number;
};

std::string doubt_of(const struct stat& status)
{
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return "it belongs to another user, number " + std::to_string(status.st_uid);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return "";
    const char mode[] = {'0', static_cast<char>('0' + (status.st_mode >> 6 & 7)),
                         static_cast<char>('0' + (status.st_mode >> 3 & 7)),
                         static_cast<char>('0' + (status.st_mode & 7)), '\0'};
    return std::string("others may write it, its mode is ") + mode;
}

// Null, or why not.
const char* read_whole(int file, std::string& text, std::string& doubt)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return std::strerror(errno);
    doubt = doubt_of(status);
    if (!S_ISREG(status.st_mode))
        return "not a regular file";
    if (static_cast<uint64_t>(status.st_size) > max_tuning_bytes)
        return "larger than 16 MiB";
    // The file may be cut meanwhile; what is added to it is not read.
    text.resize(static_cast<size_t>(status.st_size));
    size_t used = 0;
    while (used < text.size()) {
        const ssize_t count = ::read(file, text.data() + used, text.size() - used);
        if (count < 0 && errno != EINTR)
            return std::strerror(errno);
        if (count == 0)
            break;
        used += count > 0 ? static_cast<size_t>(count) : 0;
    }
    text.resize(used);
    return nullptr;
}

void log_reading(const Log& log, const char* path, const TuningText& read,
                 const std::vector<std::string>& remarks)
{
    if (!read.refusal.empty())
        return log.line("tuning file '%.1024s' is not used: %s", path, read.refusal.c_str());
    for (const auto& [number, reason] : read.bad_lines)
        log.line("tuning file '%.1024s': line %zu is skipped: %s", path, number, reason);
    if (read.more_bad_lines > 0)
        log.line("tuning file '%.1024s': %zu more line%s skipped", path, read.more_bad_lines,
                 read.more_bad_lines == 1 ? " is" : "s are");
    for (const std::string& remark : remarks)
        log.line("tuning file '%.1024s': %s", path, remark.c_str());
    log.line("tuning file '%.1024s' has choices for %zu problem%s", path, read.entries.size(),
             read.entries.size() == 1 ? "" : "s");
}

}  // namespace

std::string default_tuning_path(const Device& device, int sm_count)
{
    const std::string folder = cache_folder();
    if (folder.empty())
        return "";
    std::string name = device.name;
    std::ranges::replace_if(
        name, [](char c) { return !is_plain(c); }, '_');
    return folder + "/libhgemm/" + name + "_cc" + std::to_string(device.cc) + "_" +
           std::to_string(sm_count) + "sms.tuning";
}

std::string tuning_path(const Device& device, int sm_count)
{
    const char* const named = environment("HGEMM_TUNING");
    if (!named || !*named)
        return default_tuning_path(device, sm_count);
    return std::strcmp(named, "off") ? named : "";
}

const char* read_tuning_file(const char* path, std::string& text, bool& is_missing, std::string& doubt)
{
    const File file(path);
    is_missing = file.number < 0 && errno == ENOENT;
    return file.number < 0 ? std::strerror(errno) : read_whole(file.number, text, doubt);
}

std::unique_ptr<Tuning> Tuning::open(const Device& device, int sm_count, const Log& log) noexcept
{
    try {
        return read(device, sm_count, log);
    } catch (const std::exception& error) {
        if (log.wants(LogLevel::Plan))
            log.line("no tuning file is used: %s", error.what());
        return nullptr;
    }
}

std::unique_ptr<Tuning> Tuning::read(const Device& device, int sm_count, const Log& log)
{
    const std::string path = tuning_path(device, sm_count);
    if (path.empty())
        return nullptr;
    auto tuning = std::make_unique<Tuning>();
    bool is_missing = false;
    std::string doubt;
    const char* const unreadable = read_tuning_file(path.c_str(), tuning->text_, is_missing, doubt);
    if (is_missing && path == default_tuning_path(device, sm_count))  // as most users have it
        return nullptr;
    TuningText found;
    if (unreadable)
        found.refusal = unreadable;
    else
        found = parse_tuning(tuning->text_, TuningOrigin(device, sm_count));
    std::vector<std::string> remarks;
    if (!doubt.empty())
        remarks.push_back(doubt);
    if (found.refusal.empty())
        tuning->calibration_ = calibrate(found.calibration, all_backends(), remarks);
    if (log.wants(LogLevel::Plan))
        log_reading(log, path.c_str(), found, remarks);
    if (!found.refusal.empty())
        return nullptr;
    tuning->entries_ = std::move(found.entries);
    return tuning;
}

std::string_view Tuning::find(std::string_view key) const
{
    if (const auto chosen = chosen_.find(key); chosen != chosen_.end())
        return chosen->second;
    const auto found = std::ranges::lower_bound(entries_, key, {}, &TuningEntry::key);
    return found != entries_.end() && found->key == key ? found->kernel : std::string_view();
}

void Tuning::choose(const std::string& key, const std::string& kernel) { chosen_[key] = kernel; }

}  // namespace hg
