// Host handles, one for each GEMM that runs at a time. They are reused and never destroyed: other threads
// may still compute when a program ends.
#pragma once

#include "src/base/status.hpp"

namespace hg::cblas {

class HostLease {
public:
    HostLease();
    ~HostLease();
    HostLease(const HostLease&) = delete;
    HostLease& operator=(const HostLease&) = delete;

    Status run(const hgemm_args_t& args) const;

private:
    hgemm_handle_t handle_ = nullptr;
    Status created_ = ok;
};

// To be called in a forked child before its first GEMM: the handles' threads exist in the parent only.
void forget_host_handles();

// Calls hgemm_gemm_ex and passes libhgemm's error on.
Status gemm_ex(hgemm_handle_t handle, const hgemm_args_t& args);

}  // namespace hg::cblas
