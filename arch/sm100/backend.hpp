#pragma once

#include "src/plan/backend.hpp"

namespace hg {

extern const Backend sm100_backend;

}  // namespace hg
