#pragma once

#include "src/plan/backend.hpp"

namespace hg {

extern const Backend sm80_backend;

}  // namespace hg
