// Functions that are not emulated. The runtime's header, which declares them with other arguments in CUDA
// 12 and 13, is not included.
namespace emu::runtime {
int answer_not_supported(const char* name);
}

#define EMU_UNSUPPORTED(name)                                                                              \
    extern "C" int name() { return emu::runtime::answer_not_supported(#name); }
#include "runtime/unsupported.def"
