#pragma once

#include "src/backend.hpp"

namespace hg {

extern const Backend sm80_backend;

}  // namespace hg
