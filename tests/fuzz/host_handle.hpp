// One handle on the host for all inputs of a process: threads and memory are made once.
#pragma once

#include "hgemm.h"
#include "report.hpp"

namespace hg::fuzz {

inline hgemm_handle_t host_handle()
{
    static const hgemm_handle_t handle = [] {
        hgemm_handle_t made = nullptr;
        if (hgemm_create_on(&made, HGEMM_DEVICE_HOST) != HGEMM_STATUS_SUCCESS)
            wrong("no host handle: %s", hgemm_last_error());
        return made;
    }();
    return handle;
}

}  // namespace hg::fuzz
