#pragma once

#include "src/backend.hpp"

namespace hg {

extern const Backend sm100_backend;

}  // namespace hg
