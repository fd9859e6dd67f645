#pragma once

#include "src/backend.hpp"

namespace hg {

extern const Backend sm120_backend;

}  // namespace hg
