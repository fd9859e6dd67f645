// The driver of a build without CUDA: it has no devices, so nothing but count_devices() is ever called.
#include "driver.hpp"

namespace hg::driver {
namespace {

Status absent() { return fail(HGEMM_STATUS_NO_DEVICE, "this libhgemm was built without CUDA"); }

}  // namespace

Status count_devices(int* count, const char** reason)
{
    *count = 0;
    *reason = "this libhgemm was built without CUDA";
    return ok;
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
Status stream_context(hgemm_stream_t, void**) { return absent(); }
Status load_image(const void*) { return absent(); }
void unload_image(const void*) {}
Status get_kernel(const void*, int, const KernelRequest&, Kernel*) { return absent(); }
Status launch(const Launch&, hgemm_stream_t) { return absent(); }
Status encode_tensor_map(const TensorMapRequest&, void*) { return absent(); }

}  // namespace hg::driver
