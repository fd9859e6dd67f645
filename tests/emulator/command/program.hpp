// What a program's file tells about whether it can meet the emulated driver.
#pragma once

#include <string>
#include <vector>

namespace emu::command {

struct Program {
    std::string path;  // empty: there is no such program
    bool is_elf = false, is_dynamic = false, is_privileged = false, has_static_runtime = false;
    std::vector<std::string> needed;  // libraries
    std::string rpath;                // is searched before LD_LIBRARY_PATH, unlike a RUNPATH
};

// A name is looked for in PATH, as a shell does.
Program inspect(const std::string& name);

// Why it cannot work, with what helps; `libraries` is the folder of the emulator's.
std::vector<std::string> obstacles(const Program& program, const std::string& libraries);

}  // namespace emu::command
