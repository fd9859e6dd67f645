// Host handles, one for each product that runs at the time. They are used again and never destroyed:
// other threads may still compute when a program ends.
#pragma once

#include "src/status.hpp"

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

// In a forked child, before any product of it: the handles' threads stayed with the parent.
void forget_host_handles();

// hgemm_gemm_ex, with libhgemm's error as ours.
Status gemm_ex(hgemm_handle_t handle, const hgemm_args_t& args);

}  // namespace hg::cblas
