// The backend for a machine without a GPU: cblas_sgemm of OpenBLAS on operands converted block by block.
#pragma once

#include "src/plan/backend.hpp"

namespace hg {

extern const Backend host_backend;

}  // namespace hg
