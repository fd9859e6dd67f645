#include "src/check/host_memory.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace hg {
namespace {

// Values of cuda.h, which a build without CUDA does not have.
using PointerGetAttribute = int (*)(void* data, int attribute, uint64_t pointer);
constexpr int memory_type = 2, is_managed = 8;  // CU_POINTER_ATTRIBUTE_*
constexpr unsigned device_memory = 2;           // CU_MEMORYTYPE_DEVICE

std::atomic<PointerGetAttribute> get_attribute = nullptr;
std::atomic<pid_t> owner = 0;  // a forked child cannot use the driver
const pid_t loaded_in = getpid();

bool is_device_memory(const void* ptr)
{
    const PointerGetAttribute get = get_attribute.load(std::memory_order_acquire);
    if (!get || owner != getpid())
        return false;
    const auto address = reinterpret_cast<uint64_t>(ptr);
    unsigned type = 0, managed = 0;
    return get(&type, memory_type, address) == 0 && type == device_memory &&
           get(&managed, is_managed, address) == 0 && managed == 0;
}

}  // namespace

void find_loaded_driver()
{
    // A forked child does not ask: the loader's lock may be that of a thread which only its parent has.
    if (get_attribute || getpid() != loaded_in)
        return;
    void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return;
    owner = getpid();
    get_attribute.store(reinterpret_cast<PointerGetAttribute>(dlsym(library, "cuPointerGetAttribute")),
                        std::memory_order_release);
}

Status check_host_memory(int position, const char* name, const void* ptr)
{
    if (!is_device_memory(ptr))
        return ok;
    return fail_argument(position, name,
                         "is %p, memory of a GPU, must be host memory for a handle on the host", ptr);
}

}  // namespace hg
