// Images as cuLibraryLoadData and cuModuleLoadData take them: PTX text, fatbins with PTX in them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace emu::driver {

struct Ptx {
    std::string_view text;                        // in the image, or what that was unpacked to
    std::string target;                           // "sm_90a"
    std::shared_ptr<const std::string> unpacked;  // if it was compressed
};

// The PTX that a driver would compile for compute capability `cc`: the one of exactly that device
// ("sm_90a"), else the newest of its family ("sm_100f"), else the newest general one that is not newer
// than the device. Throws Failure.
Ptx choose_ptx(const void* image, int cc);

// How well PTX for `target` suits the device; 0: not at all.
int suitability(const std::string& target, int cc);

}  // namespace emu::driver
