#pragma once

#include "src/plan/backend.hpp"

namespace hg {

extern const Backend sm120_backend;

}  // namespace hg
