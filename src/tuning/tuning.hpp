// Tuning: what a user measured on the device of a handle. A file (hgemm-tune) is read once when the handle
// is created; hgemm_tune() adds to it.
#pragma once

#include "src/base/log.hpp"
#include "src/tuning/file.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hg {

// Where the tuning file of a device lies: $XDG_CACHE_HOME/libhgemm or else $HOME/.cache/libhgemm. "" if
// neither is an absolute path.
std::string default_tuning_path(const Device& device, int sm_count);

// The file that HGEMM_TUNING names, else the default one; "" with HGEMM_TUNING=off.
std::string tuning_path(const Device& device, int sm_count);

// Reads a regular file of at most max_tuning_bytes; null, or why not. Waits for nothing, such as a pipe
// without a writer. `doubt`: who else may have written it; "" if nobody.
const char* read_tuning_file(const char* path, std::string& text, bool& is_missing, std::string& doubt);

class Tuning {
public:
    // The file of tuning_path(). Null if there is none, if it is of another device, library or format, if
    // there is no memory for it (the log says so), or with HGEMM_TUNING=off.
    static std::unique_ptr<Tuning> open(const Device& device, int sm_count, const Log& log) noexcept;

    // The kernel with its settings that was measured for a tuning_key(); "" if none was.
    std::string_view find(std::string_view key) const;
    // What find() tells from now on, whatever the file says.
    void choose(const std::string& key, const std::string& kernel);
    // What the cost models of these backends are to count with; null if that is what they do anyway.
    const Calibration* calibration() const
    {
        return calibration_.backends.empty() ? nullptr : &calibration_;
    }

private:
    static std::unique_ptr<Tuning> read(const Device& device, int sm_count, const Log& log);

    std::string text_;
    std::vector<TuningEntry> entries_;
    std::map<std::string, std::string, std::less<>> chosen_;  // kernels by key
    Calibration calibration_;
};

}  // namespace hg
