#include "driver.hpp"

#include <dlfcn.h>

#include <atomic>

namespace hg::shim::driver {
namespace {

struct Calls {
    int (*cuCtxGetCurrent)(void**);
    int (*cuStreamIsCapturing)(void*, int*);
    int (*cuThreadExchangeStreamCaptureMode)(int*);
    int (*cuStreamSynchronize)(void*);
    int (*cuMemcpyDtoHAsync_v2)(void*, uint64_t, size_t, void*);
    int (*cuMemcpyHtoDAsync_v2)(uint64_t, const void*, size_t, void*);
};

template <typename Function>
bool find(void* library, const char* name, Function*& function)
{
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function;
}

bool load(Calls& calls)
{
    void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return library && find(library, "cuCtxGetCurrent", calls.cuCtxGetCurrent) &&
           find(library, "cuStreamIsCapturing", calls.cuStreamIsCapturing) &&
           find(library, "cuThreadExchangeStreamCaptureMode", calls.cuThreadExchangeStreamCaptureMode) &&
           find(library, "cuStreamSynchronize", calls.cuStreamSynchronize) &&
           find(library, "cuMemcpyDtoHAsync_v2", calls.cuMemcpyDtoHAsync_v2) &&
           find(library, "cuMemcpyHtoDAsync_v2", calls.cuMemcpyHtoDAsync_v2);
}

// Null until the driver is loaded. Lock-free: a forked child could inherit a lock that is held.
const Calls* calls()
{
    static constinit std::atomic<const Calls*> known = nullptr;
    if (const Calls* found = known.load(std::memory_order_acquire))
        return found;
    Calls found;
    if (!load(found))
        return nullptr;
    const auto* const made = new Calls(found);
    const Calls* other = nullptr;
    if (known.compare_exchange_strong(other, made, std::memory_order_acq_rel))
        return made;
    delete made;
    return other;
}

}  // namespace

void* current_context()
{
    void* context = nullptr;
    const Calls* driver = calls();
    return driver && driver->cuCtxGetCurrent(&context) == 0 ? context : nullptr;
}

bool is_capturing(void* stream)
{
    int status = 0;
    const Calls* driver = calls();
    return !driver || driver->cuStreamIsCapturing(stream, &status) != 0 || status != 0;
}

AllowWhileRecording::AllowWhileRecording()
{
    const Calls* driver = calls();
    changed_ = driver && driver->cuThreadExchangeStreamCaptureMode(&mode_) == 0;
}

AllowWhileRecording::~AllowWhileRecording()
{
    if (changed_)
        calls()->cuThreadExchangeStreamCaptureMode(&mode_);
}

bool wait(void* stream)
{
    const Calls* driver = calls();
    return driver && driver->cuStreamSynchronize(stream) == 0;
}

bool copy_out(void* host, const void* device, size_t bytes, void* stream)
{
    const Calls* driver = calls();
    return driver &&
           driver->cuMemcpyDtoHAsync_v2(host, reinterpret_cast<uint64_t>(device), bytes, stream) == 0;
}

bool copy_in(void* device, const void* host, size_t bytes, void* stream)
{
    const Calls* driver = calls();
    return driver &&
           driver->cuMemcpyHtoDAsync_v2(reinterpret_cast<uint64_t>(device), host, bytes, stream) == 0;
}

}  // namespace hg::shim::driver
