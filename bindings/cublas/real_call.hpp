// The program's call, ready to be passed to the real library.
#pragma once

#include "abi.hpp"

namespace hg::shim {

// Is the real library running on this thread? GEMMs that it calls itself are passed on.
bool is_nested();

class RealCall {
public:
    // `call` must outlive this; it returns the status.
    template <typename Call>
    explicit RealCall(const Call& call)
        : call_(&call), invoke_([](const void* c) { return (*static_cast<const Call*>(c))(); })
    {
    }
    int operator()() const;

private:
    const void* call_;
    int (*invoke_)(const void*);
};

}  // namespace hg::shim
