// A file whose lock tells processes that another one writes beside it.
#pragma once

#include <string>

namespace hg {

// Held while it lives, so that of two processes none drops what the other writes. The file is made if it is
// not there; no link is followed. Failures, and a lock that another process holds for longer than
// `seconds`, are thrown as std::runtime_error with path and reason.
class Lock {
public:
    Lock(const std::string& path, double seconds);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    int error() const { return error_; }  // why the file system does not lock; 0: it is held

private:
    int file_, error_;
};

[[noreturn]] void fail_with(const char* what, const std::string& path, const std::string& reason);

}  // namespace hg
