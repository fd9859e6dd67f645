// What is emulated: read from the environment once, by the driver, or set by a tool.
#pragma once

#include "core/report.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

enum class Arithmetic { Exact, Fast };  // bit-accurate tensor cores, or plain fp32
enum class Start { Ascending, Descending, Random };

struct Config {
    int cc = 90;                        // EMU_ARCH=sm_80 | sm_90 | sm_100 | sm_120 ...: 80, 90, 100, 120
    int sm_count = 4;                   // EMU_SM_COUNT
    int free_sms = 0;                   // EMU_FREE_SMS: all others are taken by somebody else; 0: all
    Start start = Start::Ascending;     // EMU_START: the order in which a grid's clusters start
    int smem_optin = 227 * 1024;        // EMU_SMEM, bytes; default by architecture
    int64_t memory = int64_t{8} << 30;  // EMU_MEMORY: device memory, bytes
    Arithmetic arithmetic = Arithmetic::Exact;  // EMU_ARITHMETIC=exact|fast
    int check = 2;           // EMU_CHECK: 0 values only, 1 bounds and barriers, 2 also races,
                             // 3 also in global memory
    bool dependent = false;  // EMU_DEPENDENT: 1: a launch that may start before those in front of it have
                             // ended accesses global memory only behind a wait for them
    bool overlap = false;    // EMU_OVERLAP: 1: kernels that nothing orders run in turns
    Strict strict = Strict::Off;  // EMU_STRICT: 1: a report that is no harmless one fails the launch,
                                  // defects: only a defect does
    uint64_t seed = 1;            // EMU_SEED: order of warps and of asynchronous completions
    std::string faults;           // EMU_FAULTS: see driver/faults.hpp

    static std::vector<int> architectures();  // those that cc may be
    static Config from_environment();
    // Of so many multiprocessors those that nobody else has taken.
    int free_of(int count) const { return free_sms > 0 && free_sms < count ? free_sms : count; }
};

}  // namespace emu
