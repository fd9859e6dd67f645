/* A CUDA driver with one device and nothing but the entry points that ask about it. Its device memory and its
   managed memory are arrays of this library. */
#include <stdint.h>

enum { success = 0, invalid_value = 1, not_initialized = 3 };
enum { memory_type = 2, is_managed = 8, device_kind = 2 };

static int initialised;
char stand_in_device_memory[65536], stand_in_managed_memory[65536];

int cuInit(unsigned flags)
{
    initialised = 1;
    return flags == 0 ? success : invalid_value;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return initialised ? success : not_initialized;
}

static int lies_in(uint64_t address, const char *memory) { return address - (uint64_t)memory < 65536; }

int cuPointerGetAttribute(void *data, int attribute, uint64_t pointer)
{
    const int managed = lies_in(pointer, stand_in_managed_memory);
    if (!managed && !lies_in(pointer, stand_in_device_memory))
        return invalid_value;
    if (attribute == memory_type)
        *(unsigned *)data = device_kind;
    else if (attribute == is_managed)
        *(unsigned *)data = (unsigned)managed;
    else
        return invalid_value;
    return success;
}
