// Writes what was measured to a tuning file, beside what is there already.
#pragma once

#include "src/tuning/file.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hg {

// What became of a problem: its line, or nothing where the library's own choice is the best.
// By tuning_key() or calibration_key().
using Outcomes = std::map<std::string, std::optional<std::string>>;

std::string entry_line(const std::string& key, const std::string& kernel, double us, double built_in_us,
                       double spread);

// The text of a file that had `text` before. Nothing stays of another device's or build's file.
std::string merge(const std::string& text, const TuningOrigin& origin, const Outcomes& outcomes);

// A tuning file that is to be written. Failures are thrown as std::runtime_error, with path and reason; the
// file is then as it was.
class Store {
public:
    // Makes the folders and the lock, so that a wrong path is known before anything is measured. A file
    // that is there and is no tuning file is not replaced. Neither this nor write() waits longer than
    // `lock_seconds` for other processes.
    Store(const std::string& path, const TuningOrigin& origin, double lock_seconds = most_lock_seconds);
    static constexpr double most_lock_seconds =
        30;  // others hold it for as long as it takes to write the file

    const std::string& path() const { return path_; }
    // What a user should know before write(): that it drops what is there, that others may have written
    // that, or that nothing can be locked.
    const std::vector<std::string>& remarks() const { return remarks_; }
    // Reads the file again, so that what other processes wrote stays, and replaces it in one step.
    void write(const Outcomes& outcomes) const;

private:
    std::string path_;
    TuningOrigin origin_;
    double lock_seconds_;
    std::vector<std::string> remarks_;
};

}  // namespace hg
