// A progress bar on standard error, drawn only if that is a terminal.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace hg::bench {

inline std::string products_left(size_t count)
{
    return fmt::format("{} product{} left", count, count == 1 ? " is" : "s are");
}

class Progress {
public:
    explicit Progress(size_t total) : total_(total), shown_(isatty(STDERR_FILENO) != 0) {}
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(size_t done, const std::string& what) const
    {
        if (!shown_)
            return;
        constexpr size_t width = 30;
        const size_t filled = width * done / total_;
        fmt::print(stderr, "\r\x1b[K[{:=<{}}{:<{}}] {}/{} {}", "", filled, "", width - filled, done, total_,
                   what);
        std::fflush(stderr);
    }
    // Before anything else is printed.
    void clear() const
    {
        if (shown_)
            fmt::print(stderr, "\r\x1b[K");
    }

private:
    size_t total_;
    bool shown_;
};

}  // namespace hg::bench
