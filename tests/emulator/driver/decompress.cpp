// The system's libraries are loaded when first needed: the driver needs neither for what is not compressed.
#include "driver/decompress.hpp"

#include <dlfcn.h>

namespace emu::driver {
namespace {

template <typename Function>
Function find(const char* library, const char* name)
{
    void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    return handle ? reinterpret_cast<Function>(dlsym(handle, name)) : nullptr;
}

// Their interfaces (lz4.h, zstd.h).
using Lz4 = int (*)(const char* from, char* to, int bytes, int room);
using Zstd = size_t (*)(void* to, size_t room, const void* from, size_t bytes);

}  // namespace

bool decompress(uint64_t flags, const char* data, size_t bytes, std::string& text)
{
    const size_t room = text.size();
    if (room == 0)
        return false;
    if (flags & flag_zstd) {
        static const auto zstd = find<Zstd>("libzstd.so.1", "ZSTD_decompress");
        return zstd && zstd(text.data(), room, data, bytes) == room;
    }
    static const auto lz4 = find<Lz4>("liblz4.so.1", "LZ4_decompress_safe");
    return lz4 && lz4(data, text.data(), static_cast<int>(bytes), static_cast<int>(room)) ==
                      static_cast<int>(room);
}

}  // namespace emu::driver
