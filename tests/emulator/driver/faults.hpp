// Fault injection: entry points that fail on request, and how often each was called.
//
// "cuMemAlloc:2=OUT_OF_MEMORY,cuLaunchKernelEx:1+=LAUNCH_FAILED,cuMemFree:1=ILLEGAL_ADDRESS!" fails the
// second cuMemAlloc, every cuLaunchKernelEx, and with the first cuMemFree loses the context, as a fault in
// a kernel would. The failing call does nothing else. Entry points are named without version suffix, errors
// as in cuda.h without CUDA_ERROR_; calls count from the moment the faults are set.
#pragma once

#include <cuda.h>

#include <map>
#include <string>
#include <vector>

namespace emu::driver {

struct InjectedFault {
    std::string call;
    uint64_t number = 0;
    bool onwards = false;        // "+": this call and all later ones
    bool loses_context = false;  // "!"
    CUresult result = CUDA_SUCCESS;
};

class Faults {
public:
    // Replaces what was set and forgets the counts. Throws std::invalid_argument with the part it cannot
    // read, and then changes nothing.
    void set(const std::string& specification);
    // Counts a call; the fault that it must fail with, or null.
    const InjectedFault* count(const std::string& call);
    uint64_t calls(const std::string& call) const;
    const std::map<std::string, uint64_t>& all_calls() const { return calls_; }

private:
    std::vector<InjectedFault> faults_;
    std::map<std::string, uint64_t> calls_;
};

}  // namespace emu::driver
