// The driver of a build without CUDA: it has no devices, so nothing but count_devices() and
// check_unserved() is ever called.
#include "src/base/status.hpp"
#include "src/driver/driver.hpp"

#include <dlfcn.h>

namespace hg::driver {
namespace {

// How many devices a CUDA driver sees, if there is one. It stays loaded, as drivers do.
int count_unserved()
{
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 0;
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    int count = 0;
    return init && count_devices && init(0) == 0 && count_devices(&count) == 0 ? count : 0;
}

Status absent() { return fail(HGEMM_STATUS_NO_DEVICE, "this libhgemm was built without CUDA"); }

}  // namespace

Status count_devices(int* count, const char** reason)
{
    *count = 0;
    *reason = "this libhgemm was built without CUDA";
    return ok;
}

Status check_unserved()
{
    static const int devices = count_unserved();
    if (devices == 0)
        return ok;
    return fail(
        HGEMM_STATUS_NOT_SUPPORTED,
        "this libhgemm was built without GPU backends, and the CUDA driver sees %d device%s; ask for "
        "the host by hgemm_create_on(&handle, HGEMM_DEVICE_HOST) or HGEMM_BACKEND=host",
        devices, devices == 1 ? "" : "s");
}

Status current_context(void**, int*) { return absent(); }
Status retain_primary(int, Primary&) { return absent(); }
void release_primary(const Primary&) {}
Status describe(int, Device&) { return absent(); }
Scope::Scope(void*) {}
Scope::~Scope() = default;
Status allocate(size_t, void**) { return absent(); }
void release(void*) {}
Status clear(void*, size_t) { return absent(); }
Status find_owner(hgemm_stream_t, StreamOwner&) { return absent(); }
Status is_capturing(hgemm_stream_t, bool&) { return absent(); }
Status find_place(hgemm_stream_t, Place&) { return absent(); }
Status context_id(void*, uint64_t&) { return absent(); }
Status keep_with(void*, void*, void (*)(void*)) { return absent(); }
void keep_images() {}
Status wait_for(hgemm_stream_t) { return absent(); }
Status set_bytes(void*, unsigned char, size_t, hgemm_stream_t) { return absent(); }
Status copy_out(void*, const void*, size_t, hgemm_stream_t) { return absent(); }
Status copy_in(void*, const void*, size_t, hgemm_stream_t) { return absent(); }
Status create_event(Event*) { return absent(); }
void destroy_event(Event) {}
Status record(Event, hgemm_stream_t) { return absent(); }
Status elapsed_us(Event, Event, double&) { return absent(); }
BesideCaptures::BesideCaptures() = default;
BesideCaptures::~BesideCaptures() = default;
Status load_image(const void*, LoadedImage**) { return absent(); }
void unload_image(LoadedImage*) {}
Status get_kernel(const LoadedImage&, const char*, Kernel*) { return absent(); }
Status allow_shared_memory(Kernel, int, int) { return absent(); }
Status enqueue(const Launch&, hgemm_stream_t) { return absent(); }
Status encode_tensor_map(const TensorMapRequest&, void*) { return absent(); }

}  // namespace hg::driver
