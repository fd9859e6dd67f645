// The backend for a machine without a GPU: own loops, and cblas_sgemm of OpenBLAS on converted operands.
#pragma once

#include "src/plan/backend.hpp"

namespace hg {

extern const Backend host_backend;

}  // namespace hg
