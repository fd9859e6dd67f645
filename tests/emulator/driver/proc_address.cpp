// cuGetProcAddress: entry points by name and by the CUDA version whose behaviour is asked for.
#include "driver/call.hpp"

#include <cstring>

using namespace emu::driver;

// Under their names in the library, as cuda.h may declare them with other versions' types.
#define EMU_ENTRY(name, version, symbol) extern "C" void emu_entry_##symbol() __asm__(#symbol);
#include "driver/entry_points.def"
#undef EMU_ENTRY

namespace {

struct Entry {
    const char* name;
    int version;  // the oldest CUDA version with it
    void (*function)();
};

constexpr Entry entries[] = {
#define EMU_ENTRY(name, version, symbol) {#name, version, emu_entry_##symbol},
#include "driver/entry_points.def"
#undef EMU_ENTRY
};

struct Found {
    void (*function)() = nullptr;
    int version = 0;
    bool too_old = false;
};

// The newest one that is not newer than what is asked for.
Found find(const char* name, int version)
{
    Found found;
    for (const Entry& entry : entries) {
        if (std::strcmp(entry.name, name) != 0)
            continue;
        if (entry.version > version)
            found.too_old = true;
        else if (entry.version > found.version)
            found.version = entry.version, found.function = entry.function;
    }
    return found;
}

CUresult get(const char* name, void** function, int version, cuuint64_t flags,
             CUdriverProcAddressQueryResult* status)
{
    return call("cuGetProcAddress", Needs::Nothing, [&] {
        require(name && function && flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                CUDA_ERROR_INVALID_VALUE);
        if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
            throw Failure{CUDA_ERROR_NOT_SUPPORTED,
                          "functions of the per-thread default stream are not emulated"};
        const Found found = find(name, version);
        *function = reinterpret_cast<void*>(found.function);
        if (status)
            *status = found.function  ? CU_GET_PROC_ADDRESS_SUCCESS
                      : found.too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        require(found.function != nullptr, CUDA_ERROR_NOT_FOUND);
    });
}

}  // namespace

#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags)
{
    return get(name, function, version, flags, nullptr);
}

extern "C" CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult* status)
{
    return get(name, function, version, flags, status);
}
