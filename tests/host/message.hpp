// Helpers of the tests of bad input.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace hg::test {

inline bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

// An address that no element has.
template <typename Pointer>
Pointer odd(Pointer pointer)
{
    return reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer) | 1);
}

// A distance that no memory has.
inline constexpr int64_t far = std::numeric_limits<int64_t>::max() / 2;

}  // namespace hg::test
