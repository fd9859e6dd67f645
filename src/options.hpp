// What the environment asks for.
#pragma once

#include "backend.hpp"

namespace hg {

// HGEMM_BACKEND, and HGEMM_KERNEL with its settings.
Status read_options(Options& options);

}  // namespace hg
