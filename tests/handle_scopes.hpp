// What a library's handle is set to as long as an object lives.
#pragma once

#include "library.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace hg::test {

class InMode {
public:
    InMode(Library& library, hgemm_mode_t mode) : handle_(library.handle())
    {
        EXPECT_EQ(hgemm_set_mode(handle_, mode), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    }
    ~InMode() { hgemm_set_mode(handle_, HGEMM_MODE_DEFAULT); }
    InMode(const InMode&) = delete;
    InMode& operator=(const InMode&) = delete;

private:
    hgemm_handle_t handle_;
};

class WithWorkspace {
public:
    WithWorkspace(Library& library, size_t bytes)
        : handle_(library.handle()), memory_(library.memory(), (bytes + 255) / 256 * 256, Guard::Fence)
    {
        EXPECT_EQ(hgemm_set_workspace(handle_, memory_.get<char>(), bytes), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
    }
    ~WithWorkspace() { hgemm_set_workspace(handle_, nullptr, 0); }
    WithWorkspace(const WithWorkspace&) = delete;
    WithWorkspace& operator=(const WithWorkspace&) = delete;

private:
    hgemm_handle_t handle_;
    Block memory_;
};

}  // namespace hg::test
