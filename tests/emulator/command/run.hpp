// ptxrace run: a program on the emulated driver.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace emu::command {

// Its exit status where it could not run the program, as of env, timeout and others.
constexpr int failed = 125, not_executable = 126, not_found = 127;

struct RunOptions {
    std::string architecture, strict, check, seed, sms, devices, json;  // empty: as the environment has it
    bool overlap = false, anyway = false, quiet = false;
    int defect_status = 99;
    std::vector<std::string> program;  // with its arguments
};

// The program's status, 128 + N where signal N ended it; defect_status if a report is a fault or a defect.
int run(const RunOptions& options);

// The folder of libcuda.so.1 and libcudart.so.N, beside this program; throws std::runtime_error.
std::string library_folder();

}  // namespace emu::command
