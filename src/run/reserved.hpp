// Reserved: takes the first bytes of what is left of a handle's workspace, as long as it lives.
#pragma once

#include "src/run/handle.hpp"

#include <cstddef>

namespace hg {

class Reserved {
public:
    Reserved(Handle& handle, size_t bytes) : handle_(handle), bytes_(bytes) { handle.reserved += bytes; }
    ~Reserved() { handle_.reserved -= bytes_; }
    Reserved(const Reserved&) = delete;
    Reserved& operator=(const Reserved&) = delete;

private:
    Handle& handle_;
    size_t bytes_;
};

}  // namespace hg
