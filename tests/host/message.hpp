// Helpers of the tests of bad input.
#pragma once

#include "hgemm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace hg::test {

inline bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

inline void expect_invalid(hgemm_status_t status, int position, const std::string& text)
{
    EXPECT_EQ(status, HGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hgemm_last_error_argument(), position);
    EXPECT_TRUE(contains(hgemm_last_error(), text)) << "'" << text << "' is not in: " << hgemm_last_error();
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
