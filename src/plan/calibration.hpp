// Calibration: by what factors a device differs from what the cost models take for granted, as
// `hgemm-tune --calibrate` measured it. src/tools/tune/README.md#calibration.
#pragma once

#include "src/plan/backend.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hg {

// How many times as long as a cost model expects the parts of a kernel's time take.
struct Factors {
    double multiply = 1;  // the instructions that multiply matrices
    double cycles = 1;    // a K tile and all else that an SM does, `multiply` included
    double memory = 1;    // bytes from and to memory
    double l2 = 1;        // bytes from L2
    double fixed = 1;     // launch and whatever else a kernel does once

    bool operator==(const Factors&) const = default;
};

struct NamedFactor {
    const char* name;
    double Factors::*value;
};
constexpr NamedFactor named_factors[] = {{"multiply", &Factors::multiply},
                                         {"cycles", &Factors::cycles},
                                         {"memory", &Factors::memory},
                                         {"l2", &Factors::l2},
                                         {"fixed", &Factors::fixed}};
constexpr double max_factor = 8, min_factor = 1 / max_factor;

Factors operator*(const Factors& x, const Factors& y);

// Of each kernel of one backend, in the order of Backend::kernels.
struct BackendCalibration {
    const KernelInfo* kernels;
    std::vector<Factors> factors;
};

struct Calibration {
    std::vector<BackendCalibration> backends;  // those that were calibrated
};

// The factors of a backend's kernels on a device.
class KernelFactors {
public:
    KernelFactors(const Device& device, const KernelInfo* kernels);

    // Was the backend calibrated? Then it chooses by its cost model alone, without what was fitted to or
    // measured on other devices.
    bool are_measured() const { return factors_ != nullptr; }
    const Factors& operator[](int kernel) const { return factors_ ? factors_[kernel] : neutral; }

private:
    static constexpr Factors neutral{};
    const Factors* factors_ = nullptr;
};

// A line of a tuning file: "calibration <name> <factor>=<number> ... date=<YYYY-MM-DD>". The name is that
// of a backend, whose factors all of its kernels have, or of a kernel that has these factors beside them.
// The line of a backend has "kernels=<number>" too: so many lines of kernels belong to it.
constexpr std::string_view calibration_word = "calibration";

inline std::string calibration_key(std::string_view name)
{
    return std::string(calibration_word) + ' ' + std::string(name);
}

struct CalibrationLine {
    std::string_view name;
    Factors factors;
    int kernels = -1;       // -1: the line says none
    std::string_view text;  // all of it

    std::string line() const { return std::string(text) + '\n'; }
};

// ... and how it is written. Without a number of kernels it is that of a kernel.
std::string calibration_line(std::string_view name, const Factors& factors, int kernels,
                             std::string_view date);

// Null if `text`, which begins with that word, is one; else why not.
const char* read_calibration_line(std::string_view text, CalibrationLine& line);

// The calibration of all backends whose lines are complete. Of several lines with a name the last one
// holds. For each backend that some lines name `remarks` gets whether it is calibrated, else why it is not.
Calibration calibrate(std::span<const CalibrationLine> lines, std::span<const Backend* const> backends,
                      std::vector<std::string>& remarks);

}  // namespace hg
