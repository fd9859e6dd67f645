// Addresses further on.
#pragma once

#include <cstdint>

namespace hg {

// So many bytes further than `first`, which may be no address at all if what lies there is not read. Of
// what is absent, null.
template <typename T>
T* displaced(T* first, int64_t bytes)
{
    return first ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(first) + static_cast<uintptr_t>(bytes))
                 : nullptr;
}

}  // namespace hg
