// What every entry point does around its work: take the lock, count the call, inject a fault, check that
// the driver and the context are usable, and turn what was thrown into a CUresult.
#pragma once

#include "driver/driver.hpp"

#include <mutex>

namespace emu::driver {

enum class Needs { Nothing, Driver, Context };

// Recursive, because host functions on a stream may call the driver.
std::recursive_mutex& mutex();

void enter(const char* name, Needs needs);
CUresult answer(const char* name);  // for the exception that is being handled

template <typename Body>
CUresult call(const char* name, Needs needs, Body body) noexcept
{
    const std::lock_guard lock(mutex());
    try {
        enter(name, needs);
        body();
        return CUDA_SUCCESS;
    } catch (...) {
        return answer(name);
    }
}

// The usual case: a call that needs a context and gets it.
template <typename Body>
CUresult call(const char* name, Body body) noexcept
{
    return call(name, Needs::Context, [&] { body(current_context()); });
}

// Where a result goes; NULL is refused.
template <typename T>
T& out(T* pointer)
{
    require(pointer != nullptr, CUDA_ERROR_INVALID_VALUE);
    return *pointer;
}

inline uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
inline char* bytes_at(uint64_t address) { return reinterpret_cast<char*>(address); }

}  // namespace emu::driver
