#include "src/tune/lock.hpp"

#include "src/base/decimal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace hg {
namespace {

using Clock = std::chrono::steady_clock;

// -1: errno says why not. Two steps, since some systems refuse to open the file of another user with
// O_CREAT.
int open_or_make(const std::string& path, int access)
{
    constexpr int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, most = 100;
    int file = -1;
    for (int i = 0; file < 0 && i < most; ++i) {
        file = open(path.c_str(), access | flags);
        if (file >= 0 || errno != ENOENT)
            break;
        file = open(path.c_str(), access | flags | O_CREAT | O_EXCL, 0644);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

// 0, EWOULDBLOCK if another process holds it all the time, or why it cannot be locked.
int lock_within(int file, double seconds)
{
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (std::chrono::milliseconds pause(1);; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK || Clock::now() >= end)
            return errno;
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

Lock::Lock(const std::string& path, double seconds) : file_(open_or_make(path, O_RDONLY)), error_(0)
{
    if (file_ < 0)
        fail_with("write", path, errno == ELOOP ? "it is a link" : std::strerror(errno));
    struct stat status;
    const bool is_file = fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
    error_ = is_file ? lock_within(file_, seconds) : 0;
    if (error_ == EBADF) {  // some file systems of a network lock only what is open for writing
        close(file_);
        file_ = open_or_make(path, O_RDWR);
        error_ = file_ < 0 ? errno : lock_within(file_, seconds);
    }
    if (is_file && error_ != EWOULDBLOCK)
        return;
    if (file_ >= 0)
        close(file_);
    fail_with("write", path,
              is_file
                  ? std::string("another process holds it for more than ") + general(seconds).text() + " s"
                  : "not a regular file");
}

Lock::~Lock()
{
    if (file_ >= 0)
        close(file_);
}

void fail_with(const char* what, const std::string& path, const std::string& reason)
{
    throw std::runtime_error(std::string("cannot ") + what + " " + path + ": " + reason);
}

}  // namespace hg
