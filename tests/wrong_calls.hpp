// Calls that take one struct, each with one thing wrong.
#pragma once

#include "library.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace hg::test {

template <typename Args>
struct WrongCall {
    const char* message;
    void (*spoil)(Args&);
};

template <typename Pointer>
void misalign(Pointer& pointer)
{
    pointer = reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer) + 1);
}

template <typename Args>
void expect_named(Library& library, hgemm_status_t (*function)(hgemm_handle_t, const Args*),
                  const Args* args, const char* message)
{
    EXPECT_EQ(function(library.handle(), args), HGEMM_STATUS_INVALID_ARGUMENT) << message;
    EXPECT_EQ(hgemm_last_error_argument(), 2) << message;
    EXPECT_NE(std::string(hgemm_last_error()).find(message), std::string::npos)
        << hgemm_last_error() << " instead of " << message;
}

template <typename Args, typename Calls>
void expect_all_named(Library& library, hgemm_status_t (*function)(hgemm_handle_t, const Args*),
                      const Args& right, const Calls& calls)
{
    for (const WrongCall<Args>& wrong : calls) {
        Args args = right;
        wrong.spoil(args);
        expect_named(library, function, &args, wrong.message);
    }
    expect_named<Args>(library, function, nullptr, "(args) is NULL");
}

}  // namespace hg::test
