#pragma once

#include "src/plan/backend.hpp"

namespace hg {

extern const Backend sm90_backend;

}  // namespace hg
