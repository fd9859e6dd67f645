// Entry points that exist for programs that link against libcuda.so.1 directly, and only say that they are
// not emulated. Their parameters do not matter, so cuda.h is not included.
#include "driver/events.hpp"

namespace {

constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED

int refuse(const char* name)
{
    emu::driver::complain(name, "this entry point is not emulated");
    return not_supported;
}

}  // namespace

#define EMU_UNSUPPORTED(name)                                                                              \
    extern "C" int name() { return refuse(#name); }
#include "driver/unsupported.def"
